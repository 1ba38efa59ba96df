"""Agents, sessions and processes: register, heartbeat, drain, terminate, leave, report ended processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tenure.core import claims, commands, ids, inputs, lifecycle, limits, roles, settle, team
from tenure.core.errors import InvalidInput, LimitReached, NotFound, TooLarge
from tenure.core.filters import Prefix, Present, Range, Where
from tenure.core.outcomes import Outcome
from tenure.core.processes import check_process, process_of, text_of
from tenure.core.records import Agent, Claim, HealthMinute, Message, Project, Row, Session, Task, replace
from tenure.core.safe_text import shell_word
from tenure.engine.runtime.effects import end_agent, free_places, spread
from tenure.engine.runtime.rows import brief_of, check_agent_name, current_claim, fields_of, project_of, task_named
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork

if TYPE_CHECKING:
    from tenure.core.views import AgentView

MOST_PROCESSES = limits.PROCESSES_GONE
TERMINATED = "terminated"  # the directive of an agent that an operator has terminated
MOST_MAIL = limits.MAIL_COUNTED
MOST_NAMES = limits.LISTED
MOST_MEMORY = limits.HEARTBEAT_MEMORY
MOST_CPU = limits.HEARTBEAT_CPU


def known_agent(work: UnitOfWork, project: str, name: str, type: str | None = None) -> Agent:
    """Return the agent's row, created on first use; `last seen` is written at most every 15 s."""
    agent = work.get(Agent, project, name)
    if agent is None:
        check_agent_name(work, project, name)
        # It never reported how often it gives a sign of life: as patient as with agents on a command line.
        patience = round(limits.CLI_AGENT_STALE * inputs.SECOND)
        agent = Agent(project=project, id=name, registered_at=work.now, last_seen=work.now, stale_after=patience)
        if type:
            agent = replace(agent, type=inputs.check_agent_type(type, "agent type"))
        work.record("agent.registered", agent, project=project, agent=name)
        return agent
    return seen(work, agent)


def seen(work: UnitOfWork, agent: Agent) -> Agent:
    """Keep the operator's decision: a sign of life lifts neither a drain nor a termination."""
    is_ended = agent.terminated_at is not None and agent.left_at is not None
    if not is_ended and (agent.left_at is not None or agent.stale):
        agent = replace(agent, left_at=None, stale=False, last_seen=work.now)
        work.record("agent.recovered", agent, project=agent.project, agent=agent.id)
    elif work.now - agent.last_seen >= team.PRESENCE:
        agent = work.put(replace(agent, last_seen=work.now))
    return agent


def sign_of_life(work: UnitOfWork, project: str, name: str | None) -> None:
    """A command of an agent that needs no claim; an unknown name stays unknown."""
    agent = work.get(Agent, project, name) if name else None
    if agent is not None:
        seen(work, agent)


def known_session(work: UnitOfWork, project: Project, id: str, agent: str, user: str | None) -> Session:
    """Return the session's row, created on first use."""
    session = work.get(Session, project.id, id)
    if session is not None:
        roles.check_mine(work.principal, session.agent, f"session {id}")
    if session is None:
        ids.check_new_name(id, "session")
    if session is None or is_over(work, session):
        _check_session_limit(work, project)
        began = session.created_at if session else work.now
        key = session.public_key if session else None  # a name that signed once always signs
        session = Session(
            project=project.id, id=id, agent=agent, user=user, created_at=began, last_activity=work.now, public_key=key
        )
        work.record("session.started", session, project=project.id, agent=agent, session=id)
        return session
    return active(work, session)


def user_of(work: UnitOfWork, user: str | None) -> str | None:
    """The agent that the command acts for; a signed-in person needs none."""
    return user if work.principal.key is None else work.principal.user


def active(work: UnitOfWork, session: Session, *, held: bool = False) -> Session:
    """Record a sign of life, at most every 15 s as for agents; an ended session stays ended.

    `held`: the sign comes from a holder, so silence cannot have ended its session.
    """
    if work.now - session.last_activity < team.PRESENCE:
        return session
    if not (session.ended_at is not None if held else is_over(work, session)):
        session = work.put(replace(session, last_activity=work.now))
    return session


def is_over(work: UnitOfWork, session: Session) -> bool:
    """Whether the sweep will end the session for silence, or already has."""
    if session.ended_at is not None:
        return True
    if session.last_activity >= team.in_use_since(work.now):
        return False
    held = {"project": session.project, "session": session.id}
    return team.is_over(session, work.tally(Task, held, 1), work.now)


def _check_session_limit(work: UnitOfWork, project: Project) -> None:
    if "max_active_sessions" in work.tenant_limits:
        work.need_locks("", lasting=False)  # sessions begin in any project
    refusal = refused_session(work, project)
    if refusal is not None:
        raise refusal


def refused_session(work: UnitOfWork, project: Project) -> LimitReached | None:
    """Why no session may begin in the project."""
    most = project.limits.get("max_active_sessions")
    if most is not None and active_sessions(work, project.id) >= most:
        return LimitReached(
            f"project {project.id} has {most} active sessions, its max_active_sessions limit",
            "end one, or ask an admin to raise the limit",
        )
    most = work.tenant_limits.get("max_active_sessions")
    if most is None or sessions_of_all(work) < most:
        return None
    name = work.context.tenant
    return LimitReached(
        f"tenant {name} has {most} active sessions in all projects, its max_active_sessions limit",
        f"end one; the deployment's owner can raise it: tenure tenant limits {shell_word(name)} max_active_sessions=N",
    )


def active_sessions(work: UnitOfWork, project: str) -> int:
    open_ = {"project": project, "ended_at": Present(False)}
    return _in_use(work, open_) + sum(not is_over(work, session) for session in _idle(work, open_))


def sessions_of_all(work: UnitOfWork) -> int:
    """The active sessions of all projects of the tenant, in few queries: one of each project would lock it."""
    open_ = {"ended_at": Present(False)}
    idle = _idle(work, open_)
    holding = work.count(Task, {"session": Present()}, "session") if idle else {}
    return _in_use(work, open_) + sum(not team.is_over(s, holding.get(s.id, 0), work.now) for s in idle)


def _in_use(work: UnitOfWork, where: Where) -> int:
    """How many of these sessions gave a sign of life lately; their rows are not read."""
    seen = {**where, "last_activity": Range(low=team.in_use_since(work.now))}
    return sum(work.count(Session, seen, "project").values())


def _idle(work: UnitOfWork, where: Where) -> list[Session]:
    """The others: few, for the sweep ends those that hold nothing."""
    return work.find(Session, {**where, "last_activity": Range(high=team.in_use_since(work.now))})


def register(work: UnitOfWork, cmd: commands.Register) -> Outcome:
    project = project_of(work, cmd.project)
    check_agent_name(work, cmd.project, cmd.agent)
    inputs.check_agent_type(cmd.type, "agent type")
    for what in ("capabilities", "models", "tracks"):
        (inputs.check_models if what == "models" else inputs.check_list)(getattr(cmd, what), what)
    if cmd.max_concurrent_tasks is not None and cmd.max_concurrent_tasks < 1:
        raise InvalidInput(f"max_concurrent_tasks must be at least 1 (got {cmd.max_concurrent_tasks})")
    before = work.get(Agent, cmd.project, cmd.agent)
    kept = fields_of(before, "registered_at troubles cool_until") if before else {"registered_at": work.now}
    fields = "type models region tracks max_concurrent_tasks host boot pid pid_start managed"
    agent = Agent(
        project=cmd.project,
        id=cmd.agent,
        **fields_of(cmd, fields),
        capabilities=tuple(sorted(set(cmd.capabilities))),
        heartbeat=inputs.micros(cmd.heartbeat, "heartbeat", low=1, high=3600),
        stale_after=inputs.micros(cmd.stale_after, "stale_after", low=1, high=86400),
        last_seen=work.now,
        **kept,
        **_set_by_operators(before),
    )
    work.record("agent.updated" if before else "agent.registered", agent, project=cmd.project, agent=cmd.agent)
    warnings = _namesake(work, cmd, before)
    if cmd.session is not None:
        session = known_session(work, project, cmd.session, cmd.agent, user_of(work, cmd.user))
        if cmd.public_key is not None:
            _keyed(work, project, session, cmd.public_key)
    elif cmd.public_key is not None:
        raise InvalidInput("public_key needs a session: it signs the results of one")
    return Outcome(
        outcome="UPDATED" if before else "CREATED", agent=agent_view(work, agent), command_id=work.command_id,
        warnings=warnings,
    )  # fmt: skip


def _namesake(work: UnitOfWork, cmd: commands.Register, before: Agent | None) -> tuple[str, ...] | None:
    """Whether another session uses the name now. Programs that are started again have theirs on purpose."""
    if before is None or before.left_at is not None or cmd.managed or cmd.session is None:
        return None
    recent = Range(low=work.now - before.stale_after + 1)
    where = {"project": cmd.project, "agent": cmd.agent, "ended_at": Present(False), "last_activity": recent}
    others = [one for one in work.find(Session, where, limit=2) if one.id != cmd.session]
    return tuple(team.taken_text(cmd.agent, one.id, one.last_activity, work.now) for one in others[:1]) or None


def _keyed(work: UnitOfWork, project: Project, session: Session, given: str) -> None:
    """Register the session's public key, once: from then on its results must be signed with it."""
    from tenure.core.signed_results import check_public_key, fingerprint  # here: claims do not need it

    key = check_public_key(given)
    if session.public_key == key:
        return
    if session.public_key is not None:
        raise InvalidInput(f"session {session.id} has another key", "a new key is a new session: --session")
    if any(claims.is_held(task) for task in work.find(Task, {"project": project.id, "session": session.id})):
        raise InvalidInput(f"session {session.id} holds tasks", "register its key before its first claim")
    rows: list[Row] = [replace(session, public_key=key)]
    if not project.signs:
        rows.append(replace(work.require(Project, project.id, project.id), signs=True))
    details = {"fingerprint": fingerprint(key)}
    names = {"agent": session.agent, "session": session.id}
    work.record("session.keyed", *rows, project=project.id, details=details, **names)


def _set_by_operators(agent: Agent | None) -> dict[str, Any]:
    """Fields that stay when the agent registers again."""
    if agent is None:
        return {}
    left_at = None if agent.terminated_at is None else agent.left_at
    kept: dict[str, Any] = fields_of(agent, "draining terminated_at terminated_for") | {"left_at": left_at}
    return kept


def heartbeat(work: UnitOfWork, cmd: commands.Heartbeat) -> Outcome:
    """Record a sign of life and return the number of unread messages; renews no lease."""
    project = project_of(work, cmd.project)
    reported = _checked_health(work, cmd)
    agent = known_agent(work, cmd.project, cmd.agent)
    agent = work.put(replace(agent, last_seen=work.now, **reported))
    if cmd.memory_mb is not None or cmd.cpu_percent is not None:
        minute = work.get(HealthMinute, cmd.project, team.minute_id(agent.id, work.now))
        work.put(team.minute_of(agent, work.now, minute))
    if cmd.session is not None:
        known_session(work, project, cmd.session, cmd.agent, None)
    if agent.terminated_at is not None:
        mail = unread(work, cmd.project, cmd.agent)
        return Outcome(outcome="OK", mail=mail, directive=TERMINATED, directive_text=ended_text(agent))
    from tenure.engine.verbs import brief  # it knows this module

    asked = brief.strongest(brief.directives(work, cmd.project, cmd.agent))
    return Outcome(outcome="OK", mail=unread(work, cmd.project, cmd.agent), **asked)


def _checked_health(work: UnitOfWork, cmd: commands.Heartbeat) -> dict[str, Any]:
    """The fields that the heartbeat gives."""
    if cmd.health is not None:
        inputs.check_choice(cmd.health, team.HEALTH_WORDS, "health")
    inputs.check_text(cmd.step or "", "step", 1000)
    for name, most in (("percent", 100), ("memory_mb", MOST_MEMORY), ("cpu_percent", MOST_CPU)):
        value = getattr(cmd, name)
        if value is not None and not 0 <= value <= most:
            raise InvalidInput(f"{name} must be from 0 to {most} (got {value})")
    if cmd.metadata is not None:
        inputs.check_size(cmd.metadata, "metadata", inputs.LARGEST_CLAIM_METADATA)
    reported = fields_of(cmd, "health step memory_mb cpu_percent percent metadata")
    if cmd.task is not None:
        reported["task"] = task_named(work, cmd.project, cmd.task).id
    return {name: value for name, value in reported.items() if value is not None}


def unread(work: UnitOfWork, project: str, agent: str) -> int:
    return work.tally(Message, {"project": project, "recipient": agent, "read_at": Present(False)}, MOST_MAIL)


def known_or_refused(work: UnitOfWork, project: str, name: str) -> Agent:
    agent = work.get(Agent, project, name)
    if agent is None:
        raise unknown_agent(work, project, name)
    return agent


def unknown_agent(work: UnitOfWork, project: str, name: str) -> NotFound:
    """That there is no such agent, with the nearest name."""
    near = inputs.suggestion(name, [agent.id for agent in work.find(Agent, {"project": project}, limit=MOST_NAMES)])
    return NotFound(f"no agent {name[:80]!r} in project {project}{near}", "`tenure agents` lists them")


def drain(work: UnitOfWork, cmd: commands.Drain) -> Outcome:
    agent = known_or_refused(work, cmd.project, cmd.agent)
    if agent.draining:
        return Outcome(outcome="UNCHANGED", agent=agent_view(work, agent))
    agent = replace(agent, draining=True)
    work.record("agent.draining", agent, project=cmd.project, agent=agent.id)
    return _updated(work, agent, f"{agent.id} claims nothing more{_finishing(work, agent)}")


def terminate(work: UnitOfWork, cmd: commands.Terminate) -> Outcome:
    agent = known_or_refused(work, cmd.project, cmd.agent)
    inputs.check_text(cmd.reason, "reason", 1000)
    holding = {"project": cmd.project, "agent": agent.id}
    if agent.terminated_at is not None and (cmd.graceful or not work.find(Task, holding, limit=1)):
        return Outcome(outcome="UNCHANGED", agent=agent_view(work, agent))
    agent = replace(
        agent, terminated_at=agent.terminated_at or work.now, terminated_for=cmd.reason or agent.terminated_for
    )
    from tenure.engine.verbs.lead import lost_by

    details = {"graceful": cmd.graceful}
    work.record("agent.terminating", agent, project=cmd.project, agent=agent.id, message=cmd.reason, details=details)
    lost_by(work, agent, "it was terminated")  # though it may finish what it holds
    freed = () if cmd.graceful else give_back(work, holding, lifecycle.SUPERSEDED_BY, "task.recovered")
    agent = end_agent(work, work.get(Agent, cmd.project, agent.id) or agent)
    return _updated(work, agent, f"{agent.id} is terminated{_finishing(work, agent)}", changed=freed)


def _updated(work: UnitOfWork, agent: Agent, message: str, **more: Any) -> Outcome:
    view = agent_view(work, agent)
    return Outcome(outcome="UPDATED", agent=view, command_id=work.command_id, message=message, **more)


def _finishing(work: UnitOfWork, agent: Agent) -> str:
    held = [task.key for task in work.find(Task, {"project": agent.project, "agent": agent.id}) if claims.is_held(task)]
    return f"; it may finish {', '.join(held[:5])}{' …' if len(held) > 5 else ''}" if held else ""


def resume(work: UnitOfWork, cmd: commands.ResumeAgent) -> Outcome:
    """Lift an operator's drain and termination. The agent becomes active with its next sign of life."""
    agent = known_or_refused(work, cmd.project, cmd.agent)
    if not agent.draining and agent.terminated_at is None:
        return Outcome(outcome="UNCHANGED", agent=agent_view(work, agent))
    agent = replace(agent, draining=False, terminated_at=None, terminated_for=None)
    work.record("agent.resumed", agent, project=cmd.project, agent=agent.id)
    return _updated(work, agent, f"{agent.id} may claim again")


def ended_text(agent: Agent) -> str:
    why = f": {agent.terminated_for}" if agent.terminated_for else ""
    return f"agent {agent.id} was terminated by an operator{why}"


def leave(work: UnitOfWork, cmd: commands.Leave) -> Outcome:
    session = work.get(Session, cmd.project, cmd.session)
    if session is None:
        raise NotFound(f"no session {cmd.session[:80]!r} in project {cmd.project}")
    roles.check_mine(work.principal, session.agent, f"session {session.id}")
    if is_over(work, session):
        return Outcome(outcome="UNCHANGED")
    where = {"project": cmd.project, "session": session.id}
    for task in work.find(Task, where):
        if claims.is_held(task):
            roles.check_key(work.principal, current_claim(work, task), f"the claim of {task.key}")
    work.speaker = session.agent
    freed = give_back(work, where, lifecycle.RELEASED_BY, "task.released")
    rows: list[Row] = [replace(session, ended_at=work.now)]
    others = work.find(Session, {"project": cmd.project, "agent": session.agent, "ended_at": Present(False)})
    work.record("session.ended", *rows, project=cmd.project, agent=session.agent, session=session.id)
    agent = work.get(Agent, cmd.project, session.agent)
    if agent is not None and agent.left_at is None and all(s.id == session.id or is_over(work, s) for s in others):
        work.record("agent.left", replace(agent, left_at=work.now), project=cmd.project, agent=agent.id)
        free_places(work, agent, "it has left")
    return Outcome(outcome="OK", changed=freed, command_id=work.command_id)


def give_back(work: UnitOfWork, where: dict[str, str], ending: lifecycle.Ending, kind: str) -> tuple[str, ...]:
    """End every claim that matches; return the keys of the tasks that are free again."""
    freed = []
    for task in work.find(Task, where):
        if not claims.is_held(task):
            continue
        # The brief would cost another round trip.
        policy = None if claims.is_given_back(task, ending) else brief_of(work, task).retry
        free, over = claims.ended(task, current_claim(work, task), ending, work.now, retry=policy)
        work.record(kind, over, task=free)
        freed.append(task.key)
    spread(work)
    return tuple(freed)


def gone(work: UnitOfWork, cmd: commands.Gone) -> Outcome:
    """End the claims of processes that have ended, as the end of their leases would; late submits stay open.

    A claim is found by its own process, so a claim that another process has taken over since is left alone. An agent
    that was nothing but this process is offline; its next sign of life, from another process, brings it back.
    """
    if len(cmd.processes) > MOST_PROCESSES:
        raise TooLarge(f"at most {MOST_PROCESSES} processes in one command (got {len(cmd.processes)})")
    wanted = tuple(text_of(check_process(process)) for process in cmd.processes)
    freed = []
    died: dict[str, tuple[commands.Process, str]] = {}  # agent → its process, and the session of its claim
    for claim in work.find(Claim, {"project": cmd.project, "process": wanted}):
        task = work.require(Task, cmd.project, claim.task)
        process = process_of(claim.process or "")
        lost = settle.gone(task, claim, brief_of(work, task), work.now, work.random.fraction())
        assert lost.claim is not None, claim.id
        text = f"process {process.pid} on {process.host} is gone"
        details = {**lost.details, "host": process.host, "pid": process.pid, "said_by": work.principal.name}
        fields = {"level": "warning", "message": text, "details": details}
        work.record(lost.kind, lost.claim, task=lost.task, **fields)
        freed.append(task.key)
        died.setdefault(claim.agent, (process, claim.session))
    spread(work)
    from tenure.engine.verbs.lead import lost_with

    led = lost_with(work, cmd.project, wanted)
    for process in cmd.processes:
        where = {"project": cmd.project, "host": process.host, "boot": process.boot, "pid": process.pid}
        for agent in work.find(Agent, {**where, "pid_start": process.start}):
            died.setdefault(agent.id, (process, ""))
    dead = [_died(work, cmd.project, name, *last) for name, last in died.items()]
    return Outcome(outcome="OK" if freed or led or any(dead) else "UNCHANGED", changed=tuple(sorted(freed)))


def _died(work: UnitOfWork, project: str, name: str, process: commands.Process, session: str) -> bool:
    """Record that the agent died with its process, unless it lives elsewhere: in another process, or session."""
    agent = work.get(Agent, project, name)
    if agent is None or agent.left_at is not None:
        return False
    if agent.pid is not None:  # it reported which process it is
        is_same = (agent.host, agent.boot, agent.pid, agent.pid_start) == (
            process.host,
            process.boot,
            process.pid,
            process.start,
        )
    else:  # known by its claims alone: dead if nothing else shows that it lives
        others = work.find(Session, {"project": project, "agent": name, "ended_at": Present(False)})
        holds = any(claims.is_held(task) for task in work.find(Task, {"project": project, "agent": name}))
        is_same = not holds and all(other.id == session or is_over(work, other) for other in others)
    if not is_same:
        return False
    details = {"host": process.host, "pid": process.pid, "said_by": work.principal.name}
    message = f"process {process.pid} on {process.host} is gone"
    dead = replace(agent, left_at=work.now)
    work.record("agent.died", dead, project=project, agent=name, level="warning", message=message, details=details)
    free_places(work, dead, claims.PROCESS_GONE)
    return True


def ended_holders(work: UnitOfWork, project: str) -> Mapping[str, str]:
    """Tasks that processes of this host hold which have ended: id → the session of the claim."""
    table = work.context.table
    if table is None:
        return {}
    here = work.find(Claim, {"project": project, "process": Prefix(table.place)})
    over = {text for text in {claim.process or "" for claim in here} if table.has_ended(process_of(text))}
    return {claim.task: claim.session for claim in here if claim.process in over}


def _is_gone(work: UnitOfWork, agent: Agent, held: Sequence[Task], dead: Mapping[str, str]) -> bool:
    """Whether its process has ended, by the rule of `_died`; `dead`: see `ended_holders`."""
    table = work.context.table
    if table is None:
        return False
    if agent.host and agent.boot and agent.pid is not None and agent.pid_start is not None:
        own = commands.Process(host=agent.host, boot=agent.boot, pid=agent.pid, start=agent.pid_start)
        return table.has_ended(own)
    if not held or any(task.id not in dead for task in held):
        return False
    sessions = {dead[task.id] for task in held}
    others = work.find(Session, {"project": agent.project, "agent": agent.id, "ended_at": Present(False)})
    return all(other.id in sessions or is_over(work, other) for other in others)


def agent_view(work: UnitOfWork, agent: Agent, dead: Mapping[str, str] | None = None) -> AgentView:
    """`dead`: see `ended_holders`; None: of a command, which no dead agent sends."""
    held = [t for t in work.find(Task, {"project": agent.project, "agent": agent.id}) if claims.is_held(t)]
    fields = "type capabilities models tracks region max_concurrent_tasks last_seen registered_at cool_until"
    more = " host pid draining terminated_at terminated_for managed memory_mb cpu_percent metadata"
    is_gone = dead is not None and _is_gone(work, agent, held, dead)
    living = [task for task in held if task.id not in (dead or ())]
    status = team.status(agent, len(living), work.now, is_gone=is_gone)
    answer: AgentView = fields_of(agent, fields + more) | {
        "name": agent.id,
        "status": status,
        "health": team.health_word(agent.health),
        "tasks": tuple(t.key for t in held),
        **_doing(agent, held),
        "next_heartbeat_at": team.next_heartbeat(agent, status),
    }
    return answer


def _doing(agent: Agent, held: list[Task]) -> dict[str, Any]:
    """What it works on: the task that its heartbeat named, else the one claimed last. Progress of the claim wins."""
    task = next((t for t in held if t.id == agent.task), None) or max(
        held, key=lambda t: t.claimed_at or 0, default=None
    )
    if task is None:
        return {"task": None, "step": None, "percent": None, "expected_at": None}
    is_named = task.id == agent.task
    step = task.step if task.step is not None else agent.step if is_named or agent.task is None else None
    percent = task.percent if task.percent is not None else agent.percent if is_named else None
    return {"task": task.key, "step": step, "percent": percent, "expected_at": task.done_by}


HANDLERS: Handlers = {
    commands.Register: register,
    commands.Heartbeat: heartbeat,
    commands.Drain: drain,
    commands.Terminate: terminate,
    commands.ResumeAgent: resume,
    commands.Leave: leave,
    commands.Gone: gone,
}
