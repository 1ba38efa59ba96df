"""Queries of the state, brought up to `now`: tasks, history, dags, status, usage, sessions, log. They write nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import actors, claims, commands, graph, ids, inputs, lifecycle, limits, retry, roles, team
from tenure.core import dead_letters as letters
from tenure.core import queries as q
from tenure.core.errors import InvalidInput, NotFound
from tenure.core.events import Event
from tenure.core.filters import Contains, Present, Range
from tenure.core.processes import process_of, text_of
from tenure.core.query import Page
from tenure.core.records import (
    Agent,
    Archived,
    Brief,
    Claim,
    DeadLetter,
    Edge,
    Leader,
    Message,
    Project,
    Reservation,
    Result,
    Schedule,
    Session,
    Signature,
    Task,
    Trigger,
    Usage,
)
from tenure.core.redaction import TRACE
from tenure.core.runners import MARK
from tenure.core.signed_results import fingerprint
from tenure.core.trace_ids import trace_of
from tenure.engine.archive.recall import recall_dag, remember
from tenure.engine.artifacts import artifact_verbs
from tenure.engine.checks import validation_reads
from tenure.engine.reads import task_counts, task_pages, task_view
from tenure.engine.reads import team as team_reads
from tenure.engine.reads.project_view import progress_of, track_progress, tracks_of
from tenure.engine.runtime.rows import archived_events, brief_of, fields_of, lineage, pages_by, project_of, task_named
from tenure.engine.runtime.unit_of_work import Reads, UnitOfWork
from tenure.engine.verbs import land, mail
from tenure.engine.verbs import usage as usage_rows
from tenure.engine.verbs.lead import COORDINATOR, PROJECT_LEADER

if TYPE_CHECKING:
    from tenure.core import views as v

MOST_LISTED = limits.LISTED
MOST_SEARCHED = limits.SEARCHED
MOST_BEHIND = limits.NAMED_BEHIND
MOST_BUDGETS = limits.BUDGETS_SHOWN


def views(work: UnitOfWork, tasks: Iterable[Task]) -> list[v.TaskView]:
    tasks = list(tasks)
    if not tasks:
        return []
    briefs = work.get_many(Brief, tasks[0].project, [t.id for t in tasks])
    done = {t.id: claims.claim_id(t.id, t.generation) for t in tasks if t.state == lifecycle.COMPLETED}
    by = work.get_many(Claim, tasks[0].project, done.values()) if done else {}
    found = [task_view.task_view(work, t, briefs[t.id]) for t in tasks]
    for view in found:
        claim = by.get(done.get(view["id"], ""))
        if claim is not None and claim.result_accepted:  # not of an adopted result, which an earlier claim submitted
            view["completed_by"] = claim.agent
    return found


def show(work: UnitOfWork, project: str, name: str) -> v.TaskInFull:
    """Everything about one task except its log."""
    task = task_named(work, project, name)
    brief = brief_of(work, task)
    view: Any = task_view.task_view(work, task, brief)
    view |= {"retry": retry.differing(brief.retry), "on_lost": brief.on_lost}
    dependents = work.find(Edge, {"project": project, "needs": task.id}) if task.dependents else []
    blocks = work.get_many(Task, project, [e.task for e in dependents])
    view["depends_on"] = [
        {"key": t.key, "state": t.state, "on_failure": e.on_failure, "met": graph.is_met(e, t.state)}
        for e, t in task_view.dependencies(work, task)
    ]
    view["trace_id"] = trace_of(task)
    view["blocked_by"] = list(task_view.waits_for(work, task))
    view["blocks"] = sorted(t.key for t in blocks.values())
    view["subtasks"] = (
        [t.key for t in work.find(Task, {"project": project, "parent": task.id})] if task.children else []
    )
    if task.state == lifecycle.DEAD_LETTERED:
        view["dead_letter"] = letters.why(task, brief.retry)
    result = task_view.accepted_result(work, task)
    if result is not None:
        view["result"] = result_view(work, result)
    checkpoint = task_view.checkpoint_of(work, task) if roles.sees_checkpoints(work.principal) else None
    if checkpoint is not None:
        view["checkpoint"] = checkpoint
    spent = usage_rows.view(usage_rows.of_task(work, project, task.id))
    if spent is not None:
        view["usage"] = spent
    landings = [land.view(work, row) for row in land.of_task(work, task)]
    if landings:
        view["landings"] = landings
    if task.artifacts:
        view["artifacts"] = artifact_verbs.artifacts(work, project, task.id)
    verdicts = validation_reads.of_task(work, task) if task.checked else ()
    if verdicts:
        view["validation"] = validation_reads.view(work, verdicts[-1], task)
    return view  # type: ignore[no-any-return]


FILTERS = ("state", "track", "type", "agent", "session", "dag", "parent", "idempotency_key")
ORDERS = ("created_at", "updated_at", "priority", "key", "deadline", "completed_at")


def _filtered(work: UnitOfWork, project: str, filters: dict[str, str | tuple[str, ...] | None]) -> dict[str, Any]:
    """The filters of columns, with states and the parent by the names that they have in rows."""
    where: dict[str, Any] = {"project": project}
    for name, value in filters.items():
        inputs.check_choice(name, FILTERS, "filter")
        if value is not None:
            where[name] = value
    if "state" in where:
        states_ = where["state"] if isinstance(where["state"], tuple) else (where["state"],)
        where["state"] = tuple(
            inputs.check_choice(lifecycle.state_named(s), lifecycle.STATES, "state") for s in states_
        )
    if "parent" in where:
        where["parent"] = task_named(work, project, where["parent"]).id
    return where


def tasks(
    work: UnitOfWork,
    project: str,
    *,
    tag: tuple[str, ...] | None = None,
    text: str | None = None,
    priority_range: tuple[int, int] | None = None,
    priority_min: int | None = None,
    priority_max: int | None = None,
    created_from: int | None = None,
    created_until: int | None = None,
    archived: bool = False,
    order: str = "created_at",
    after: tuple[Any, str] | None = None,
    limit: int = 50,
    fields: tuple[str, ...] = (),
    **filters: str | tuple[str, ...] | None,
) -> list[v.TaskView]:
    """A page of tasks; `filters` are those of FILTERS, `after` the last row's (order value, id).

    `archived`: also tasks that a person has hidden, and those moved to the archive. Each word of
    `text` is searched for in key, title, description, tags, type, agent, reason and last error, among the first
    MOST_SEARCHED tasks that pass the other filters; the page then says where to search on.
    """
    where = _filtered(work, project, filters)
    inputs.check_choice(order.removeprefix("-"), ORDERS, "order")
    _check_cursor(after, order)
    for name in fields:
        inputs.check_choice(name, task_view.FIELDS, "field")
    if tag:
        first, *others = inputs.check_list(tag, "tag")
        where["tags"] = Contains(first, tuple(others))
    low, high = priority_range or (priority_min, priority_max)
    if low is not None or high is not None:
        where["priority"] = Range(low, None if high is None else high + 1)
    if created_from is not None or created_until is not None:
        where["created_at"] = Range(created_from, created_until)
    if not archived:
        where["archived_at"] = Present(False)
    elif not {"agent", "session"} & where.keys():  # nobody holds a finished task
        remember(work, work.find(Archived, {**where, "out": False}, order=order, after=after, limit=limit))
        if isinstance(where.get("dag"), str):
            recall_dag(work, project, where["dag"])
    if text is None:
        return _only(fields, order, views(work, task_pages.page(work, where, order, after, limit)))
    words = text.casefold().split()
    found: list[v.TaskView] = []
    for _ in range(0, MOST_SEARCHED, MOST_LISTED):
        page = task_pages.page(work, where, order, after, MOST_LISTED)
        briefs = work.get_many(Brief, project, [task.id for task in page])
        found += views(work, [task for task in page if task_pages.has(work, task, briefs[task.id], words)])
        if len(page) < MOST_LISTED or len(found) >= limit:
            return _only(fields, order, found[:limit])
        after = (getattr(page[-1], order.lstrip("-")), page[-1].id)
    return Page(_only(fields, order, found), more=True, next=after)


def _only(fields: tuple[str, ...], order: str, found: list[v.TaskView]) -> list[v.TaskView]:
    """The tasks with these fields alone; without any, with all. Those that a cursor is made of are kept."""
    if not fields:
        return found
    kept = {"id", "key", order.removeprefix("-"), *fields}
    return [{name: value for name, value in one.items() if name in kept} for one in found]  # type: ignore[misc]


def _check_cursor(after: tuple[Any, str] | None, order: str) -> None:
    """Stores compare only values of one type."""
    value = None if after is None else after[0]
    if after is None or (isinstance(value, str) if order.endswith("key") else value is None or type(value) is int):
        return
    raise InvalidInput(f"after: {value!r:.60} is not a position in order {order}", "pass `next` of the previous page")


def states(work: UnitOfWork, project: str, names: Iterable[str]) -> list[v.StateLine]:
    """One short line per name: the state of the task, or that there is none."""
    out: list[v.StateLine] = []
    names = tuple(names)
    work.get_many(Task, project, [name for name in names if name.startswith("task_")])  # in one query
    for name in names:
        try:
            task = task_named(work, project, name)
        except NotFound as error:
            out.append({"name": name, "outcome": error.code})
            continue
        fields: Any = fields_of(task, "id key state generation agent version")
        out.append({"name": name, "outcome": "OK"} | fields)
    return out


def history(work: UnitOfWork, project: str, name: str) -> list[v.HistoryEntry]:
    """The lineage: one entry per generation, with every refused submit under it. No nonce is ever shown."""
    task = task_named(work, project, name)
    refused: dict[int, list[Result]] = {}
    for result in work.find(Result, {"project": project, "task": task.id, "accepted": False}, order="submitted_at"):
        if result.reason != "VALIDATING":  # it waits for its verdict, or to be landed
            refused.setdefault(result.generation, []).append(result)
    spent: dict[int, list[Usage]] = {}
    for row in usage_rows.of_task(work, project, task.id):
        spent.setdefault(row.generation, []).append(row)
    landed: dict[int, list[v.LandingView]] = {}
    for landing in land.of_task(work, task):
        landed.setdefault(landing.generation, []).append(land.view(work, landing))
    verdicts = {row.claimed: validation_reads.view(work, row, task) for row in validation_reads.of_task(work, task)}
    put: dict[int, list[v.ArtifactView]] = {}
    for one in artifact_verbs.of_task(work, task):
        put.setdefault(one.generation, []).append(artifact_verbs.view(one, task))
    signed: dict[int, list[v.SignatureView]] = {}
    for sign in work.find(Signature, {"project": project, "task": task.id}) if project_of(work, project).signs else ():
        signed.setdefault(sign.generation, []).append(_signature_view(sign))
    found = lineage(work, task)
    others = _others(work, task, found)
    return [
        fields_of(c, "generation run attempt session agent user acquired_at released_at state counted")
        | others.get(c.generation, {})
        | fields_of(c, "result_accepted error_class error")
        | {name: value for name in ("term", "lease_why") if (value := getattr(c, name)) is not None}
        | ({"signatures": signed[c.generation]} if c.generation in signed else {})
        | {
            "metadata": {name: value for name, value in c.metadata.items() if name not in (TRACE, MARK)},
            "trace": c.metadata.get(TRACE),
            "release_reason": c.reason,
            "renewals": task.renewals if c.state == "active" else c.renewals,
            "work_product_ref": c.work_product,
            "refused": [result_view(work, r, data=False) for r in refused.get(c.generation, ())],
            "usage": usage_rows.view(spent.get(c.generation, ())),
            "landings": landed.get(c.generation, []),
            "landing": next(iter(landed.get(c.generation, ())), None),
            "validation": verdicts.get(c.generation),
            "artifacts": put.get(c.generation, []),
        }
        for c in found
    ]


_OPENED, _SUBMITTED = "task.claimed", ("task.completed", "task.validating", "task.result_refused")


def _others(work: UnitOfWork, task: Task, claims: Iterable[Claim]) -> dict[int, dict[str, Any]]:
    """Generation → who claimed or submitted in the name of its agent: a receipt is good in anybody's hand."""
    where = {"project": task.project, "task": task.id, "kind": (_OPENED, *_SUBMITTED)}
    of_generation = {claim.generation: claim for claim in claims}
    users: dict[int, str | None] = {}
    found: dict[int, dict[str, Any]] = {}
    for event in (*archived_events(work, task.project, where), *work.tx.events(where, last=True)):
        claim = of_generation.get(event.generation or 0)
        is_verdict = event.kind == "task.completed" and "validator" in event.details
        if claim is None or is_verdict:
            continue
        if event.kind == _OPENED:
            users[claim.generation] = claim.user or event.user
        if actors.is_by_holder(event, claim, claim.user or users.get(claim.generation)):
            continue
        name = "opened_by" if event.kind == _OPENED else "submitted_by"
        found.setdefault(event.generation or 0, {})[name] = actors.other_than(event, claim)
    return found


def _signature_view(row: Signature) -> v.SignatureView:
    fields: Any = fields_of(row, "generation session public_key request_id at")
    return fields | {"result": row.id, "fingerprint": fingerprint(row.public_key), "signature": row.value}  # type: ignore[no-any-return]


def results(work: UnitOfWork, project: str, name: str) -> list[v.ResultView]:
    task = task_named(work, project, name)
    found = work.find(Result, {"project": project, "task": task.id}, order="submitted_at")
    return [result_view(work, r) for r in found]


def result_view(work: UnitOfWork, result: Result, *, data: bool = True) -> Any:
    """A ResultView, or without data a RefusedView."""
    shown = "id run generation session agent submitted_at accepted reason summary size late work_lost"
    view = fields_of(result, shown) | {"work_product_ref": result.work_product}
    if data:
        view["data"] = task_view.unpacked(work, result.project, result.data)
    return view


# --- dead letters ---------------------------------------------------------------------------------------------------


def dead_letters(work: UnitOfWork, project: str, *, resolved: bool = False) -> list[v.DeadLetterView]:
    where = {"project": project, "resolution": Present(resolved)}
    out: list[v.DeadLetterView] = []
    for letter in work.find(DeadLetter, where, order="dead_lettered_at"):
        task = work.get(Task, project, letter.task)
        behind = task_view.dependents_of(work, task) if task else []
        spent = {failed["generation"]: list[Usage]() for failed in letter.history}
        for row in usage_rows.of_task(work, letter.project, letter.task):
            spent.get(row.generation, []).append(row)
        attempts = [{**failed, "usage": usage_rows.view(spent[failed["generation"]])} for failed in letter.history]
        total = usage_rows.view(row for rows in spent.values() for row in rows)
        entry = {**_fields(letter), "key": task.key if task else None, "history": attempts, "usage": total}
        entry |= {"ref": task.ref if task else None, "title": brief_of(work, task).title if task else None}
        if task is not None and task.state == lifecycle.DEAD_LETTERED and task.run == letter.run:
            entry["why"] = letters.why(task, brief_of(work, task).retry)
        entry |= {"blocks": len(behind), "waiting": sorted(one.key for one in behind)[:MOST_BEHIND]}
        out.append(entry)  # type: ignore[arg-type]  # the row's own fields among them
    return out


# --- the team -----------------------------------------------------------------------------------------------


def inbox(
    work: UnitOfWork,
    project: str,
    agent: str,
    *,
    unread: bool = True,
    sender: str | None = None,
    after: str | None = None,
    limit: int = 100,
) -> list[v.MessageView]:
    where: dict[str, Any] = {"project": project, "recipient": agent}
    if unread:
        where["read_at"] = Present(False)
    if sender is not None:
        where["sender"] = sender
    last = None if after is None else work.get(Message, project, mail.row_id(after, agent))
    if after is not None and last is None:
        raise InvalidInput(f"after {after[:80]!r} is not a message to {agent}", "pass `next` of the previous page")
    place = None if last is None else (last.sent_at, last.id)
    return [mail.view(m) for m in work.find(Message, where, order="sent_at", after=place, limit=limit)]


def messages(work: UnitOfWork, project: str, *, limit: int = 100) -> list[v.MessageEntry]:
    """All mail of the project, newest first: one entry per message, with its recipients and who has read it."""
    entries: dict[str, Any] = {}
    for row in chain.from_iterable(pages_by(work, Message, {"project": project}, "-sent_at", MOST_LISTED)):
        if row.message not in entries and len(entries) == limit:
            break
        entry = entries.setdefault(row.message, {**mail.view(row), "recipients": [], "read_by": []})
        entry.pop("read_at", None)
        entry["recipients"].append(row.recipient)
        if row.read_at is not None:
            entry["read_by"].append(row.recipient)
    return list(entries.values())


def sessions(work: UnitOfWork, project: str, *, agent: str | None = None, limit: int = 100) -> list[v.SessionEntry]:
    """Sessions, the most recently active first."""
    where = {"project": project} | ({} if agent is None else {"agent": agent})
    found = work.find(Session, where, order="-last_activity", limit=limit)
    return [_session_entry(row) for row in found]


def _session_entry(row: Session) -> Any:
    return fields_of(row, "id agent user created_at last_activity ended_at")


def reservations(work: UnitOfWork, project: str) -> list[v.ReservationView]:
    live = [r for r in work.find(Reservation, {"project": project}) if r.until is None or r.until > work.now]
    out: list[v.ReservationView] = []
    for held in sorted(live, key=lambda r: (r.pattern, r.id)):
        task = work.get(Task, project, held.task) if held.task else None
        fields: Any = fields_of(held, "id pattern mode agent session")
        until = task.lease_until if task else held.until
        out.append(fields | {"task": task.key if task else None, "until": until})
    return out


_MEMORY = {
    "task.claimed": "claim_acquired",
    "task.completed": "result_submitted",
    "task.validating": "result_submitted",
    "task.result_refused": "result_submitted",
    "task.output_refused": "result_submitted",
    "task.lease_expired": "claim_lost",
    "task.process_gone": "claim_lost",
    "task.aborted": "claim_lost",
    "task.reassigned": "claim_lost",
    "task.recovered": "claim_lost",
    "task.epoch_ended": "claim_lost",
    "task.clock_ended": "claim_lost",
    "task.cancelled": "claim_lost",
    "task.paused": "claim_released",
    "task.question": "claim_released",
    "task.waiting": "claim_released",
    "task.released": "claim_released",
    "task.failed": "claim_released",
}


def session(work: UnitOfWork, project: str, id: str) -> v.SessionView:
    """A session's history, from the log and the claims."""
    row = work.get(Session, project, id)
    if row is None:
        raise NotFound(f"no session {id[:80]!r} in project {project}")
    events = work.tx.events({"project": project, "session": id}, limit=MOST_LISTED + 1, last=True)
    mine = work.find(Claim, {"project": project, "session": id}, order="acquired_at")
    held = [t for t in work.find(Task, {"project": project, "session": id}) if claims.is_held(t)]
    log: list[Any] = [_remembered(event) for event in events[-MOST_LISTED:] if event.kind in _MEMORY]
    live = {claims.claim_id(t.id, t.generation): t for t in held}
    claimed = work.get_many(Task, project, [c.task for c in mine])
    log += [_renewals(c, claimed[c.task], live.get(c.id)) for c in mine if c.task in claimed]
    log = sorted((line for line in log if line.get("count") != 0), key=lambda line: line["time"])
    done = {c.task: claimed[c.task] for c in mine if c.result_accepted and c.task in claimed}
    agent = work.get(Agent, project, row.agent)
    assigned = dict.fromkeys((*(agent.tracks if agent else ()), *tracks_of(work, project, row.agent)), row.agent)
    assigned |= {t.track: t.agent for t in held if t.agent}
    answer: v.SessionView = _session_entry(row) | {
        "tenant": work.context.tenant,
        "project": project,
        "is_over": team.is_over(row, len(held), work.now),
        "task_log": log,
        "more": len(events) > MOST_LISTED,
        "active_claims": [fields_of(t, "key track generation agent lease_until") for t in held],
        "completed": sorted(t.key for t in done.values()),
        "track_assignments": dict(sorted(assigned.items())),
        "track_progress": track_progress(work, project),
    }
    return answer


def _renewals(claim: Claim, task: Task, live: Task | None) -> Any:
    """The renewals of a claim in one line, at the time of the last; of a claim that has ended, at its end."""
    at = claim.released_at if live is None else (live.lease_until or 0) - (live.lease or 0)
    return fields_of(claim, "generation agent") | {
        **_keyed(task.key),
        "event": "lease_renewed",
        "time": at or claim.acquired_at,
        "track": task.track,
        "count": (claim if live is None else live).renewals,
    }


def _keyed(name: str | None) -> dict[str, Any]:
    key = ids.parse_key(name or "")
    return {"task": name, "sequence": key.sequence if key else None}


_REFUSED = frozenset({"task.result_refused", "task.output_refused"})


def _remembered(event: Event) -> Any:
    """A line of a session's memory; the outcome is that of a submitted result."""
    is_refused = event.kind in _REFUSED or (event.kind == "task.failed" and "validator" in event.details)
    outcome = "REJECTED" if is_refused else "ACCEPTED" if event.kind == "task.completed" else None
    return fields_of(event, "time track generation agent details") | {
        **_keyed(event.key),
        "event": "result_submitted" if is_refused else _MEMORY[event.kind],
        "outcome": outcome,
        "work_product": event.details.get("work_product"),
    }


def status(work: UnitOfWork, project: str) -> v.StatusView:
    """One screen: who leads, who works, the progress of each track, tasks by state."""
    settings = project_of(work, project)
    leader = work.get(Leader, project, PROJECT_LEADER)
    coordinator = work.get(Leader, "", COORDINATOR)
    counts = task_counts.by_state(work, project)
    return {
        "project": project,
        "leader": _leader_view(work, leader),
        "coordinator": _leader_view(work, coordinator),
        "agents": team_reads.agents(work, project),
        "tracks": progress_of(work, project, counts),
        "tasks": {state: sum(tracks.values()) for state, tracks in counts.items()},
        "usage": usage_rows.of_project(work, project),
        "budgets": _budgets(work, settings),
        "validations": validation_reads.counts(work, project),
        "stopped": settings.stopped,
        "sources": _sources(work, settings),
        "now": work.now,
    }


def _sources(work: UnitOfWork, project: Project) -> dict[str, int]:
    """How many schedules and triggers there are, which fire while somebody leads."""
    on = {"project": project.id, "enabled": True}
    return {
        "schedules": sum(work.count(Schedule, on, "enabled").values()),
        "triggers": sum(work.count(Trigger, {**on, "signature": Present(False)}, "enabled").values()),
        "watch": int(project.watch is not None),
    }


def _budgets(work: UnitOfWork, project: Project) -> list[v.BudgetView]:
    if not project.funded:
        return []
    from tenure.engine.budgets import budget_reads  # most projects have none; keeps startup fast

    return [budget_reads.view(work, row) for row in budget_reads.rows(work, project.id, limit=MOST_BUDGETS)]


def usage(work: UnitOfWork, project: str, *, by: str = "task", limit: int = 100) -> list[v.SpentView]:
    """Spending by task, agent, model or session, most expensive first."""
    return usage_rows.spent_by(work, project, by, limit)


def processes(work: UnitOfWork, project: str) -> list[v.ProcessView]:
    """The processes that hold claims, lead or are agents: another on their host can check whether they still run."""
    holding: dict[str, list[str]] = {}
    for agent in work.find(Agent, {"project": project, "pid": Present(), "left_at": Present(False)}):
        if agent.host and agent.boot and agent.pid is not None and agent.pid_start is not None:
            there = commands.Process(host=agent.host, boot=agent.boot, pid=agent.pid, start=agent.pid_start)
            holding.setdefault(text_of(there), [])
    for claim in work.find(Claim, {"project": project, "process": Present()}):
        holding.setdefault(claim.process or "", []).append(claim.task)
    leader = work.get(Leader, project, PROJECT_LEADER)
    if leader is not None and leader.process is not None and leader.until > work.now:
        holding.setdefault(leader.process, [])
    tasks = work.get_many(Task, project, [id for held in holding.values() for id in held])
    return [
        {**_fields(process_of(text)), "tasks": sorted(tasks[id].key for id in held)}  # type: ignore[typeddict-item]
        for text, held in sorted(holding.items())
    ]


def _leader_view(work: UnitOfWork, leader: Leader | None) -> v.LeaderView | None:
    if leader is None or leader.until <= work.now:
        return None
    name = leader.holder
    return {"name": name, "holder": name, "term": leader.term, "since": leader.elected_at, "until": leader.until}


def _fields(row: msgspec.Struct) -> Any:
    """A row as a view with the same fields."""
    return msgspec.structs.asdict(row)


READS: Reads = {
    q.Status: status,
    q.Tasks: tasks,
    q.Show: show,
    q.States: states,
    q.History: history,
    q.Results: results,
    q.DeadLetters: dead_letters,
    q.Inbox: inbox,
    q.Messages: messages,
    q.Reservations: reservations,
    q.Sessions: sessions,
    q.ShowSession: session,
    q.ShowSpending: usage,
    q.Processes: processes,
}
