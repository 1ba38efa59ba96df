"""Items of another tool as a plan.

No history is invented. An item that is done is not created; its dependents do not wait for it. A begun one becomes
ready. A second import recognises tasks by the plan's name and the items' ids, so nothing is created twice. An
unreadable part stops the whole import, unless bad parts are skipped; each is reported.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tenure.core import graph, inputs
from tenure.core.commands import Dependency, NewTask
from tenure.core.errors import Cycle
from tenure.plans.fields import error_of
from tenure.plans.files import PlanFile
from tenure.plans.importers.port import DONE, DROPPED, Item, Items, Note, Report
from tenure.plans.nodes import Finding

SHORTENED = 2000


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """`plan` is None where there is nothing to create, or where an error was not to be skipped."""

    tool: str
    plan: PlanFile | None
    notes: tuple[Note, ...]
    findings: tuple[Finding, ...]
    seen: int

    @property
    def errors(self) -> list[Finding]:
        return [f for f in self.findings if f.level == "error"]


def plan_of(tool: str, found: Items, report: Report) -> Imported:
    """A plan of the open items."""
    tasks = _ItemPlan(found.items, report).tasks()
    findings = tuple(sorted(report.findings, key=lambda f: (f.path, f.line, f.column)))
    plan = None
    if tasks and not any(f.level == "error" for f in findings):
        plan = PlanFile(
            path=found.path, name=f"import-{tool}", title=f"Imported from {tool}", tasks=tuple(new for _, new in tasks),
            places=tuple({"": item.place} for item, _ in tasks), relative=tuple({} for _ in tasks),
        )  # fmt: skip
    return Imported(tool=tool, plan=plan, notes=tuple(report.notes), findings=findings, seen=len(found.items))


class _ItemPlan:
    def __init__(self, items: list[Item], report: Report) -> None:
        self.report = report
        self.items: dict[str, Item] = {}
        for item in items:
            first = self.items.setdefault(item.id, item)
            if first is not item:
                where = f"{first.path}:{first.place.line}" if first.path != item.path else f"line {first.place.line}"
                report.bad(item.path, item.place, "DUPLICATE", f"{item.id[:80]!r} occurs twice; first in {where}")
        self.made: dict[str, NewTask] = {}
        self.parents: dict[str, str] = {}
        self.waits_for: dict[str, dict[str, Dependency]] = {}

    def tasks(self) -> list[tuple[Item, NewTask]]:
        for item in self.items.values():
            self._start(item)
        for id in self.made:
            self._parent(self.items[id])
        for id in self.made:
            self._dependencies(self.items[id])
        self._fit_lineages()
        self._break_cycles()
        return [(self.items[id], self._finished(id)) for id in self.made]

    # --- each item ---

    def _start(self, item: Item) -> None:
        """Create the task of an open item, by the engine's rules."""
        if item.status == DONE:
            self.report.note(item, "done", f"{item.was or 'done'} there: not created")
            return
        if item.status == DROPPED:
            self.report.note(item, "dropped", f"{item.was}: not created")
            return
        values = self._values(item)
        error = error_of(values)
        if error is not None:
            self.report.bad(item.path, item.place, error.code, f"{item.id[:80]}: {error.message}", error.hint)
            return
        self.made[item.id] = NewTask(**values)
        if item.draft:
            self.report.note(item, "draft", f"{item.draft}: nobody can claim it until it is published")
        elif item.was:
            self.report.note(item, "begun", f"{item.was} there: nobody holds it here")

    def _values(self, item: Item) -> dict[str, Any]:
        title, description, spec = self._texts(item)
        values: dict[str, Any] = {
            "name": item.id, "title": title, "description": description, "spec": spec, "type": item.type,
            "priority": item.priority, "tags": self._tags(item), "deadline": item.deadline,
            "not_before": item.not_before, "draft": bool(item.draft), "metadata": item.metadata,
        }  # fmt: skip
        if item.estimated:
            values["constraints"] = {"estimated_duration": item.estimated}
        return values

    def _texts(self, item: Item) -> tuple[str, str, dict[str, str]]:
        title = " ".join(item.title.split())
        description = item.description.strip()
        if len(title) > inputs.LONGEST_TITLE:
            description = f"{title}\n\n{description}".strip()
            title = title[: inputs.LONGEST_TITLE - 1] + "…"
            self.report.note(item, "changed", "the title is shortened; the description begins with all of it")
        if len(description.encode("utf-8", "replace")) <= inputs.LARGEST_DESCRIPTION:
            return title, description, {}
        self.report.note(item, "changed", "the description is long: all of it is in spec.prompt")
        return title, description[:SHORTENED] + "…", {"prompt": description}

    def _tags(self, item: Item) -> tuple[str, ...]:
        tags = []
        for given in item.tags:
            tag = given.replace(",", "-").replace("|", "-").strip()[:200]
            if tag != given:
                self.report.note(item, "changed", f"label {given[:60]!r} became the tag {tag[:60]!r}")
            if tag:
                tags.append(tag)
        if len(tags) > inputs.MOST_LISTED:
            self.report.note(item, "changed", f"{len(tags)} labels: the first {inputs.MOST_LISTED} became tags")
        return tuple(dict.fromkeys(tags))[: inputs.MOST_LISTED]

    # --- between items ---

    def _parent(self, item: Item) -> None:
        if item.parent is None:
            return
        if item.parent in self.made and item.parent != item.id:
            self.parents[item.id] = item.parent
        elif item.parent in self.items and item.parent != item.id:
            self.report.note(item, "parent", f"its parent {item.parent[:80]} is not created: it has no parent here")
        else:
            self._lost(item, "parent", item.parent)

    def _dependencies(self, item: Item) -> None:
        wanted = self.waits_for.setdefault(item.id, {})
        for dependency in item.depends_on:
            needed = self.items.get(dependency.task)
            if needed is None or needed is item:
                self._lost(item, "depends_on", dependency.task)
            elif needed.id in self.made:
                if self.parents.get(needed.id) != item.id:  # a task waits for its subtasks anyway
                    wanted[needed.id] = dependency
            elif needed.status == DONE:
                self.report.note(item, "met", f"waited for {needed.id[:80]}, which is done")
            else:
                self.report.note(item, "loosened", f"waited for {needed.id[:80]}, which is not created: waits no more")

    def _lost(self, item: Item, what: str, name: str) -> None:
        why = "is itself" if name == item.id else "does not exist"
        self.report.bad(item.path, item.place, "UNKNOWN_TASK", f"{item.id[:80]}: {what} {name[:80]!r}, which {why}")

    def _fit_lineages(self) -> None:
        """A family beyond the limits of subtasks becomes separate tasks, which the parent depends on."""
        children: dict[str, list[str]] = {}
        for child, parent in self.parents.items():
            children.setdefault(parent, []).append(child)
        for id in list(children):
            if id in self.parents:
                continue
            if self._depth(id, children) > graph.DEEPEST_SUBTASK or self._is_wide(id, children):
                self._flatten(id, children)

    def _depth(self, root: str, children: dict[str, list[str]]) -> int:
        level, depth = children.get(root, []), 0
        while level and depth <= graph.DEEPEST_SUBTASK:
            level, depth = [grandchild for child in level for grandchild in children.get(child, ())], depth + 1
        return depth

    def _is_wide(self, root: str, children: dict[str, list[str]]) -> bool:
        family = self._family(root, children)
        return len(family) > graph.LARGEST_LINEAGE or any(
            len(children.get(id, ())) > graph.MOST_CHILDREN for id in family
        )

    @staticmethod
    def _family(root: str, children: dict[str, list[str]]) -> list[str]:
        family, seen = [root], {root}
        for id in family:
            family += [child for child in children.get(id, ()) if child not in seen]
            seen.update(children.get(id, ()))
        return family

    def _flatten(self, root: str, children: dict[str, list[str]]) -> None:
        for parent in self._family(root, children):
            below = children.get(parent, [])
            if not below:
                continue
            self.report.note(
                self.items[parent], "parent", f"{len(below)} subtasks become separate tasks that it waits for"
            )
            for child in below:
                self.parents.pop(child, None)
                self.waits_for[parent].setdefault(child, Dependency(task=child))

    def _break_cycles(self) -> None:
        """A cycle is an error; where bad parts are skipped, one dependency of each is left out."""
        while True:
            needs: dict[str, list[str]] = {id: list(wanted) for id, wanted in self.waits_for.items()}
            for child, parent in self.parents.items():
                needs[parent].append(child)
            try:
                graph.check_acyclic(needs, {})
            except Cycle as cycle:
                self._break(cycle)
                if not self.report.skip_bad:
                    return
            else:
                return

    def _break(self, cycle: Cycle) -> None:
        pairs = list(zip(cycle.circle, cycle.circle[1:], strict=False))
        item = self.items[cycle.circle[0]]
        self.report.bad(item.path, item.place, cycle.code, cycle.message)
        for waiting, needed in pairs:
            if needed in self.waits_for[waiting]:
                del self.waits_for[waiting][needed]
                self.report.note(self.items[waiting], "loosened", f"waits no more for {needed[:80]}: a cycle")
                return
        child = pairs[0][1]  # only parents: one of them is dropped
        self.report.note(self.items[child], "parent", "its parents form a cycle: it has no parent here")
        del self.parents[child]

    def _finished(self, id: str) -> NewTask:
        waits_for = tuple(
            needed if dependency.on_failure == "block" else Dependency(task=needed, on_failure=dependency.on_failure)
            for needed, dependency in self.waits_for[id].items()
        )
        return msgspec.structs.replace(self.made[id], parent=self.parents.get(id), depends_on=waits_for)
