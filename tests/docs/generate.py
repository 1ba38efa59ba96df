"""Writes the files that are made from the code: the reference pages and the SQLite schema.

Names (`limits.md schema.sql`) select some of them; `--check` reports which are out of date instead.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path

import msgspec

import tenure
from tenure.core import commands, errors, events, lifecycle, outcomes, records, retry, roles
from tenure.core.instants import lasting
from tests.docs import (
    async_types,
    captures,
    http_page,
    interfaces,
    limits_page,
    mcp_page,
    mcp_replies,
    message_schemas,
    metrics_page,
    reliability_table,
    sdk_page,
    sessions,
    sqlite_schema,
    stores_page,
    valkey_defaults,
)
from tests.docs.tables import table, ticked

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REFERENCE = ROOT / "docs" / "reference"
NOTICE = "<!-- Made from the code by `./x docs`; edit there. -->\n"


def states() -> str:
    moves = [(ticked(m.sources), ticked(m.targets), m.by) for m in lifecycle.MOVES]
    endings = [(e.by, f"`{e.reason}`", e.state, e.attempt, "yes" if e.late_submit else "") for e in lifecycle.ENDINGS]
    arrows = sorted({(s, t) for s, t in lifecycle.ALLOWED if s not in ("cancelled",) and t not in ("cancelled",)})
    picture = "\n".join(f"    {s} --> {t}" for s, t in arrows)
    return (
        "# States and moves\n\n"
        f"A task is in one of {ticked(lifecycle.STATES)}. It is held while it is {ticked(lifecycle.HELD)}.\n"
        "Any other move than these is refused.\n\n"
        + table(("from", "to", "by"), moves)
        + f"\n```mermaid\nstateDiagram-v2\n{picture}\n```\n"
        + "(`cancelled` can be reached from every state but the finished ones; it is left out of the picture.)\n"
        + "\n## How a claim ends\n\n"
        + table(("by", "reason", "claim", "attempt", "late submit"), endings)
        + f"\nAt most {lifecycle.MOST_GIVEN_BACK} attempts are given back in a run; later ones count.\n"
        + f"After a release its agent gets no claim of the task for {lasting(retry.RELEASE_COOL_OFF / retry.SECOND)}, "
        + f"except by name; after `{lifecycle.STOPPED_BY.reason}` at once: a shutdown says nothing of the task.\n"
        + "What is free never counts: it is bounded by `max_generations_per_task` alone.\n"
        + "An expired claim that its agent takes again in the same session is one attempt with the next,\n"
        + "unless its process was proven gone, or it was lost too often in a row without a sign of work: see\n"
        + "[leases](../explanation/leases-and-epochs.md#the-end-of-a-lease-is-not-the-end-of-the-work).\n"
    )


def outcome_codes() -> str:
    rows = [(f"`{name}`", code.kind, code.meaning) for name, code in outcomes.CODES.items()]
    fields = [(f"`{f.name}`", _type(f.type)) for f in msgspec.structs.fields(outcomes.Outcome)]
    return (
        "# Outcomes\n\nEvery command is answered by one outcome, or by an [error](errors.md). "
        "Fields that are not set are left out.\n\n"
        + table(("outcome", "kind", "meaning"), rows)
        + "\n## Fields\n\n"
        + table(("field", "type"), fields)
    )


def error_codes() -> str:
    for module in pkgutil.walk_packages(tenure.__path__, "tenure."):
        if not module.name.endswith("__main__"):
            import_module(module.name)  # each may define errors of its own
    rows = []

    def walk(kind: type[errors.TenureError], depth: int) -> None:
        effect = "no effect" if kind.definite else "unknown: send again with the same request id"
        rows.append((f"{'&nbsp;&nbsp;' * depth}`{kind.__name__}`", f"`{kind.code}`", effect))
        # By name: the order in which modules were loaded is nobody's business, nor are errors that tests define.
        ours = {c.__name__: c for c in kind.__subclasses__() if c.__module__.startswith("tenure.")}
        for _, child in sorted(ours.items()):
            walk(child, depth + 1)

    walk(errors.TenureError, 0)
    head = "# Errors\n\nRaised by the client; values in a batch's answers.\n\n"
    return head + table(("error", "code", "effect"), rows)


def event_kinds() -> str:
    rows = [(f"`{kind}`", meaning) for kind, meaning in events.KINDS.items()]
    fields = [(f"`{f.name}`", _type(f.type)) for f in msgspec.structs.fields(events.Event)]
    return (
        "# Events\n\nOne for each transition, appended in its transaction.\n\n"
        + table(("kind", "what has happened"), rows)
        + "\n## Fields\n\n"
        + table(("field", "type"), fields)
    )


def command_list() -> str:
    parts = ["# Commands\n\nDurations are seconds, instants microseconds since 1970 in UTC.\n"]
    for kind, role in roles.NEEDS.items():
        parts.append(f"\n## `{kind.__struct_config__.tag}` ({role})\n")
        doc = kind.__doc__ or ""
        if doc and not doc.startswith(kind.__name__):
            parts.append(f"\n{' '.join(doc.split())}\n")
        parts.append("\n" + _fields(kind))
    parts.append("\n## A task to be made\n\n" + _fields(commands.NewTask))
    for title, part in (
        ("Totals of a model", commands.Totals),
        ("A process", commands.Process),
        ("A template", commands.Template),
        ("What the watch goes by", records.Watch),
    ):
        parts.append(f"\n## {title}\n\n{part.__doc__}\n\n" + _fields(part))
    return "".join(parts)


def _fields(kind: type[msgspec.Struct]) -> str:
    own = [f for f in msgspec.structs.fields(kind) if f.name not in ("project", "request_id", "trace_id")]
    rows = [(f"`{f.name}`", _type(f.type), "" if f.required else f"`{_default(f)!r}`") for f in own]
    return table(("field", "type", "default"), rows)


def _default(field: msgspec.structs.FieldInfo) -> object:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _type(kind: object) -> str:
    text = getattr(kind, "__name__", None) if isinstance(kind, type) and not getattr(kind, "__args__", None) else None
    text = text or str(kind)
    text = re.sub(r"tenure\.core\.(?:\w+\.)+|typing\.|collections\.abc\.|ForwardRef\('|'\)", "", text)
    return f"`{text}`".replace("|", "\\|")


PAGES = {
    "../how-to/watch-the-work.md": captures.page,
    "../tutorial/first-session.md": lambda: sessions.played((HERE / "first-session.md").read_text()),
    "command-line.md": interfaces.command_line,
    "exit-codes.md": interfaces.exit_codes,
    "settings.md": interfaces.settings,
    "http-api.md": http_page.page,
    "mcp.md": mcp_page.page,
    "python.md": sdk_page.page,
    "messages.md": message_schemas.page,
    "metrics.md": metrics_page.page,
    "states.md": states,
    "stores.md": stores_page.page,
    "outcomes.md": outcome_codes,
    "errors.md": error_codes,
    "events.md": event_kinds,
    "commands.md": command_list,
    "limits.md": limits_page.page,
    "retention.md": limits_page.retention,
}
WITHOUT_NOTICE = {
    "../../RELIABILITY.md": reliability_table.page,  # only its table is generated
    "../../src/tenure/stores/sqlite/schema.sql": sqlite_schema.page,
    "../../tests/stores/valkey_defaults.txt": valkey_defaults.text,
    "../../src/tenure/client/async_verbs.pyi": async_types.text,
    "../../src/tenure/data/mcp_replies.json": mcp_replies.text,
    **message_schemas.FILES,
}


def main(argv: list[str]) -> int:
    stale, wanted = [], [argument for argument in argv if not argument.startswith("-")]
    for name, make in (PAGES | WITHOUT_NOTICE).items():
        path = (REFERENCE / name).resolve()
        if wanted and path.name not in wanted:
            continue
        text = make() if name in WITHOUT_NOTICE else NOTICE + make()
        if "--check" in argv:
            if not path.exists() or path.read_text() != text:
                stale.append(str(path.relative_to(ROOT)))
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if stale:
        print(f"out of date: {', '.join(stale)}; run ./x docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
