"""Issues of beads: `.beads/issues.jsonl`, one JSON object per line.

A dependency means that `issue_id` waits for `depends_on_id` (`blocks`), or is a child of it (`parent-child`); the other
types are relations, which are kept in the metadata.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tenure.core.commands import Dependency
from tenure.core.errors import InvalidInput
from tenure.core.written_times import parse_instant
from tenure.plans.importers.port import DONE, DROPPED, OPEN, Importer, Item, Items, Report, find_source, read_source
from tenure.plans.nodes import SourcePosition

PLACES = (".beads/issues.jsonl", ".beads/beads.jsonl", "issues.jsonl", "beads.jsonl")
PRIORITIES = (0, 20, 50, 70, 90)  # P0 is critical, P4 is for some day
BLOCKING = ("blocks", "waits-for", "conditional-blocks")
NO_WORK = ("message", "agent", "role", "event", "convoy")  # records that beads keeps beside its issues
STATUSES = ("open", "in_progress", "blocked", "deferred", "closed", "tombstone", "pinned", "hooked")
_SECTIONS = (("design", "Design"), ("acceptance_criteria", "Acceptance criteria"), ("notes", "Notes"))
_KEPT = ("assignee", "external_ref", "created_at", "created_by", "source_repo")


def read(path: Path, report: Report, tag: str | None = None) -> Items:
    """The open issues under a folder, a `.beads` folder, or of a JSONL file."""
    file = find_source(path, PLACES, "name the repository or the file; `bd export` writes one")
    items = []
    for number, line in enumerate(read_source(file).split(b"\n"), 1):
        if line.strip():
            item = _item(line, str(file), number, report)
            if item is not None:
                items.append(item)
    _wait_for_a_person(items)
    return Items(str(file), items)


class _Bad(Exception):
    def __init__(self, message: str, column: int = 1, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.column, self.hint = message, column, hint


def _item(line: bytes, path: str, number: int, report: Report) -> Item | None:
    try:
        return _read(_parsed(line), path, number, report)
    except _Bad as bad:
        report.bad(path, SourcePosition(number, bad.column), "SYNTAX", bad.message, bad.hint)
        return None


def _parsed(line: bytes) -> dict[str, Any]:
    if line.startswith((b"<<<<<<<", b"=======", b">>>>>>>")):
        raise _Bad("a merge conflict", hint="resolve it first")
    try:
        value = json.loads(line.decode("utf-8"))
    except json.JSONDecodeError as error:
        raise _Bad(f"not JSON: {error.msg}", error.colno) from None
    except (UnicodeDecodeError, RecursionError, ValueError):
        raise _Bad("not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise _Bad("not an issue: a JSON object is expected")
    return value


def _text(issue: dict[str, Any], name: str) -> str:
    value = issue.get(name)
    if value is not None and not isinstance(value, str):
        raise _Bad(f"{name}: {str(value)[:40]!r} where a text is expected")
    return value or ""


def _list(issue: dict[str, Any], name: str, kind: type) -> list[Any]:
    value = issue.get(name) or []
    if not isinstance(value, list) or not all(isinstance(part, kind) for part in value):
        raise _Bad(f"{name}: not a list of {'texts' if kind is str else 'objects'}")
    return value


def _read(issue: dict[str, Any], path: str, number: int, report: Report) -> Item:
    id, title = _text(issue, "id"), _text(issue, "title")
    if not id or not title.strip():
        raise _Bad("an issue without an id or a title")
    item = Item(id=id, title=title, path=path, place=SourcePosition(number, 1), description=_description(issue))
    item.metadata = {"imported_from": "beads", "id": id}
    item.metadata |= {name: issue[name] for name in _KEPT if issue.get(name)}
    kind = _text(issue, "issue_type") or "task"
    item.type = "code" if kind == "task" else kind
    item.tags = _list(issue, "labels", str)
    item.priority = _priority(issue)
    item.estimated = _estimated(issue)
    item.deadline, item.not_before = _instant(issue, "due_at"), _instant(issue, "defer_until")
    _stand(item, issue, kind)
    for link in _list(issue, "dependencies", dict):
        _link(item, link, report)
    return item


def _description(issue: dict[str, Any]) -> str:
    parts = [_text(issue, "description")]
    parts += [f"## {head}\n\n{_text(issue, name)}" for name, head in _SECTIONS if _text(issue, name)]
    comments = [c for c in _list(issue, "comments", dict) if c.get("text")]
    if comments:
        text = "\n".join(f"- {c.get('author') or 'somebody'}: {c['text']}" for c in comments)
        parts.append(f"## Comments\n\n{text}")
    return "\n\n".join(part for part in parts if part)


def _priority(issue: dict[str, Any]) -> int:
    given = issue.get("priority", 0)  # beads leaves 0 out
    if type(given) is not int or not 0 <= given < len(PRIORITIES):
        raise _Bad(f"priority must be from 0 to 4 (got {str(given)[:40]!r})")
    return PRIORITIES[given]


def _estimated(issue: dict[str, Any]) -> float | None:
    minutes = issue.get("estimated_minutes")
    if minutes is None:
        return None
    if type(minutes) is not int or minutes < 0:
        raise _Bad(f"estimated_minutes {str(minutes)[:40]!r}: not a number of minutes")
    return minutes * 60


def _instant(issue: dict[str, Any], name: str) -> int | None:
    given = _text(issue, name)
    if not given:
        return None
    try:
        return parse_instant(given, name, 0).instant
    except InvalidInput as error:
        raise _Bad(error.message) from None


def _stand(item: Item, issue: dict[str, Any], kind: str) -> None:
    """The issue's status in our terms."""
    status = _text(issue, "status") or "open"
    item.was = "" if status == "open" else status
    if status == "closed":
        item.status = DONE
    elif status == "tombstone":
        item.status, item.was = DROPPED, "deleted"
    elif status == "pinned" or issue.get("pinned") or issue.get("is_template") or issue.get("ephemeral"):
        item.status, item.was = DROPPED, "not a work item (pinned, a template, or ephemeral)"
    elif kind in NO_WORK:
        item.status, item.was = DROPPED, f"not a work item ({kind})"
    elif kind == "gate":
        item.draft = (
            f"a gate that waits for {issue.get('await_type') or 'something'} {issue.get('await_id') or ''}".strip()
        )
    elif status == "deferred":
        item.was = ""
        item.draft = "deferred" if item.not_before is None else ""
    elif status not in STATUSES:
        item.draft = f"unknown status {status[:60]!r}"


def _wait_for_a_person(items: list[Item]) -> None:
    """An issue that is marked as blocked, while no issue in the file blocks it, must not be claimed."""
    finished = {item.id for item in items if item.status in (DONE, DROPPED)}
    for item in items:
        if item.was == "blocked" and item.status == OPEN:
            item.was = ""
            if all(dependency.task in finished for dependency in item.depends_on):
                item.draft = "marked as blocked, but no issue in the file blocks it"


def _link(item: Item, link: dict[str, Any], report: Report) -> None:
    kind, target = _text(link, "type") or "blocks", _text(link, "depends_on_id")
    if not target:
        raise _Bad("dependencies: one without depends_on_id")
    if kind == "parent-child" and item.parent is None:
        item.parent = target
    elif kind in BLOCKING:
        on_failure = "ignore" if kind == "conditional-blocks" else "block"
        if kind == "conditional-blocks":
            report.note(item, "changed", f"was to run only if {target[:80]} fails: it runs after it in any case")
        item.depends_on.append(Dependency(task=target, on_failure=on_failure))
    else:
        item.metadata.setdefault("related", []).append({"type": kind, "id": target})
        if kind == "parent-child":
            report.note(item, "kept", f"a second parent, {target[:80]}: only in the metadata")


IMPORTER = Importer(read)
