"""`forecast`: when the open tasks, or those of a plan file, end and what they cost."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from tenure.cli.main import Answer, Run, arg, options, shown
from tenure.cli.plan import STDIN, refused, source_of
from tenure.cli.text_format import counted, lasting, moment, plain, shorten, style, table
from tenure.core.budgets import USD
from tenure.core.errors import InvalidInput
from tenure.plans import files
from tenure.plans.check import proven

_WAITS = {"dependency": "the task above", "agent": "an agent", "time": "its time", "start": ""}
_AGENTS = {"active now": "active now", "assumed": "assumed: none is active", "given": "", "pool": "the pool's size"}
_SOURCES = {
    "like tasks": "from finished tasks of its type and size",
    "same type": "from finished tasks of its type",
    "other tasks": "from other finished tasks",
    "estimate": "from its own estimate",
    "nothing": "15 minutes assumed",
}


@options(
    arg("plan", nargs="?", metavar="FILE|PLAN|DAG", help="a plan file, or the name of a plan or dag here (all tasks)"),
    arg("-n", "--agents", type=int, metavar="N", help="so many agents work on it (those active now)"),
    arg("--pool", metavar="NAME", help="as many as this pool starts"),
    arg("--runs", type=int, default=200, metavar="N", help="how often it is played (200)"),
    arg("--seed", type=int, default=0, metavar="N", help="repeats the same draws (0)"),
)
def forecast(run: Run, given: Namespace) -> Answer:
    """Forecast when the open tasks end and what they cost.

    The remaining graph is played many times by the rules of claims and retries. Durations, costs and failures are
    drawn from finished tasks of the same type and size, else from estimates. Nothing is stored; a plan file is added
    to the open tasks only for the forecast.
    """
    asked: dict[str, Any] = {"agents": given.agents, "pool": given.pool, "runs": given.runs, "seed": given.seed}
    if given.plan is not None and (given.plan == STDIN or _is_file(run, given.plan)):
        source, path = source_of(run, given.plan)
        reading = proven(files.read(source, path, run.client.status()["now"]), run.client)
        if reading.errors:
            return refused(run, reading.findings, path, "fix them and forecast again")
        if len(reading.plans) != 1:
            raise InvalidInput(f"{path}: holds {len(reading.plans)} plans; a forecast is about one")
        (plan,) = reading.plans
        name = plan.name or files.name_for(plan.path)
        asked |= {"tasks": plan.tasks, "tracks": plan.tracks, "name": name, "budget": plan.budget}
    elif given.plan is not None:
        asked["dag"] = given.plan
    return shown(run.client.forecast(**asked), _text)


def _is_file(run: Run, name: str) -> bool:
    from pathlib import Path

    return Path(run.folder, name).is_file()


def _text(found: Mapping[str, Any]) -> str:
    if not found["tasks"]:
        return "no open tasks"
    agents = counted(found["agents"], "agent")
    how = _AGENTS.get(found["agents_are"], "")
    runs = f"{counted(found['runs'], 'run')} with seed {found['seed']}"
    parts = [f"{_about(found)}, {agents}{f' ({how})' if how else ''}, {runs}"]
    if found["finish"] is None:
        return "\n\n".join([*parts, "no run ends any of them", *_left_out(found)])
    parts += [_figures(found), "\n".join(_sentences(found)), _path(found), _basis(found), *_left_out(found)]
    return "\n\n".join(part for part in parts if part)


def _about(found: Mapping[str, Any]) -> str:
    """The tasks whose end the figures are, among the open ones."""
    tasks, left_out = found["tasks"], found["left_out_count"]
    return f"{tasks - left_out} of {counted(tasks, 'open task')}" if left_out else counted(tasks, "open task")


def _figures(found: Mapping[str, Any]) -> str:
    finish, cost, now = found["finish"], found["cost"], found["now"]
    rows: list[tuple[object, ...]] = [
        ("finish", *(f"{moment(finish[f'{p}_at'], now)} (in {lasting(finish[p])})" for p in ("p50", "p90")))
    ]
    if cost is not None:
        rows.append(("cost", *(f"${cost[p]}" for p in ("p50", "p90"))))
    return table(rows, ("", "half of the runs (p50)", "9 of 10 runs (p90)"))


def _sentences(found: Mapping[str, Any]) -> list[str]:
    lines = []
    more, cost, dead = found["one_more"], found["cost"], found["dead_letters"]
    if more is not None:
        gain = f"ends it {lasting(more['saves'])} sooner" if more["saves"] >= 1 else "does not end it sooner"
        lines.append(f"one agent more ({more['agents']}) {gain}")
    for budget in found["budgets"]:
        left = f"${budget['left']}" if budget["currency"] == USD else f"{budget['left']:,} tokens"
        text = f"budget {plain(budget['id'])}: {left} left"
        if budget["lasts"] == 1:
            lines.append(f"{text}; it lasts")
        else:
            spent = f"; else it is spent at {moment(budget['ends_at'], found['now'])}"
            lines.append(style(f"{text}; it lasts in {budget['lasts']:.0%} of the runs{spent}", "yellow"))
    if cost is None:
        lines.append("no cost is known: no finished task has reported usage, and no task has an estimate")
    elif cost["unknown"]:
        lines.append(f"{counted(cost['unknown'], 'task')} without a known cost, not in the sum")
    if dead:
        lines.append(f"a task fails for good and needs a person in {dead:.0%} of the runs; they go on with its retry")
    return lines


def _path(found: Mapping[str, Any]) -> str:
    rows = [
        (
            shorten(plain(p["key"]), 28),
            shorten(plain(p["title"]), 34),
            lasting(p["begins"]),
            lasting(p["ends"]),
            _WAITS[p["why"]],
            f"{p['share']:.0%}",
        )
        for p in found["path"]
    ]
    if not rows:
        return ""
    shown = rows if len(rows) <= STEPS else [*rows[: STEPS // 2], ("…",) * 6, *rows[-(STEPS // 2) :]]
    head = style("the path that decides", "bold") + " (of the run in the middle)"
    return f"{head}\n{table(shown, ('task', 'title', 'begins in', 'ends in', 'waits for', 'of all runs'), indent='  ')}"


STEPS = 16


def _basis(found: Mapping[str, Any]) -> str:
    sources = [f"  {count:>5}  {_SOURCES[name]}" for name, count in found["sources"].items()]
    drawn = f"{found['guessed']:.0%} of the work is guessed; {counted(found['finished'], 'finished attempt')} known"
    return "\n".join([drawn, *sources])


def _left_out(found: Mapping[str, Any]) -> list[str]:
    if not found["left_out_count"]:
        return []
    causes = ", ".join(f"{why}: {count}" for why, count in found["left_out_why"].items())
    lines = [f"{counted(found['left_out_count'], 'open task')} not in it ({causes}):"]
    lines += [f"  {plain(one['key'])} {plain(one['why'])}" for one in found["left_out"]]
    if found["left_out_count"] > len(found["left_out"]):
        lines.append(f"  and {found['left_out_count'] - len(found['left_out'])} more")
    return ["\n".join(lines)]
