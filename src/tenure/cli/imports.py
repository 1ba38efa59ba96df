"""`import`: create tasks from the files of another tool."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from tenure.cli.main import Answer, Run, arg, options
from tenure.cli.plan import listed, refused, said
from tenure.cli.text_format import counted, plain
from tenure.client.wire import outcome_value
from tenure.client.wire import plain as wire_plain
from tenure.core.outcomes import Outcome
from tenure.plans.apply import apply
from tenure.plans.importers.item_plan import Imported
from tenure.plans.importers.port import Note
from tenure.plans.importers.registry import read

SHOWN = 5
_WORDS = {
    "done": "done there, not imported",
    "dropped": "deleted, cancelled or not work, not imported",
    "begun": "in progress there; nobody holds them here",
    "draft": "drafts; `tenure publish` publishes them",
    "met": "dependencies on done work, met",
    "loosened": "dependencies on tasks that were not imported, dropped",
    "parent": "parents that could not be kept",
    "changed": "values changed to fit",
    "kept": "values that are only in the metadata",
}


@options(
    arg("tool", metavar="TOOL", help="beads, task-master, backlog, or an installed importer"),
    arg("path", nargs="?", default=".", metavar="PATH", help="a repository, or the tool's own file or folder (.)"),
    arg("--tag", metavar="NAME", help="only the tasks of this tag (task-master)"),
    arg("--dry-run", action="store_true", help="show what would happen, without storing"),
    arg("--skip-bad", action="store_true", help="leave out invalid entries instead of refusing all"),
)
def import_(run: Run, given: Namespace) -> Answer:
    """Import open tasks of another tool. Done ones are left out, and nothing is imported twice."""
    imported = read(given.tool, Path(run.folder, given.path), tag=given.tag, skip_bad=given.skip_bad)
    if imported.errors:
        return refused(run, imported.findings, imported.tool, "fix them, or pass --skip-bad to leave them out")
    outcome = apply(run.client, imported.plan, dry_run=given.dry_run) if imported.plan else None
    value: dict[str, Any] = {
        "tool": imported.tool, "seen": imported.seen, "plan": imported.plan.name if imported.plan else None,
        "outcome": outcome_value(outcome) if outcome else None, "notes": [wire_plain(n) for n in imported.notes],
        "findings": listed(imported.findings),
    }  # fmt: skip
    return Answer(value, lambda: _told(imported, outcome))


def _told(imported: Imported, outcome: Outcome | None) -> str:
    message = plain(outcome.message) if outcome else "nothing open to import"
    lines = [said(finding) for finding in imported.findings]
    lines.append(f"{imported.tool}: {counted(imported.seen, 'item')} read; {message}")
    by_kind: dict[str, list[Note]] = {}
    for note in imported.notes:
        by_kind.setdefault(note.what, []).append(note)
    for what, words in _WORDS.items():
        notes = by_kind.get(what, [])
        if notes:
            ids = list(dict.fromkeys(plain(note.id) for note in notes))
            some = ", ".join(ids[:SHOWN]) + (" …" if len(ids) > SHOWN else "")
            lines.append(f"  {len(notes):>5}  {words}: {some}")
    if imported.notes:
        lines.append("  --json lists each of them")
    if outcome and outcome.missing:
        lines.append(f"  no longer open in {imported.tool}: {', '.join(plain(key) for key in outcome.missing[:SHOWN])}")
    return "\n".join(lines)
