"""Tasks of Task Master: `.taskmaster/tasks/tasks.json`.

The older form is one list, `{"tasks": [...]}`; the newer has one for each tag, `{"master": {"tasks": [...]}, ...}`. The
name of a task of the tag master is its id (`4`, `4.2` for a subtask), so that an import continues after the file was
converted to the newer form; that of another tag's task is `tag:id`.
"""

from __future__ import annotations

from pathlib import Path

from tenure.core.commands import Dependency
from tenure.core.errors import InvalidInput
from tenure.plans.importers.port import DONE, DROPPED, Importer, Item, Items, Report, find_source, read_source
from tenure.plans.json_trees import read_tree
from tenure.plans.nodes import Findings, Mapping, Node, Scalar, Sequence, SourcePosition, Unreadable, Wrong, is_unset

PLACES = (".taskmaster/tasks/tasks.json", "tasks/tasks.json", "tasks.json")
MASTER = "master"
PRIORITIES = {"critical": 0, "high": 20, "medium": 50, "low": 70}
DONE_WORDS = ("done", "completed")
OPEN_WORDS = ("pending", "in-progress", "in_progress", "review", "")
_SECTIONS = (("details", "Details"), ("testStrategy", "Test strategy"), ("acceptanceCriteria", "Acceptance criteria"))


def read(path: Path, report: Report, tag: str | None = None) -> Items:
    """The open tasks of all tags, or of one."""
    file = find_source(path, PLACES, "name the repository, or the file itself")
    findings = Findings(str(file))
    items: list[Item] = []
    try:
        tree = read_tree(read_source(file).decode("utf-8").removeprefix("\ufeff"), findings)
    except Unreadable as error:
        report.skip_bad = False  # the rest of the file cannot be read, so nothing can be skipped
        report.put(str(file), [error])
    except UnicodeDecodeError:
        report.skip_bad = False
        report.bad(str(file), SourcePosition(1, 1), "SYNTAX", "not UTF-8")
    else:
        for name, tasks in _lists(tree, tag, str(file)):
            _Reader(str(file), name, report, items).read(tasks)
    report.put(str(file), findings.found)
    return Items(str(file), items)


def _lists(tree: Node, tag: str | None, path: str) -> list[tuple[str, Sequence]]:
    """The lists of tasks in the file, each with its tag."""
    found: list[tuple[str, Sequence]] = []
    if isinstance(tree, Mapping):
        tasks = tree.get("tasks")
        if isinstance(tasks, Sequence):
            found.append((MASTER, tasks))
        for name, (_, value) in tree.entries.items():
            inner = value.get("tasks") if isinstance(value, Mapping) else None
            if isinstance(inner, Sequence):
                found.append((name, inner))
    if not found:
        raise InvalidInput(
            f"{path}: no list of tasks in it", 'it needs {"tasks": [...]}, or one such object for each tag'
        )
    if tag is None:
        return found
    chosen = [(name, tasks) for name, tasks in found if name == tag]
    if not chosen:
        raise InvalidInput(f"{path}: no tag {tag[:60]!r}", f"there are: {', '.join(name for name, _ in found)}")
    return chosen


class _Reader:
    """Reads the tasks of one tag."""

    def __init__(self, path: str, tag: str, report: Report, items: list[Item]) -> None:
        self.path, self.tag, self.report, self.items = path, tag, report, items
        self.prefix = "" if tag == MASTER else f"{tag}:"

    def read(self, tasks: Sequence) -> None:
        for node in tasks.items:
            self._try(node, None, ())

    def _try(self, node: Node, parent: Item | None, siblings: tuple[str, ...]) -> None:
        try:
            self._task(node, parent, siblings)
        except Wrong as wrong:
            self.report.put(self.path, [wrong])

    def _task(self, node: Node, parent: Item | None, siblings: tuple[str, ...]) -> None:
        if not isinstance(node, Mapping):
            raise Wrong(node.place, "WRONG_TYPE", "a task is expected, as an object")
        own = _text(node, "id")
        title = _text(node, "title")
        if not own or not title.strip():
            raise Wrong(node.place, "WRONG_TYPE", "a task without an id or a title")
        above = parent.metadata["id"] if parent else None
        number = own if above is None or own.startswith(f"{above}.") else f"{above}.{own}"
        item = Item(
            id=self.prefix + number, title=title, path=self.path, place=node.place, description=_description(node),
            parent=parent.id if parent else None,
        )  # fmt: skip
        item.metadata = {"imported_from": "task-master", "id": number, "tag": self.tag}
        if self.tag != MASTER:
            item.tags = [self.tag]
        if parent is not None:
            item.priority = parent.priority
        given = _text(node, "priority").lower()
        if given in PRIORITIES:
            item.priority = PRIORITIES[given]
        elif given:
            self.report.note(item, "changed", f"priority {given[:40]!r} is taken as medium")
        item.depends_on = [
            Dependency(task=self._target(name, number, above, siblings)) for name in _names(node, "dependencies")
        ]
        subtasks = node.get("subtasks")
        self._stand(item, _text(node, "status").lower(), parent)
        self.items.append(item)
        if isinstance(subtasks, Sequence):
            ids = tuple(_text(s, "id") for s in subtasks.items if isinstance(s, Mapping))
            for subtask in subtasks.items:
                self._try(subtask, item, ids)

    def _target(self, name: str, number: str, above: str | None, siblings: tuple[str, ...]) -> str:
        """In a subtask a bare number is a sibling of that id, if there is one, else a task; `4.2` is complete."""
        if above is not None and "." not in name and name in siblings and f"{above}.{name}" != number:
            return f"{self.prefix}{above}.{name}"
        return self.prefix + name

    def _stand(self, item: Item, status: str, parent: Item | None) -> None:
        item.was = "" if status == "pending" else status
        if parent is not None and parent.status != "open":
            item.status, item.was = parent.status, f"part of {parent.metadata['id']}, which is {parent.was}"
        elif status in DONE_WORDS:
            item.status = DONE
        elif status == "cancelled":
            item.status = DROPPED
        elif status not in OPEN_WORDS:
            item.draft = status
        elif parent is not None and parent.draft:
            item.draft = f"part of {parent.metadata['id']}, which is {parent.was}"


def _text(node: Mapping, name: str) -> str:
    value = node.get(name)
    if value is None or is_unset(value):
        return ""
    if not isinstance(value, Scalar):
        raise Wrong(value.place, "WRONG_TYPE", f"{name}: a text is expected")
    return value.text


def _names(node: Mapping, name: str) -> list[str]:
    value = node.get(name)
    if value is None or is_unset(value):
        return []
    if not isinstance(value, Sequence):
        raise Wrong(value.place, "WRONG_TYPE", f"{name}: a list is expected")
    names = []
    for part in value.items:
        if not isinstance(part, Scalar) or part.value is None:
            raise Wrong(part.place, "WRONG_TYPE", f"{name}: ids of tasks are expected")
        names.append(part.text)
    return names


def _description(node: Mapping) -> str:
    parts = [_text(node, "description")]
    for name, head in _SECTIONS:
        value = node.get(name)
        text = (
            "\n".join(f"- {line}" for line in _names(node, name)) if isinstance(value, Sequence) else _text(node, name)
        )
        if text.strip():
            parts.append(f"## {head}\n\n{text.strip()}")
    return "\n\n".join(part for part in parts if part)


IMPORTER = Importer(read, has_tags=True)
