"""Checks a plan by itself and, with a client, against the project where it will be applied. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tenure.client import Client
from tenure.core import ids
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.safe_text import shell_word
from tenure.engine.verbs.projects import TRACKS
from tenure.plans.files import PlanFile, Reading, read
from tenure.plans.nodes import Finding, Findings


def check(source: str | bytes, path: str, client: Client | None = None, now: int = 0) -> list[Finding]:
    """The findings of a plan file. With a client, tasks and tracks of the project are looked up too."""
    return list(proven(read(source, path, now), client).findings)


def proven(reading: Reading, client: Client | None) -> Reading:
    """The reading with the store's findings; without a store, with a warning for each track that may be missing."""
    more: list[Finding] = []
    before: list[PlanFile] = []
    for plan in reading.plans:
        more += verify(client, plan, before) if client is not None else unproven(plan)
        before.append(plan)
    if not more:
        return reading
    is_wrong = any(finding.level == "error" for finding in more)
    return Reading(plans=() if is_wrong else reading.plans, findings=(*reading.findings, *more))


def plans_of(reading: Reading) -> tuple[PlanFile, ...]:
    """The plans of a reading; InvalidInput names the first error, and how many more there are."""
    if not reading.errors:
        return reading.plans
    first, *others = reading.errors
    raise InvalidInput(
        f"{first.path}:{first.line}:{first.column}: {first.message}" + (f"; and {len(others)} more" if others else ""),
        first.hint or f"tenure plan check {shell_word(str(first.path))} shows all",
    )


def unproven(plan: PlanFile) -> list[Finding]:
    findings = Findings(plan.path)
    for code, place in plan.track_places.items():
        if code not in TRACKS:
            findings.add(
                place, "UNKNOWN_TRACK", f"track {code} is neither in this file nor a default track",
                "the project must have it, or add it under `tracks:`", level="warning",
            )  # fmt: skip
    return findings.sorted()


def verify(client: Client, plan: PlanFile, before: Sequence[PlanFile] = ()) -> list[Finding]:
    """Tracks and tasks that the project lacks for the plan, and keys of the plan that other tasks have.

    Plans `before` it in its file are applied first.
    """
    findings = Findings(plan.path)
    tracks = {track["code"] for track in client.tracks()} | {track.code for p in before for track in p.tracks}
    promised = {_number(task.key) for p in before for task in p.tasks if task.key}
    for code, place in plan.track_places.items():
        if code not in tracks:
            findings.add(
                place, "UNKNOWN_TRACK", f"track {code} is not defined in project {client.project}",
                "add it under `tracks:`",
            )  # fmt: skip
    state = _states(client, (reference.name for reference in plan.outside))
    for reference in plan.outside:
        code = str(state[reference.name]["outcome"])
        if code != "OK" and _number(reference.name) not in promised:
            what = "is a prefix of several tasks" if code == "AMBIGUOUS" else f"is not a task of {client.project}"
            findings.add(reference.place, "UNKNOWN_TASK", f"{reference.name[:80]!r} {what}")
    own = own_tasks(client, plan.name)
    keyed = {_number(t.key): places["key"] for t, places in zip(plan.tasks, plan.places, strict=True) if t.key}
    for number, found in _states(client, keyed).items():
        if found["outcome"] == "OK" and found["key"] not in own:
            findings.add(
                keyed[number], "DUPLICATE", f"{number} is taken by {found['key']}; keys are never reused",
                "use another number, or leave the key out",
            )  # fmt: skip
    return findings.sorted()


def _number(name: str) -> str:
    """The unique first part of a key: B-003."""
    key = ids.parse_key(name)
    return ids.ref_of(key.track, key.sequence) if key else name


def own_plans(client: Client, name: str | None) -> Sequence[Mapping[str, Any]]:
    """The stored tasks of the plan of this name, in groups."""
    if name is None:
        return []
    try:
        return client.plans(plan=name)
    except NotFound:
        return []


def own_tasks(client: Client, name: str | None) -> dict[str, Mapping[str, Any]]:
    """The tasks that the plan of this name has in the project, by key."""
    return {task["key"]: task for group in own_plans(client, name) for task in group["tasks"]}


def _states(client: Client, names: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    wanted = list(dict.fromkeys(names))
    return {found["name"]: found for found in client.states(wanted)} if wanted else {}
