"""The importers by name, and `read`, which makes a plan with one of them."""

from __future__ import annotations

from pathlib import Path

from tenure.core.errors import InvalidInput
from tenure.core.inputs import suggestion
from tenure.plans.importers.item_plan import Imported, plan_of
from tenure.plans.importers.port import Importer, Report

GROUP = "tenure.importers"
NAMES = ("beads", "task-master", "backlog")


def read(tool: str, path: Path, *, tag: str | None = None, skip_bad: bool = False) -> Imported:
    """The open work of another tool as a plan."""
    importer = importer_of(tool)
    if tag is not None and not importer.has_tags:
        raise InvalidInput(f"{tool} has no tags to choose from (got --tag {tag[:60]!r})", "leave --tag out")
    report = Report(skip_bad=skip_bad)
    found = importer.read(path, report, tag)
    return plan_of(tool, found, report)


def importer_of(name: str) -> Importer:
    """The importer of this name; InvalidInput where there is none."""
    if name == "beads":
        from tenure.plans.importers import beads

        return beads.IMPORTER
    if name == "task-master":
        from tenure.plans.importers import task_master

        return task_master.IMPORTER
    if name == "backlog":
        from tenure.plans.importers import backlog_md

        return backlog_md.IMPORTER
    return _of_third_party(name)


def _of_third_party(name: str) -> Importer:
    from importlib.metadata import entry_points

    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in known:
        names = (*NAMES, *sorted(known))
        raise InvalidInput(
            f"there is no importer {name[:60]!r}{suggestion(name, names)}", f"there are: {', '.join(names)}"
        )
    importer: Importer = known[name].load()
    return importer
