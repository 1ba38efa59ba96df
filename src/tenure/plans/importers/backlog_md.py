"""Tasks of Backlog.md: a folder `backlog/` with one Markdown file per task, front matter on top, and a `config.yml`.

`tasks/` has the open and recently finished ones, `completed/` and `archive/tasks/` the older ones, `drafts/` those that
nobody has agreed on yet. The last of the configured statuses is that of finished tasks.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from tenure.core.commands import Dependency
from tenure.core.errors import InvalidInput
from tenure.core.written_times import parse_instant
from tenure.plans.importers.port import DONE, DROPPED, OPEN, Importer, Item, Items, Report, read_source
from tenure.plans.nodes import Findings, Mapping, Node, Scalar, Sequence, SourcePosition, Unreadable
from tenure.plans.yaml_text import scalar
from tenure.plans.yaml_trees import read_trees

FOLDERS = {"tasks": OPEN, "completed": DONE, "archive/tasks": DROPPED, "drafts": OPEN}
CONFIGS = ("config.yml", "config.yaml")
ROOT_CONFIG = "backlog.config.yml"
PRIORITIES = {"critical": 0, "high": 20, "medium": 50, "low": 70}
STATUSES = ("To Do", "In Progress", "Done")
_MARKER = re.compile(r"^[ \t]*<!--\s*(?:SECTION:[A-Z_]+|AC|DOD|COMMENTS?):(?:BEGIN|END)\s*-->[ \t]*\n?", re.MULTILINE)
_FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PERSON = re.compile(r"((?:assignee|reporter):\s*|\s*-\s+)(@.*?)\s*")
_PEOPLE = re.compile(r"((?:assignee|reporter):\s*)\[(.*)\]\s*")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Config(msgspec.Struct):
    """The part of the configuration that is needed to read tasks."""

    statuses: tuple[str, ...] = STATUSES
    priorities: tuple[str, ...] = ()


def read(path: Path, report: Report, tag: str | None = None) -> Items:
    """The open tasks and drafts of a backlog."""
    folder = find(path)
    config = _config(folder, report)
    items = []
    for name, status in FOLDERS.items():
        for file in sorted((folder / name).glob("*.md")):
            item = _Reader(file, config, report).read(status, is_draft=name == "drafts")
            if item is not None:
                items.append(item)
    _meet(items)
    return Items(str(folder), items)


def find(path: Path) -> Path:
    """The folder of the backlog: the path itself, or under its usual or configured name in a repository."""
    if (path / "tasks").is_dir():
        return path
    configured = _custom(path / ROOT_CONFIG) if (path / ROOT_CONFIG).is_file() else None
    for name in (*([configured] if configured else []), "backlog", ".backlog"):
        if (path / name / "tasks").is_dir():
            return path / name
    raise InvalidInput(f"{path}: no backlog/tasks here", "name the repository, or the folder of the backlog")


def _custom(config: Path) -> str | None:
    tree = _tree(read_source(config).decode("utf-8", "replace"), str(config))
    named = tree.get("backlog_directory") if tree else None
    if not isinstance(named, Scalar) or not named.text or Path(named.text).is_absolute() or ".." in named.text:
        return None
    return named.text


def _tree(text: str, path: str) -> Mapping | None:
    """The first document where it is a mapping; None where it cannot be read."""
    try:
        tree = next(iter(read_trees(text, Findings(path))), None)
    except Unreadable:
        return None
    return tree if isinstance(tree, Mapping) else None


def _config(folder: Path, report: Report) -> Config:
    for file in (*(folder / name for name in CONFIGS), folder.parent / ROOT_CONFIG):
        if not file.is_file():
            continue
        tree = _tree(read_source(file).decode("utf-8", "replace"), str(file))
        if tree is None:
            report.bad(str(file), SourcePosition(1, 1), "SYNTAX", "the configuration cannot be read", "is it YAML?")
            return Config()
        return Config(_texts(tree.get("statuses")) or STATUSES, _texts(tree.get("priorities")))
    return Config()


def _texts(node: Node | None) -> tuple[str, ...]:
    """A list of texts; a lone text is a list of one."""
    if isinstance(node, Sequence):
        return tuple(part.text for part in node.items if isinstance(part, Scalar) and part.value is not None)
    return (node.text,) if isinstance(node, Scalar) and node.value is not None and node.text else ()


def _quoted(line: str) -> str:
    """Names such as @mara are not quoted there, though YAML reserves `@`."""
    person, people = _PERSON.fullmatch(line), _PEOPLE.fullmatch(line)
    if person:
        return person.group(1) + scalar(person.group(2))
    if people:
        names = (name.strip() for name in people.group(2).split(","))
        return f"{people.group(1)}[{', '.join(scalar(n) if n.startswith('@') else n for n in names)}]"
    return line


def _same(id: str) -> str:
    """Ids are compared without case and without leading zeros: TASK-07.1 is task-7.1."""
    return re.sub(r"(?<!\d)0+(?=\d)", "", id.strip().lower())


def _meet(items: list[Item]) -> None:
    """Write references as the tasks write their ids."""
    spelled = {_same(item.id): item.id for item in items}
    for item in items:
        item.depends_on = [Dependency(task=spelled.get(_same(d.task), d.task)) for d in item.depends_on]
        if item.parent is not None:
            item.parent = spelled.get(_same(item.parent), item.parent)


class _Reader:
    """Reads one file."""

    def __init__(self, file: Path, config: Config, report: Report) -> None:
        self.file, self.config, self.report = file, config, report
        self.path = str(file)

    def read(self, status: str, *, is_draft: bool) -> Item | None:
        try:
            source = read_source(self.file).decode("utf-8").removeprefix("\ufeff")
        except (UnicodeDecodeError, InvalidInput):
            self.report.bad(self.path, SourcePosition(1, 1), "SYNTAX", "cannot be read as UTF-8")
            return None
        match = _FRONT.match(source)
        if match is None:
            self.report.bad(self.path, SourcePosition(1, 1), "SYNTAX", "no front matter between two lines of ---")
            return None
        tree = self._front(match.group(1))
        if tree is None:
            return None
        id, title = self._text(tree, "id"), self._text(tree, "title")
        if not id or not title.strip():
            self.report.bad(self.path, tree.place, "MISSING", "a task without an id or a title")
            return None
        body = _MARKER.sub("", source[match.end() :].replace("\r\n", "\n")).strip()
        item = Item(id=id, title=title, path=self.path, place=tree.place, status=status, description=body)
        self._fill(item, tree)
        self._stand(item, self._text(tree, "status"), is_draft)
        return item

    def _front(self, text: str) -> Mapping | None:
        """The front matter as a mapping. A blank line replaces the `---`, so that its lines are those of the file."""
        quoted = "\n".join(_quoted(line) for line in text.split("\n"))
        findings = Findings(self.path)
        try:
            tree = next(iter(read_trees("\n" + quoted, findings)), None)
        except Unreadable as error:
            self.report.put(self.path, [error])
            return None
        self.report.put(self.path, findings.found)
        if not isinstance(tree, Mapping):
            self.report.bad(self.path, SourcePosition(2, 1), "WRONG_TYPE", "the front matter is not a mapping")
            return None
        return tree

    @staticmethod
    def _text(tree: Mapping, name: str) -> str:
        node = tree.get(name)
        return node.text if isinstance(node, Scalar) and node.value is not None else ""

    def _fill(self, item: Item, tree: Mapping) -> None:
        item.metadata = {"imported_from": "backlog", "id": item.id}
        for name in ("milestone", "created_date", "ordinal", "reporter"):
            if self._text(tree, name):
                item.metadata[name] = self._text(tree, name)
        for name in ("assignee", "references", "documentation"):
            if _texts(tree.get(name)):
                item.metadata[name] = list(_texts(tree.get(name)))
        item.tags = list(_texts(tree.get("labels")))
        if self._text(tree, "milestone"):
            item.tags.append(f"milestone:{self._text(tree, 'milestone')}")
        item.type = self._text(tree, "type") or "code"
        item.depends_on = [Dependency(task=name) for name in _texts(tree.get("dependencies"))]
        item.parent = self._text(tree, "parent_task_id") or None
        item.priority = self._priority(item, self._text(tree, "priority"))
        due = self._text(tree, "due_date")
        if due:
            item.deadline = self._deadline(item, due)

    def _priority(self, item: Item, given: str) -> int:
        word = given.lower()
        if not word or word in PRIORITIES:
            return PRIORITIES.get(word, 50)
        words = [name.lower() for name in self.config.priorities]
        if word not in words:
            self.report.note(item, "changed", f"priority {given[:40]!r} is taken as medium")
            return 50
        # The first of configured priorities is high, the last is low.
        return round(20 + 50 * words.index(word) / max(1, len(words) - 1))

    def _deadline(self, item: Item, due: str) -> int | None:
        """A day ends at midnight UTC; times in these files have no zone."""
        try:
            text = f"{due}T23:59:59Z" if _DAY.fullmatch(due) else f"{due.replace(' ', 'T')}Z"
            return parse_instant(text, "due_date", 0).instant
        except InvalidInput:
            self.report.note(item, "kept", f"due_date {due[:40]!r} is only in the metadata")
            item.metadata["due_date"] = due
            return None

    def _stand(self, item: Item, status: str, is_draft: bool) -> None:
        word = status.strip().lower()
        known = [name.lower() for name in self.config.statuses]
        if item.status == DROPPED:
            item.was = "archived"
        elif item.status == DONE or word == known[-1]:
            item.status, item.was = DONE, status or "completed"
        elif is_draft or word == "draft":
            item.draft = "a draft there"
        elif word and word not in known:
            item.draft = f"status {status[:60]!r}, which is not configured"
        elif known.index(word) if word else 0:
            item.was = status


IMPORTER = Importer(read)
