"""Options of `schedule add` and `trigger add` for the tasks to create: a title with options, or a plan file."""

from __future__ import annotations

from argparse import Namespace

from tenure.cli.create import FIELDS, fields_of
from tenure.cli.main import Option, Run, Usage, arg
from tenure.cli.option_kinds import seconds
from tenure.core.commands import NewTask, Template

# Without options for an instant: the task is created again and again.
TEMPLATE: tuple[Option, ...] = (
    arg("title", nargs="?", help="title of the task; may have placeholders, as in 'Triage of {tick.date}'"),
    arg("--plan", metavar="FILE", help="or the tasks of a plan file, as a dag each time; - reads stdin"),
    arg("--track", metavar="CODE", help="the track, as B or C (else the project's default)"),
    arg("--type", metavar="NAME", help="what kind of work: code, research, review …"),
    arg("--deadline-in", type=seconds, metavar="DURATION", help="deadline after its creation, as in 6h"),
    *(option for option in FIELDS if option[0][0] != "--deadline"),
)


def template_of(run: Run, given: Namespace) -> Template:
    if (given.title is None) == (given.plan is None):
        raise Usage(f"{run.verb}: pass either a title or --plan FILE")
    if given.plan is not None:
        return _planned(run, given)
    given.deadline = None
    fields = fields_of(given)
    for name in ("track", "type"):
        if getattr(given, name) is not None:
            fields[name] = getattr(given, name)
    return Template(tasks=(NewTask(title=given.title, **fields),), deadline_in=given.deadline_in)


def _planned(run: Run, given: Namespace) -> Template:
    from tenure.cli.plan import source_of
    from tenure.plans import check, files

    source, path = source_of(run, given.plan)
    plans = check.plans_of(files.read(source, path, 0))
    if len(plans) != 1:
        raise Usage(f"{run.verb}: --plan: the file must hold one plan (it holds {len(plans)})")
    return Template(tasks=plans[0].tasks, title=plans[0].title, deadline_in=given.deadline_in)
