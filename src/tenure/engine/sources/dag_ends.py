"""What the end of a dag triggers: templates in the dag itself, by the status that it ends with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tenure.core import inputs
from tenure.core.commands import Template
from tenure.core.records import Dag, Project, replace
from tenure.engine.runtime.unit_of_work import UnitOfWork


def checked(work: UnitOfWork, project: Project, on_end: Mapping[str, Template]) -> dict[str, Any]:
    """The templates as stored in the dag, each checked once; from here on the project's log is read for them."""
    from tenure.core.templates import check_template, stored  # few plans have any
    from tenure.core.triggers import DAG_ENDS
    from tenure.engine.sources.template_tasks import rehearse
    from tenure.engine.sources.triggers import SAMPLE, listen

    for status, template in on_end.items():
        inputs.check_choice(status, tuple(DAG_ENDS.values()), "on_end")
        rehearse(work, project, check_template(template), SAMPLE, lambda _: None)
    listen(work, project.id)
    return {status: stored(template) for status, template in on_end.items()}


def changed(work: UnitOfWork, dag: Dag, on_end: dict[str, Any]) -> Dag:
    """The dag with the templates of its current plan."""
    if dag.on_end == on_end:
        return dag
    dag = replace(dag, on_end=on_end)
    work.record("dag.changed", dag, project=dag.project, details={"dag": dag.id, "on_end": sorted(on_end)})
    return dag
