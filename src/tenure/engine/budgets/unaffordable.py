"""Ready tasks that a budget cannot cover, set aside for it: examined once, and not by every claim.

`Project.set_aside` maps budgets to the lowest price set aside for each: a claim knows without a query whether any of it
is affordable now. Affordable tasks go back to the lanes, best first and a page at a time: what one claim returns is
soon reserved again, and thousands of tasks need not be written for it.

The key of a budget here is its id and the time when its `default_estimate` was last set: tasks set aside before that
are checked again, whatever their price was. An agent's own budget sets nothing aside: others may afford the task.
"""

from __future__ import annotations

from typing import NamedTuple

from tenure.core import budgets, lifecycle, limits
from tenure.core.budgets import AGENT, TASK, TENANT, Short, budget_id
from tenure.core.filters import Prefix, Present, Range
from tenure.core.outcomes import Outcome
from tenure.core.priority import FIRST_BAND
from tenure.core.records import Budget, Project, Task, replace
from tenure.engine.budgets.budget_guard import kept_rows, reason, recommendation, shown
from tenure.engine.runtime.unit_of_work import UnitOfWork

MARK = "$"  # prefix of the key, in place of a task's id
PAGE = 64  # of tasks whose priorities age alike
LARGE_PAGE = 500  # when all are put back
MOST_BUDGETS = limits.BUDGETS_SET_ASIDE
COUNTED = 1000


def key_of(budget: Budget) -> str:
    return f"{budget.id}@{budget.priced_at}"


def _id_of(key: str) -> str:
    return key.rpartition("@")[0]


def set_aside(work: UnitOfWork, project: str, task: Task, short: Short) -> bool:
    """Take the task out of its lane until the budget covers it; False where it must stay."""
    key = key_of(short.budget)
    row = work.require(Project, project, project)
    if short.budget.scope == AGENT or (key not in row.set_aside and len(row.set_aside) >= MOST_BUDGETS):
        return False
    least = row.set_aside.get(key)
    if least is None or short.wanted < least:
        work.put(replace(row, set_aside=row.set_aside | {key: short.wanted}))
    work.put(replace(task, set_aside_for=MARK + key, price=short.wanted))
    return True


def put_back(work: UnitOfWork, project: str) -> bool:
    """Put back the affordable tasks, at most a page per budget; return whether there is more."""
    row = work.require(Project, project, project)
    is_more = False
    rows = {key_of(budget): budget for budget in kept_rows(work, project, [_id_of(key) for key in row.set_aside])}
    left = {}
    for key, least in row.set_aside.items():
        part = _put_back_of(work, project, key, rows.get(key), least)
        if part.least is not None:
            left[key] = part.least
        is_more |= part.is_more
    if left != row.set_aside:
        work.put(replace(row, set_aside=left))
    return is_more


class _Part(NamedTuple):
    least: int | None  # the lowest price that stays set aside; None: nothing does
    is_more: bool = False


def _put_back_of(work: UnitOfWork, project: str, key: str, budget: Budget | None, least: int) -> _Part:
    """`budget` is None where it no longer exists, or its prices have changed: then all are put back."""
    room, most = None, LARGE_PAGE
    if budget is not None:
        room, most = budgets.headroom(budget, work.now), PAGE
        if budgets.short(budget, least, work.now) is not None:
            return _Part(least)
    found, is_more = _best(work, project, key, room, most)
    for task in found:
        work.put(replace(task, set_aside_for=None, price=None))
    if is_more:
        return _Part(least, is_more=True)
    if room is None or not work.tally(Task, {"project": project, "set_aside_for": MARK + key}, 1):
        return _Part(None)
    return _Part(room + 1)


def _best(work: UnitOfWork, project: str, key: str, room: int | None, most: int) -> tuple[list[Task], bool]:
    """The first tasks set aside for a budget, and whether there may be more.

    Bands are read from the rows, the first of them first; of each, a page of every kind whose ranks are comparable.
    """
    payable = Range(low=0, high=None if room is None else room + 1)
    where = {"project": project, "set_aside_for": MARK + key, "price": payable}
    found: list[Task] = []
    for band in sorted(work.count(Task, where, "band")):
        if len(found) >= most:
            return found, True
        of_band = {**where, "band": band}
        alike = [{**of_band, "boost": boost} for boost in sorted(work.count(Task, of_band, "boost"))]
        if band == FIRST_BAND:  # the only one of more than one order
            alike = [{**like, "length": Present(is_by_length)} for like in alike for is_by_length in (False, True)]
        pages = [work.find(Task, like, order="rank", limit=most) for like in alike]
        found += [task for page in pages for task in page]
        if any(len(page) == most for page in pages):
            return found, True
    return found, False


def kept_aside(work: UnitOfWork, project: Project, task: Task) -> Short | None:
    """What keeps a task set aside for a budget out of the lanes, by the rule of `put_back`."""
    key = (task.set_aside_for or "").removeprefix(MARK)
    rows = [row for row in kept_rows(work, project.id, [_id_of(key)]) if key_of(row) == key]
    return budgets.short(rows[0], task.price or 0, work.now) if rows else None


def found_again(work: UnitOfWork, project: str) -> None:
    """Let claims look again at tasks whose budget the project's row does not name: earlier versions left such tasks."""
    row = work.require(Project, project, project)
    marks = work.count(Task, {"project": project, "set_aside_for": Prefix(MARK)}, "set_aside_for")
    lost = {mark.removeprefix(MARK) for mark in marks} - row.set_aside.keys()
    if lost:
        work.put(replace(row, set_aside=row.set_aside | dict.fromkeys(lost, 0)))


def closed(work: UnitOfWork, project: Project, agent: str) -> Short | None:
    """The budget that blocks every task for the agent: it covers all of them and is used up or throttled."""
    scopes = [scope for scope in (TENANT, budgets.PROJECT, AGENT) if scope in project.funded]
    for budget in kept_rows(work, project.id, [budget_id(scope, agent) for scope in scopes]):
        if budgets.short(budget, 1, work.now) is not None:
            return budgets.short(budget, budget.default_estimate, work.now)
    return None


def explained(work: UnitOfWork, project: str, nothing: Outcome, closed: Short | None, beside: int) -> Outcome:
    """NO_TASK with the number of unaffordable tasks, the shortage, and when a budget next has money.

    `closed` blocks the agent from all of them; `beside` are those that stay in their lanes.
    """
    row = work.require(Project, project, project)
    ready = {"project": project, "state": lifecycle.READY}
    count = beside + (work.tally(Task, {**ready, "set_aside_for": Prefix(MARK)}, COUNTED) if row.set_aside else 0)
    if closed is not None:
        count += work.tally(Task, {**ready, "set_aside_for": Present(False)}, COUNTED)
    counts = {word: n for word, n in (nothing.counts or {}).items() if word != "unaffordable"}
    if not count:
        return replace(nothing, counts=counts)
    short = closed or _missing(work, project, row)
    times = [at for at in (nothing.retry_at, short.retry_at if short else None) if at is not None]
    times += [at for key in row.set_aside for at in _opening(work, project, _id_of(key))]
    at = min(times, default=None)
    answer = replace(nothing, counts=counts | {"unaffordable": min(COUNTED, count)}, **work.retry_at(at))
    if short is None:
        return answer
    message, hint = f"{nothing.message}: {reason(work, short)}", recommendation(work, short)
    return replace(answer, message=message, hint=hint, shortage=shown(work, short))


def _missing(work: UnitOfWork, project: str, row: Project) -> Short | None:
    """What the cheapest task set aside is missing."""
    rows = {key_of(budget): budget for budget in kept_rows(work, project, [_id_of(key) for key in row.set_aside])}
    lacking = [budgets.short(rows[key], least, work.now) for key, least in row.set_aside.items() if key in rows]
    return min((short for short in lacking if short is not None), key=lambda short: short.missing, default=None)


def _opening(work: UnitOfWork, project: str, id: str) -> list[int]:
    if id.startswith(f"{TASK}:"):
        return []
    rows = kept_rows(work, project, (id,))
    times = [at for row in rows for at in (row.next_claim_at, budgets.opens_at(row, work.now))]
    return [at for at in times if at is not None and at > work.now]
