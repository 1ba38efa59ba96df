"""Reads plan files: YAML or JSON text in, plans and findings out.

A file has `name`, `title`, `description`, `tracks`, `defaults`, `tasks`, `on_end` and `budget`; a YAML file may hold
several plans, one per document. Reading continues after an error, so that all are shown; only a syntax error ends it.
The engine accepts a plan without errors, unless the store objects: see `check`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tenure.core import ids, inputs, limits
from tenure.core.budgets import USD, parse_amount
from tenure.core.commands import NewTask, NewTrack, Template
from tenure.core.errors import InvalidInput
from tenure.plans import json_trees, links, yaml_trees
from tenure.plans.dialects import in_our_form
from tenure.plans.fields import KEYS, OWN, FieldReader, Fields, expected, merged, text, unknown_key
from tenure.plans.nodes import (
    LARGEST_FILE,
    START,
    Finding,
    Findings,
    Mapping,
    Node,
    Scalar,
    Sequence,
    SourcePosition,
    Unreadable,
    Wrong,
    is_unset,
)

T = TypeVar("T")

TOP = ("name", "title", "description", "tracks", "defaults", "tasks", "on_end", "budget")
MOST_PLANS = limits.PLANS


class PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """One plan of a file. `places` and `relative` belong to `tasks`, one each; the place of "" is the task's."""

    path: str
    name: str | None = None
    title: str = ""
    description: str = ""
    tracks: tuple[NewTrack, ...] = ()
    defaults: dict[str, Any] = {}
    tasks: tuple[NewTask, ...] = ()
    places: tuple[dict[str, SourcePosition], ...] = ()
    relative: tuple[dict[str, int], ...] = ()
    outside: tuple[links.Reference, ...] = ()  # tasks that are not in the file
    track_places: dict[str, SourcePosition] = {}  # of tracks that the file uses and does not define
    on_end: dict[str, Template] = {}
    budget: str | None = None  # dollars


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    plans: tuple[PlanFile, ...]
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> list[Finding]:
        return [f for f in self.findings if f.level == "error"]


def read(source: str | bytes, path: str, now: int) -> Reading:
    """The plans of a text, and its findings; with an error among them there are no plans. Never raises for the text.

    Relative times such as `3d` count from `now`.
    """
    findings = Findings(path)
    plans: list[PlanFile] = []
    try:
        for tree in _trees(_decoded(source), path, findings):
            if len(plans) >= MOST_PLANS:
                raise Unreadable(tree.place, "TOO_LARGE", f"more than {MOST_PLANS} plans in one file")
            plans.append(_PlanReader(findings, now).read(in_our_form(tree)))
        if not plans:
            findings.add(START, "MISSING", "the file is empty", "it needs at least `tasks:`")
    except Unreadable as error:
        findings.put(error)
    _check_names(plans, findings)
    found = tuple(findings.sorted())
    return Reading(plans=() if any(f.level == "error" for f in found) else tuple(plans), findings=found)


def load(path: Path) -> bytes:
    """The bytes of a file, never more than one beyond the limit, which `read` then refuses."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror or error}", "check the path") from None


def name_for(path: str) -> str | None:
    """A plan's name from its file's: `plans/shop.yaml` is shop. None where nothing is left of it."""
    stem = re.sub(r"[^\w.-]+", "-", Path(path).stem).strip("-.")
    return stem[:128] or None


def _decoded(source: str | bytes) -> str:
    if len(source) > LARGEST_FILE:
        raise Unreadable(
            START,
            "TOO_LARGE",
            f"a plan file must be at most {LARGEST_FILE >> 20} MiB",
            "split it into several plans, or put long texts into separate files",
        )
    decoded = source if isinstance(source, str) else _from_utf8(source)
    return decoded.removeprefix("\ufeff")


def _from_utf8(source: bytes) -> str:
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as error:
        before = source[: error.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        place = SourcePosition(before.count(b"\n") + 1, column)
        raise Unreadable(place, "SYNTAX", "not UTF-8 from here", "save the file as UTF-8") from None


def _trees(source: str, path: str, findings: Findings) -> Iterator[Node]:
    if path.endswith(".json"):
        yield json_trees.read_tree(source, findings)
        return
    if source.lstrip()[:1] in ("{", "["):  # JSON under any name, and from a pipe
        attempt = Findings(path)
        try:
            tree = json_trees.read_tree(source, attempt)
        except Unreadable:
            pass
        else:
            findings.found += attempt.found
            yield tree
            return
    yield from yaml_trees.read_trees(source, findings)


def _check_names(plans: list[PlanFile], findings: Findings) -> None:
    seen: set[str | None] = set()
    for plan in plans:
        if len(plans) > 1 and plan.name in seen:
            what = f"plan {plan.name!r} occurs twice" if plan.name else "two plans without a name"
            findings.add(plan.places[0][""] if plan.places else START, "DUPLICATE", what, "give each plan a name")
        seen.add(plan.name)


class _PlanReader:
    """Reads one document."""

    def __init__(self, findings: Findings, now: int) -> None:
        self.findings = findings
        self.fields = FieldReader(findings, now)
        self.defaults = Fields(START)
        self.tasks: list[links.Entry] = []

    def read(self, tree: Node) -> PlanFile:
        if not isinstance(tree, Mapping):
            hint = "begin with `tasks:`, and put the list below it" if isinstance(tree, Sequence) else None
            self.findings.put(expected(tree, "a plan", "a mapping with `tasks`", hint))
            return PlanFile(path=self.findings.path)
        for key, (place, _) in tree.entries.items():
            if key not in TOP:
                self.findings.put(unknown_key(place, key, TOP))
        tracks = self._tracks(tree.get("tracks"))
        self._defaults(tree.get("defaults"))
        self._tasks(tree)
        linked = links.link(self.tasks, self.findings)
        unknown = self._check_tracks({t.code for t in tracks})
        return PlanFile(
            path=self.findings.path, name=self._checked(tree, "name", inputs.check_plan_name),
            title=self._text(tree, "title", 1000),
            description=self._text(tree, "description", inputs.LARGEST_DESCRIPTION), tracks=tuple(tracks),
            defaults=self.defaults.values, tasks=linked.tasks,
            places=tuple({**e.fields.places, "": e.fields.place} for e in self.tasks),
            relative=tuple({**self._inherited(e), **e.fields.relative} for e in self.tasks), outside=linked.outside,
            track_places=unknown, on_end=self.fields.read_ends(tree.get("on_end")),
            budget=self._checked(tree, "budget", _budget),
        )  # fmt: skip

    def _inherited(self, entry: links.Entry) -> dict[str, int]:
        return {n: far for n, far in self.defaults.relative.items() if n not in entry.fields.values}

    def _text(self, tree: Mapping, key: str, largest: int) -> str:
        return self._checked(tree, key, lambda given: inputs.check_text(given, key, largest)) or ""

    def _checked(self, tree: Mapping, key: str, check: Callable[[str], T]) -> T | None:
        node = tree.get(key)
        if node is not None and not is_unset(node):
            with self.findings.catching(node.place):
                return check(text(node, key))
        return None

    def _tracks(self, node: Node | None) -> list[NewTrack]:
        tracks: list[NewTrack] = []
        if node is None or is_unset(node):
            return tracks
        if not isinstance(node, Mapping):
            self.findings.put(expected(node, "tracks", "a mapping from code to name"))
            return tracks
        for code, (place, value) in node.entries.items():
            with self.findings.catching(place):
                track = self._track(code, value)
                inputs.check_track(track.code, track.name, track.purpose)
                tracks.append(track)
        return tracks

    @staticmethod
    def _track(code: str, node: Node) -> NewTrack:
        if isinstance(node, Scalar) and node.value is not None:
            return NewTrack(code=code, name=node.text)
        if not isinstance(node, Mapping):
            raise expected(node, f"tracks.{code}", "its name")
        for key, (place, _) in node.entries.items():
            if key not in ("name", "purpose"):
                raise unknown_key(place, key, ("name", "purpose"), f"tracks.{code}.")
        if node.get("name") is None:
            raise Wrong(node.place, "MISSING", f"tracks.{code}: `name` is missing")
        given = {key: text(value, f"tracks.{code}.{key}") for key, (_, value) in node.entries.items()}
        return NewTrack(code=code, **given)

    def _defaults(self, node: Node | None) -> None:
        if node is None or is_unset(node):
            return
        self.defaults = self.fields.read(node, "defaults", tuple(key for key in KEYS if key not in OWN))
        for name, value in list(self.defaults.values.items()):
            alone = Fields(self.defaults.place, places={name: self.defaults.places[name]})
            if self.fields.checked(alone, {"title": "probe", name: value}) is None:
                del self.defaults.values[name]  # reported once, not for every task

    def _tasks(self, tree: Mapping) -> None:
        node = tree.get("tasks")
        if node is None or is_unset(node):
            self.findings.add(tree.place, "MISSING", "`tasks` is missing", "a plan has at least one task")
            return
        self._list(node, None)
        if not self.tasks:
            self.findings.add(node.place, "MISSING", "no tasks", "a plan has at least one task")

    def _list(self, node: Node, parent: links.Entry | None) -> None:
        what = "subtasks" if parent else "tasks"
        count = len(node.entries if isinstance(node, Mapping) else node.items if isinstance(node, Sequence) else ())
        if len(self.tasks) + count > inputs.LARGEST_PLAN:
            raise Unreadable(
                node.place,
                "TOO_LARGE",
                f"more than {inputs.LARGEST_PLAN} tasks in a plan",
                "split it into several plans",
            )
        if isinstance(node, Mapping):
            for name, (place, value) in node.entries.items():
                self._task(value, parent, (name, place))
        elif isinstance(node, Sequence):
            for item in node.items:
                self._task(item, parent, None)
        else:
            self.findings.put(expected(node, what, "a list of tasks, or a mapping from name to task"))

    def _task(self, node: Node, parent: links.Entry | None, named: tuple[str, SourcePosition] | None) -> None:
        fields = self.fields.read(node, "a task")
        if named is not None:
            name, place = named
            fields.place = place
            given = fields.values.get("name")
            if given is None:  # left out, or null
                fields.values["name"] = name
            elif given != name:
                self.findings.add(fields.places["name"], "DUPLICATE", f"name {given[:60]!r}: its key is {name!r}")
            fields.places.setdefault("name", place)
        fields.waits_for = [*self.defaults.waits_for, *fields.waits_for]
        entry = links.Entry(fields=fields, parent=parent)
        self.tasks.append(entry)
        if parent is not None:
            self._check_subtask(fields)
        if "title" not in fields.values:
            if "title" not in fields.places and isinstance(node, Mapping):
                self.findings.add(fields.place, "MISSING", "a task without a title", "add `title:`")
        else:
            entry.new = self.fields.checked(fields, merged(self._defaults_for(parent), fields.values))
        entry.name = _local_name(fields.values)
        if fields.subtasks is not None:
            self._list(fields.subtasks, entry)

    def _defaults_for(self, parent: links.Entry | None) -> dict[str, Any]:
        """A subtask is in its parent's track, whatever the defaults are."""
        if parent is None:
            return self.defaults.values
        return {n: v for n, v in self.defaults.values.items() if n not in ("track", "parent")}

    def _check_subtask(self, fields: Fields) -> None:
        for name, why in (
            ("key", "a subtask's key follows from its parent's"),
            ("track", "a subtask is in its parent's track"),
            ("parent", "it is listed under its parent already"),
        ):
            if name in fields.values:
                self.findings.add(fields.places[name], "INVALID_INPUT", f"{name}: {why}", "leave it out")
                del fields.values[name]

    def _check_tracks(self, defined: set[str]) -> dict[str, SourcePosition]:
        """The positions of tracks that the file uses and does not define: the store may have them."""
        used: dict[str, SourcePosition] = {}
        for entry in self.tasks:
            if entry.new is None or entry.parent is not None:
                continue
            key = ids.parse_key(entry.new.key) if entry.new.key else None
            code = key.track if key else entry.new.track
            if code is not None and code not in defined:
                place = entry.fields.places.get("key" if key else "track") or self.defaults.places.get("track", START)
                used.setdefault(code, place)
        return used


def _budget(amount: str) -> str:
    parse_amount(amount, USD, "budget")
    return amount


def _local_name(values: dict[str, Any]) -> str | None:
    """The name of the task for other tasks of the plan, and for the engine."""
    for key in ("name", "key"):
        if values.get(key):
            return str(values[key])
    return ids.slug_of(values["title"]) if values.get("title") else None
