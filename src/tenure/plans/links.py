"""How the tasks of a file are connected: names, dependencies, parents. A wrong one becomes a finding."""

from __future__ import annotations

import msgspec

from tenure.core import graph, ids, inputs, limits
from tenure.core.commands import Dependency, NewTask
from tenure.core.errors import Cycle
from tenure.plans.fields import Fields, error_of
from tenure.plans.nodes import Findings, SourcePosition

MOST_SUGGESTED = limits.PLAN_SUGGESTIONS
MOST_CIRCLES = limits.PLAN_CYCLES


class Entry(msgspec.Struct, eq=False):
    """A task of the file. `new` is None where its fields are wrong."""

    fields: Fields
    parent: Entry | None = None
    new: NewTask | None = None
    name: str | None = None


class Reference(msgspec.Struct, frozen=True):
    """A task that is not in the file, and the position of its name."""

    name: str
    place: SourcePosition


class Linked(msgspec.Struct, frozen=True):
    tasks: tuple[NewTask, ...]
    outside: tuple[Reference, ...]


def is_key(name: str) -> bool:
    """Could this be a task of the store? Keys and ids can; other names are names of the file."""
    return name.startswith("task_") or ids.parse_key(name) is not None


def link(entries: list[Entry], findings: Findings) -> Linked:
    return _Linker(entries, findings).link()


class _Linker:
    def __init__(self, entries: list[Entry], findings: Findings) -> None:
        self.entries = entries
        self.findings = findings
        self.by_name: dict[str, Entry] = {}
        self.outside: list[Reference] = []
        self.suggested = 0
        self.needs: dict[str, list[str]] = {}  # by number of the entry, to find cycles
        self.number = {id(entry): str(n) for n, entry in enumerate(entries)}

    def link(self) -> Linked:
        for entry in self.entries:
            self._register(entry)
        tasks = []
        for entry in self.entries:
            waits_for = self._resolved(entry)
            if entry.new is not None:
                named = {} if entry.new.key or entry.new.name else {"name": entry.name}
                parent = {"parent": self._ref(entry.parent)} if entry.parent else self._parent(entry)
                tasks.append(msgspec.structs.replace(entry.new, depends_on=waits_for, **named, **parent))
        self._check_sizes()
        self._check_circles()
        return Linked(tuple(tasks), tuple(self.outside))

    @staticmethod
    def _ref(entry: Entry) -> str | None:
        return entry.fields.values.get("name") or entry.fields.values.get("key") or entry.name

    def _register(self, entry: Entry) -> None:
        values, places = entry.fields.values, entry.fields.places
        key = ids.parse_key(values["key"]) if values.get("key") else None
        wanted = dict.fromkeys(n for n in (entry.name, values.get("key"), key.ref if key else None) if n)
        for name in wanted:
            other = self.by_name.setdefault(name, entry)
            if other is entry:
                continue
            given = next((f for f in ("name", "key") if f in places), "title")
            hint = "give one of them a different name" if given == "title" else None
            self.findings.add(
                places.get(given, entry.fields.place), "DUPLICATE",
                f"{name[:80]!r} occurs twice; first in line {other.fields.place.line}", hint,
            )  # fmt: skip
            return

    # --- references ---

    def _resolved(self, entry: Entry) -> tuple[Dependency | str, ...]:
        """The task's dependencies, by names that the engine resolves; edges go into `needs`."""
        number = self.number[id(entry)]
        edges = self.needs.setdefault(number, [])
        if entry.parent is not None:  # a declared subtask blocks its parent
            self.needs.setdefault(self.number[id(entry.parent)], []).append(number)
        wanted: dict[str, Dependency | str] = {}
        for dependency, place in entry.fields.waits_for:
            found = self._found(dependency.task, place, "depends_on")
            if found is None:
                continue
            if isinstance(found, Entry):
                if found is entry:
                    self.findings.add(place, "SELF_DEPENDENCY", f"{dependency.task[:80]!r} depends on itself")
                    continue
                edges.append(self.number[id(found)])
            ref = (self._ref(found) or "") if isinstance(found, Entry) else found
            if ref in wanted:
                self.findings.add(place, "DUPLICATE", f"depends_on: {dependency.task[:80]!r} occurs twice")
            wanted[ref] = ref
            if dependency.on_failure != "block":
                wanted[ref] = kept = Dependency(task=ref, on_failure=dependency.on_failure)
                self._ask((kept,), place)
        if wanted:
            self._ask(tuple(wanted), entry.fields.places.get("depends_on", entry.fields.place))
        return tuple(wanted.values())

    def _ask(self, waits_for: tuple[Dependency | str, ...], place: SourcePosition) -> None:
        error = error_of({"title": "probe", "depends_on": waits_for})
        if error is not None:
            self.findings.add(place, error.code, error.message, error.hint)

    def _found(self, name: str, place: SourcePosition, what: str) -> Entry | str | None:
        """The file's task of this name, or the name itself where the store may have it."""
        entry = self.by_name.get(name)
        if entry is not None:
            return entry
        if is_key(name):
            self.outside.append(Reference(name, place))
            return name
        near = ""
        if self.suggested < MOST_SUGGESTED:
            self.suggested += 1
            near = inputs.suggestion(name, self.by_name).removeprefix("; ")
        self.findings.add(
            place, "UNKNOWN_TASK", f"{what}: no task {name[:80]!r} in this file",
            near or "name a task of the store by its key, as in B-003",
        )  # fmt: skip
        return None

    def _parent(self, entry: Entry) -> dict[str, str | None]:
        """`parent:` names a task of the file or of the store."""
        given = entry.fields.values.get("parent")
        if given is None:
            return {}
        place = entry.fields.places["parent"]
        found = self._found(given, place, "parent")
        if isinstance(found, Entry):
            if found is entry:
                self.findings.add(place, "SELF_DEPENDENCY", f"{given[:80]!r} is its own parent")
                return {}
            entry.parent = found
            self.needs.setdefault(self.number[id(found)], []).append(self.number[id(entry)])
            return {"parent": self._ref(found)}
        return {"parent": found}

    # --- the whole ---

    def _check_sizes(self) -> None:
        children: dict[str, int] = {}
        lineage: dict[str, int] = {}
        for entry in self.entries:
            depth, root, seen = 0, entry, {id(entry)}
            while root.parent is not None and id(root.parent) not in seen:
                root, depth = root.parent, depth + 1
                seen.add(id(root))
            if depth > graph.DEEPEST_SUBTASK:
                self.findings.add(entry.fields.place, "TOO_LARGE", f"subtasks go at most {graph.DEEPEST_SUBTASK} deep")
            if entry.parent is None:
                continue
            for counts, holder, most, what in (
                (children, entry.parent, graph.MOST_CHILDREN, "subtasks"),
                (lineage, root, graph.LARGEST_LINEAGE - 1, "tasks below it"),
            ):
                number = self.number[id(holder)]
                counts[number] = counts.get(number, 0) + 1
                if counts[number] == most + 1:
                    self.findings.add(
                        holder.fields.place, "TOO_LARGE", f"{holder.name or 'a task'!s:.80}: more than {most} {what}"
                    )

    def _check_circles(self) -> None:
        names = {
            n: entry.name or f"line {entry.fields.place.line}"
            for n, entry in ((self.number[id(e)], e) for e in self.entries)
        }
        for _ in range(MOST_CIRCLES):
            try:
                graph.check_acyclic(self.needs, names)
            except Cycle as cycle:
                first = self.entries[min(int(n) for n in cycle.circle)]
                places = first.fields.places
                self.findings.add(places.get("depends_on", first.fields.place), cycle.code, cycle.message)
                for one, next_ in zip(cycle.circle, cycle.circle[1:], strict=False):
                    self.needs[one] = [n for n in self.needs[one] if n != next_]
            else:
                return
