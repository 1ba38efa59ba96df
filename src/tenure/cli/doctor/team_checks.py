"""Checks of the team and the work: silent agents, tasks nobody can claim, tasks that wait for a person, dead holders.

They read in one transaction, by index and bounded: with 100,000 tasks they must still be quick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenure.cli.doctor.findings import MOST, Finding, error, first_of, note, ok, warning
from tenure.cli.text_format import SECOND, counted, lasting, shorten
from tenure.core import dead_letters, graph, lifecycle, limits, priority, team
from tenure.core.filters import Present, Range
from tenure.core.land_request import COUNTED_AS, lander
from tenure.core.lifecycle import QUESTION, RESUMABLE
from tenure.core.priority import parse_lane
from tenure.core.records import Agent, Edge, Leader, Project, Reservation, Schedule, Session, Task, Trigger
from tenure.core.safe_text import shell_word
from tenure.core.signed_results import fingerprint, weakness_of
from tenure.engine.archive.log_readers import holding_back
from tenure.engine.budgets import doubts
from tenure.engine.reads.todo import COST, LANDING, todo
from tenure.engine.runtime.effects import Report, settle_due
from tenure.engine.runtime.rows import brief_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.lead import COORDINATOR
from tenure.engine.verbs.reserve import living

if TYPE_CHECKING:
    from tenure.cli.doctor.doctor import Patient
    from tenure.client import Client
    from tenure.stores.port import Transaction

PROMPT = 10 * SECOND  # within which an event for a lease that ran out is expected
MOST_READ = limits.DOCTOR_ROWS
LONG_BEHIND = 3600 * SECOND  # for which a reader of the log may be behind
DAY = 24 * 3600 * SECOND


def work(patient: Patient) -> Iterator[Finding]:
    client = patient.client
    if client is None or patient.run.project not in client.projects():
        return
    if client.is_remote:
        yield from _remote_work(client)
        return
    project = patient.run.project

    def ask(tx: Transaction) -> list[Finding]:
        late = [row for row in tx.due(project, tx.now - PROMPT, MOST_READ) if row.state in lifecycle.HELD]
        report = Report()
        rows = UnitOfWork(tx, client.engine.random)
        settle_due(rows, (project,), report)
        found = [*_leases(late, rows.now), *_unsettled(report), *_agents(rows, project), *_stops(rows, project)]
        found += _keys(rows, project)
        found += _costs([task.key for task, _, _ in doubts.waiting(rows, project)])
        found += _landings(todo(rows, project))
        return [*found, *_stuck(rows, project), *_sources(rows, project), *_readers(rows, project)]

    yield from client.engine.read(ask)
    yield from _orphans(patient)


def _leases(late: Sequence[Task], now: int) -> Iterator[Finding]:
    if late:
        oldest = min(task.lease_until or now for task in late)
        yield note(
            "leases",
            f"{counted(len(late), 'claim')} ran out, the first {lasting((now - oldest) / 1e6)} ago, and no "
            f"event says so yet: {first_of([task.key for task in late])}",
            "nothing to do: the tasks can be claimed, and the next command that writes settles it",
        )
    else:
        yield ok("leases", "none that ran out is left unsettled")


def _unsettled(report: Report) -> Iterator[Finding]:
    for id, why in list(report.failed.items())[:MOST]:
        yield error("leases", f"{id} cannot be brought up to date: {why}", "an internal error: please report it")


def _agents(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    known = rows.find(Agent, {"project": project, "left_at": Present(False)})
    silent = [agent for agent in known if team.is_stale(agent, rows.now)]
    for agent in silent:
        held = [t for t in rows.find(Task, {"project": project, "agent": agent.id}) if t.state in lifecycle.HELD]
        if held:
            until = max((task.lease_until or rows.now) for task in held)
            yield warning(
                "agents",
                f"{agent.id} holds {first_of([t.key for t in held])} and was last seen "
                f"{lasting((rows.now - agent.last_seen) / 1e6)} ago",
                f"check that it still runs; if not, others can claim when its lease ends in "
                f"{lasting((until - rows.now) / 1e6)}",
            )
    for agent in known:
        if (agent.cool_until or 0) > rows.now:
            left = lasting(((agent.cool_until or 0) - rows.now) / 1e6)
            yield note(
                "agents",
                f"{agent.id} failed {agent.troubles} times in a row for reasons on its side and cools down",
                f"look at its keys, limits and network; it may claim again in {left}",
            )
    yield ok("agents", f"{len(known) - len(silent)} seen recently, {len(silent)} not")


def _costs(keys: Sequence[str]) -> Iterator[Finding]:
    if keys:
        yield warning(
            "usage",
            f"{counted(len(keys), 'task')} reported a cost far above its tokens, which no budget counts: "
            f"{first_of(keys)}",
            "`tenure todo` shows the amounts; `tenure usage confirm TASK` or `tenure usage reject TASK` decides",
        )


def _landings(waiting: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Results that have passed, and that nobody has landed for a while, or nobody could."""
    for one in [one for one in waiting if one["what"] == LANDING][:MOST]:
        yield warning("landing", f"{one['key']}: {one['text']}", lander(one["ref"]))


def _keys(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    """Sessions whose key was registered before such keys were refused."""
    if not any(row.signs for row in rows.find(Project, {"id": project})):
        return
    signing = rows.find(Session, {"project": project, "public_key": Present(True)}, limit=MOST_READ)
    for key in sorted({session.public_key or "" for session in signing}):
        weakness = weakness_of(key)
        if weakness:
            sessions = [session.id for session in signing if session.public_key == key]
            yield error(
                "keys",
                f"the key {fingerprint(key)} of {first_of(sessions)} {weakness}; results under it are refused",
                "let the agent continue in a new session, with a key of `tenure join --key FILE`",
            )


def _stops(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    settings = rows.get(Project, project, project)
    for scope, why in (settings.stopped if settings else {}).items():
        kind, _, name = scope.partition(":")
        words = f" --{'by' if kind == 'agent' else kind} {shell_word(name)}" if name else ""
        yield note(
            "stopped",
            f"claiming is stopped for {scope.rstrip(':')}{why and ': ' + why}",
            f"`tenure go{words}` allows it again",
        )


def _sources(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    """Schedules, triggers and the watch: does a coordinator run, and do they succeed?"""
    found: list[Schedule | Trigger] = [
        *rows.find(Schedule, {"project": project}),
        *rows.find(Trigger, {"project": project}),
    ]
    on = [row for row in found if row.enabled]
    leader = rows.get(Leader, "", COORDINATOR)
    settings = rows.get(Project, project, project)
    is_led = leader is not None and leader.until > rows.now
    waiting = [row.id for row in on if not (isinstance(row, Trigger) and row.signature)]
    waiting += ["the watch"] if settings is not None and settings.watch is not None else []
    if waiting and not is_led:
        yield warning(
            "sources",
            f"{first_of(waiting)}: nobody leads now, so nothing fires",
            "keep `tenure daemon` or `tenure serve` running; missed ticks follow each schedule's misfire policy",
        )
    for row in on:
        if row.last_error:
            verb = "schedule" if isinstance(row, Schedule) else "trigger"
            yield warning(
                "sources",
                f"{verb} {row.id} could not create its tasks: {row.last_error}",
                f"`tenure {verb} show {shell_word(row.id)}`; `tenure {verb} add {shell_word(row.id)} …` changes it",
            )
    if on and is_led:
        yield ok("sources", f"{counted(len(on), 'schedule or trigger', 'schedules and triggers')} on")


def _stuck(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    found = [
        *_untakeable(rows, project),
        *_dead_letters(rows, project),
        *_behind_cancelled(rows, project),
        *_paused(rows, project),
        *_left_over(rows, project),
    ]
    yield from found or [ok("stuck", "no task waits for something that cannot happen")]


def _untakeable(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    """Ready tasks, lane by lane, that no agent here may claim; stops are reported separately."""
    here = [
        priority.profile_of(agent, {})
        for agent in rows.find(Agent, {"project": project, "left_at": Present(False)})
        if rows.now - agent.last_seen < DAY
    ]
    if not here:
        return
    for name, (head,) in rows.tx.lanes(project).items():
        lane = parse_lane(name)
        obstacles = [next(priority.lane_obstacles(profile, lane), None) for profile in here]
        if any(obstacle is None for obstacle in obstacles):
            continue
        task = rows.get(Task, project, head.id)
        count = rows.tally(Task, {"project": project, "lane": name}, 1000)
        sentences = first_of([f"{p.agent} {o.sentence}" for p, o in zip(here, obstacles, strict=True) if o is not None])
        wanted = f" of type {lane.agent_type}" if lane.agent_type else ""
        wanted += f" that can {', '.join(lane.requires)}" if lane.requires else f" on track {lane.track}"
        yield warning(
            "stuck",
            f"no agent here can take {task.key if task else head.id}"
            f"{f' and {count - 1} like it' if count > 1 else ''}: {sentences}",
            f"let an agent join{wanted} (`tenure join -h`), or `tenure edit` what the task asks for",
        )


def _dead_letters(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    where = {"project": project, "state": lifecycle.DEAD_LETTERED}
    letters = rows.find(Task, where, limit=MOST_READ)
    letters.sort(key=lambda task: -task.dependents)
    for task in letters[:MOST]:
        behind = _behind(rows, task)
        held_back = f"; {counted(len(behind), 'task')} behind it: {first_of(behind)}" if behind else ""
        why = shorten(dead_letters.why(task, brief_of(rows, task).retry), 120)
        yield warning(
            "stuck",
            f"{task.key} is a dead letter: {why}{held_back}",
            f"`tenure history {shell_word(task.ref)}` shows how it failed, `tenure retry "
            f"{shell_word(task.ref)}` retries it",
        )
    more = rows.count(Task, where, "state").get(lifecycle.DEAD_LETTERED, 0) - MOST if len(letters) > MOST else 0
    if more > 0:
        yield warning("stuck", f"{more} more dead letters", "`tenure dlq` lists them all")


def _behind_cancelled(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    where = {"project": project, "state": lifecycle.CANCELLED, "dependents": Range(low=1)}
    reported = 0
    for task in rows.find(Task, where, limit=MOST_READ):
        behind = _behind(rows, task)
        if behind and reported < MOST:
            reported += 1
            yield warning(
                "stuck",
                f"{first_of(behind)} wait{'s' if len(behind) == 1 else ''} for {task.key}, which is cancelled",
                f"`tenure unlink {shell_word(behind[0])} {shell_word(task.ref)}` removes the dependency; or "
                "undo the cancellation",
            )


def _behind(rows: UnitOfWork, task: Task) -> list[str]:
    if not task.dependents:
        return []
    edges = rows.find(Edge, {"project": task.project, "needs": task.id}, limit=MOST_READ)
    tasks = rows.get_many(Task, task.project, [edge.task for edge in edges])
    return sorted(
        tasks[edge.task].key
        for edge in edges
        if tasks[edge.task].state == lifecycle.PENDING and not graph.is_met(edge, task.state)
    )


def _paused(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    paused = rows.find(Task, {"project": project, "state": lifecycle.PAUSED}, limit=MOST_READ)
    asking = [task for task in paused if any(pause.cause == QUESTION for pause in task.pauses)]
    for task in asking[:MOST]:
        asked = next(pause.reason for pause in task.pauses if pause.cause == QUESTION)
        question = shorten(asked.removeprefix("question: "), 100)
        yield warning(
            "stuck", f"{task.key} waits for an answer: {question}", f"`tenure answer {shell_word(task.ref)} TEXT`"
        )
    if len(asking) > MOST:
        yield warning("stuck", f"{len(asking) - MOST} more questions", "`tenure list -s paused` lists them")
    others = [task for task in paused if task not in asking]
    if others:
        names = [f"{task.key} ({shorten(task.reason or '', 40)})" for task in others]
        ref, is_own = others[0].ref, all(pause.cause in RESUMABLE for pause in others[0].pauses)
        fix = (
            f"`tenure resume {shell_word(ref)}` resumes it" if is_own else f"`tenure why {shell_word(ref)}` explains it"
        )
        yield note("stuck", f"paused: {first_of(names)}", fix)


def _readers(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    """Readers of the log that hold the archive back: tasks whose events they have not passed stay."""
    for name, first in holding_back(rows, project).items():
        silent = (rows.now - first.time) / 1e6
        if silent * SECOND < LONG_BEHIND:
            continue
        yield warning(
            "archive",
            f"the reader {name} has not passed the log's events of the last {lasting(silent)}: no task that "
            "ended since goes into the archive",
            "`tenure serve` or `tenure daemon` moves it on; `tenure db archive` does so once",
        )


def _left_over(rows: UnitOfWork, project: str) -> Iterator[Finding]:
    """Reservations of tasks that nobody holds: they block nothing, and a claim removes them."""
    found = rows.find(Reservation, {"project": project}, limit=MOST_READ)
    alive = {row.id for row in living(rows, found)}
    patterns = sorted(row.pattern for row in found if row.id not in alive)
    if patterns:
        yield note("stuck", f"reserved for a task that nobody holds: {first_of(patterns)}", "the next claim frees it")


def _orphans(patient: Patient) -> Iterator[Finding]:
    """Claims whose process has ended, as this host's own process table proves."""
    from tenure.agents.ended_holders import ended_holders

    assert patient.client is not None
    ended = [process for process in ended_holders(patient.client) if process["tasks"]]
    for process in ended:
        yield warning(
            "orphans",
            f"{first_of(process['tasks'])} {'is' if len(process['tasks']) == 1 else 'are'} held by process "
            f"{process['pid']}, which has ended",
            "nothing is lost: the next claim on this host takes it over",
        )
    if not ended:
        yield ok("orphans", "no claim of a process that has ended")


# --- over a server: doctor on the server's own host checks more, since it reads every row there --------------


def _remote_work(client: Client) -> Iterator[Finding]:
    status = client.status()
    yield from _remote_agents(status["agents"], status["now"])
    for scope, why in status["stopped"].items():
        yield note("stopped", f"claiming is stopped for {scope.rstrip(':')}{why and ': ' + why}", "`tenure go -h`")
    yield from _remote_sources(status)
    waiting = client.todo() if status["usage"].get("doubtful_usd") or COUNTED_AS in status["validations"] else ()
    yield from _costs([one["key"] for one in waiting if one["what"] == COST])
    yield from _landings(waiting)
    yield from [*_remote_dead_letters(client), *_questions(client)] or [ok("stuck", "no task waits for a person")]


def _remote_sources(status: Mapping[str, Any]) -> Iterator[Finding]:
    if any(status["sources"].values()) and status["coordinator"] is None:
        yield warning(
            "sources",
            "nobody leads now, so schedules and triggers do not fire",
            "check that the server's coordinator runs: `GET /health/coordinator`",
        )


def _remote_agents(agents: Sequence[Mapping[str, Any]], now: int) -> Iterator[Finding]:
    silent = [agent for agent in agents if agent["status"] == "stale"]
    for agent in silent:
        if agent["tasks"]:
            yield warning(
                "agents",
                f"{agent['name']} holds {first_of(list(agent['tasks']))} and was last seen "
                f"{lasting((now - agent['last_seen']) / 1e6)} ago",
                "check that it still runs; if not, others can claim when its lease ends",
            )
    yield ok("agents", f"{len(agents) - len(silent)} seen recently, {len(silent)} not")


def _remote_dead_letters(client: Client) -> Iterator[Finding]:
    letters = client.dead_letters()
    for letter in letters[:MOST]:
        yield warning(
            "stuck",
            f"{letter['key']} is a dead letter: {shorten(letter.get('why') or letter['error'], 120)}",
            f"`tenure history {shell_word(str(letter['key']))}` shows how it failed, `tenure retry "
            f"{shell_word(str(letter['key']))}` tries again",
        )
    if len(letters) > MOST:
        yield warning("stuck", f"{len(letters) - MOST} more dead letters", "`tenure dlq` lists them all")


def _questions(client: Client) -> Iterator[Finding]:
    paused = client.tasks(state="paused", limit=200)
    asking = [t for t in paused if any(pause["cause"] == "question" for pause in t.get("pauses", ()))]
    for task in asking[:MOST]:
        question = shorten(task["reason"].removeprefix("question: "), 100)
        yield warning(
            "stuck", f"{task['key']} waits for an answer: {question}", f"`tenure answer {shell_word(task['ref'])} TEXT`"
        )
