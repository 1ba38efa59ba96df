"""Retention presets: how long history and access log are kept at least, by the name of a standard.

A preset is a floor. An own limit of the project below it is raised when the preset is set, and only an owner may lower
it again; both values are then in the log. Where the tier of a tenant differs, the longer retention holds. The files of
an access log are kept by the longest preset of any project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenure.core import limits
from tenure.core.errors import InvalidInput, NotAllowed
from tenure.core.records import Project

NONE = "none"  # as a command spells it
LIMIT = "history_retention"
DAYS = {"soc2": limits.RETENTION_SOC2, "pci": limits.RETENTION_PCI, "hipaa": limits.RETENTION_HIPAA}


def check_preset(name: str) -> str:
    """The preset as a project keeps it; "" for none."""
    if name != NONE and name not in DAYS:
        raise InvalidInput(f"compliance {name[:40]!r} must be {', '.join(DAYS)} or {NONE}")
    return "" if name == NONE else name


def raised(own: Mapping[str, int], preset: str) -> dict[str, int]:
    """The project's limits under a preset that was just set."""
    kept, least = own.get(LIMIT), DAYS.get(preset)
    return {**own, LIMIT: least} if kept is not None and least is not None and kept < least else dict(own)


def lowered(before: Project, after: Project) -> dict[str, dict[str, int | str | None]]:
    """What a change lowers under the preset that was in force, with both values; empty: nothing."""
    least = DAYS.get(before.compliance)
    if least is None:
        return {}
    found: dict[str, dict[str, int | str | None]] = {}
    old, new = before.limits.get(LIMIT), after.limits.get(LIMIT)
    if new is not None and new < least and (old is None or new < old):
        found[LIMIT] = {"from": old, "to": new, "preset": least}
    if DAYS.get(after.compliance, 0) < least:
        found["compliance"] = {"from": before.compliance, "to": after.compliance or NONE}
    return found


def notes(before: Project, after: Project) -> list[str]:
    """What a change does to the retention of history beyond its words."""
    own = after.limits.get(LIMIT)
    if LIMIT in lowered(before, after):
        return [
            f"{LIMIT} is now below the {DAYS[before.compliance]} days of {before.compliance}; the log has both values"
        ]
    if after.compliance != before.compliance and own is not None and own > before.limits.get(LIMIT, own):
        return [f"{LIMIT} is raised to {own} days"]
    return []


def check_lowering(before: Project, after: Project, role: str) -> dict[str, dict[str, int | str | None]]:
    """As `lowered`; raises NotAllowed where the caller is not an owner."""
    found = lowered(before, after)
    if found and role != "owner":
        raise NotAllowed(
            f"{', '.join(found)} of {before.id} would be lowered under its preset {before.compliance}",
            "an owner may do that; both values are then in the log",
        )
    return found


def kept_days(project: Project, of_tenant: Mapping[str, int], bounded: Mapping[str, int]) -> int | None:
    """How many days history is kept; None: for ever. `bounded`: the limits that apply without a preset."""
    least = DAYS.get(project.compliance)
    if least is None:
        return bounded.get(LIMIT)
    own, tier = project.limits.get(LIMIT), of_tenant.get(LIMIT)
    if own is None and tier is None:
        return None
    return max(least if own is None else own, tier or 0)


def retention_text(preset: str, kept: int | None) -> str:
    """What a preset means for a project whose history is kept for `kept` days; None: for ever."""
    least = DAYS[preset]
    history = "for ever" if kept is None else f"for {kept} days"
    is_below = kept is not None and kept < least
    below = f", below the {least} days of the preset, by an owner's decision" if is_below else ""
    return f"preset {preset}: history is kept {history}{below}; the access log for at least {least} days"


def access_log_days(setting: float, presets: Iterable[str]) -> float:
    """How long files of an access log are kept; 0: for ever."""
    return setting and max([setting, *(DAYS[name] for name in presets if name in DAYS)])
