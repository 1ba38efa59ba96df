"""`join`, `leave`, `agent …`, `msg`, `inbox`, `reserve`, `locks`, `lead`, `session`: the team and its reservations."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.cli.main import Answer, Run, Usage, answered, arg, options, shown, verb_of
from tenure.cli.option_kinds import contents, seconds
from tenure.cli.text_format import Columns, ago, columns, counted, lasting, moment, plain, shorten
from tenure.core import commands as c
from tenure.core import limits, team
from tenure.core.budgets import USD
from tenure.core.outcomes import Outcome
from tenure.core.safe_text import one_line, shell_word

if TYPE_CHECKING:
    from tenure.client import Client

CLI_STALE = limits.CLI_AGENT_STALE
LEAD = limits.AGENT_LEAD_LEASE
UNRECOGNISED = ("generic", "human")


@options(
    arg("-n", "--name", metavar="NAME", help="your name (else detected)"),
    arg("-t", "--type", metavar="TYPE", help="claude, codex, gemini, generic … (else detected)"),
    arg("-c", "--cap", action="append", default=[], metavar="NAME", help="a capability (may be repeated)"),
    arg("--track", action="append", default=[], metavar="CODE", help="tracks you work on (may be repeated)"),
    arg("--model", action="append", default=[], metavar="NAME", help="models you work with (may be repeated)"),
    arg("--region", metavar="NAME", help="where you are"),
    arg("--max-tasks", type=int, metavar="N", help="how many tasks at once"),
    arg("--key", metavar="FILE", help="sign your results with the key in this file; created if missing"),
)
def join(run: Run, given: Namespace) -> Answer:
    """Register your name and capabilities. Optional: agents are detected from their environment.

    The calling script is recorded: its later commands act as this agent, in a separate session.
    """
    from tenure.agents.identity import join as joined
    from tenure.cli.signing import kept_key

    if given.name == "":
        raise Usage("join: the name must not be empty", "as in `tenure join -n ann`; without -n it is detected")
    default, stale_after = run.setting("agents.type"), run.setting("agents.stale_after") or CLI_STALE
    with ExitStack() as stack:
        # Before anything is recorded: it may not be readable.
        kept = stack.enter_context(kept_key(run, given.key)) if given.key else None
        who = joined(
            run.environ, given.name or run.given.agent, run.given.session, given.type or default,
            lambda name, own: _free_name(run, name, own),
        )  # fmt: skip
        run.who = who = who if who.type not in UNRECOGNISED else msgspec.structs.replace(who, type=default or who.type)
        if kept is not None:
            run.client.signing_key = kept.key
        outcome = run.client.register(
            type=given.type or who.type, capabilities=tuple(given.cap), tracks=tuple(given.track),
            models=tuple(given.model), region=given.region, max_concurrent_tasks=given.max_tasks, user=who.user,
            stale_after=stale_after, heartbeat=run.setting("agents.heartbeat"),
        )  # fmt: skip
        if outcome.warnings and not _namesakes(run.client, run.environ, who.agent, who.session):
            run.client.last = outcome = msgspec.structs.replace(outcome, warnings=None)  # of sessions that have ended
    lines = [f"export TENURE_AGENT={shell_word(who.agent)}", f"export TENURE_SESSION={shell_word(who.session)}"]
    more: dict[str, Any] = {}
    if kept is not None:
        more = {"key_file": kept.path, "key_created": kept.is_new}
        lines += (
            [f"# created {one_line(kept.path)}: a new key; without it nobody can sign as you"] if kept.is_new else []
        )
    more |= {"heartbeat": run.setting("agents.heartbeat"), "stale_after": stale_after}
    lines.append(f"# heartbeat: {more['heartbeat']:g} s; stale after {stale_after:g} s without a sign of life")
    # An agent is known by its name: that is its id.
    return answered(outcome, "\n".join(lines), id=who.agent, name=who.agent, session=who.session, **more)


def _free_name(run: Run, name: str, own: str) -> str:
    """The user's name, or the first that nobody uses: two plain terminals are two agents."""
    with run.client_at(run.home.url) as client:
        names = (name if number == 1 else f"{name}-{number}" for number in count(1))
        return next(one for one in names if not _namesakes(client, run.environ, one, own))


def _namesakes(client: Client, environ: Mapping[str, str], name: str, own: str) -> list[str]:
    """The sessions besides `own` that act for the agent of this name; of this machine's only those that still run."""
    from tenure.agents.identity import has_ended

    now, patience = client.now(), round(CLI_STALE * 1e6)
    return [
        one["id"]
        for one in client.sessions(name, limits.LISTED)
        if one["id"] != own
        and team.uses_name(one["ended_at"], one["last_activity"], patience, now)
        and not has_ended(environ, one["id"])
    ]


@options(arg("--force", action="store_true", help="also end your agent's sessions in other terminals"))
def leave(run: Run, given: Namespace) -> Answer:
    """End the session and release its claims at once."""
    from tenure.core.errors import NotFound

    others = []
    if given.force:
        found = run.client.sessions(run.who.agent, limits.LISTED)
        others = [one["id"] for one in found if one["ended_at"] is None and one["id"] != run.who.session]
    for session_ in others:
        _left(run, run.client.leave(session_), session_)
    try:
        outcome = _left(run, run.client.leave(), run.who.session)
    except NotFound:
        if not others:
            raise
        outcome = run.done[-1]  # this terminal has no session
    freed = [key for one in run.done for key in one.changed or ()]
    message = f"released {', '.join(freed)}" if freed else "nothing was held"
    return answered(outcome, f"{outcome.outcome}: {message}", sessions=len(others) + 1, released=freed)


def _left(run: Run, outcome: Outcome, session_: str) -> Outcome:
    """Forget the receipts of a session that is over: of all agents in it."""
    from tenure.agents import identity
    from tenure.agents.receipts import Receipts

    if outcome.ok:
        Receipts(run.home, run.project, session_, environ=run.environ).forget()
        identity.forget(run.environ, session_)
    return outcome


@options(
    arg("--managed", action="store_true", default=None, help="only agents of runners, workers and pools"),
    arg("--unmanaged", dest="managed", action="store_false", help="only the others"),
)
def agents(run: Run, given: Namespace) -> Answer:
    """List agents: what each holds and does, its memory and CPU."""
    now = run.client.now()
    wanted: Columns = {
        "agent": "name",
        "type": "type",
        "status": _status,
        "holds": lambda agent: ", ".join(agent.get("tasks", ())) or None,
        "step": lambda agent: _step(agent) or None,
        "memory": lambda agent: _memory_text(agent) or None,
        "cpu": lambda agent: _cpu_text(agent) or None,
        "last seen": lambda agent: ago(agent.get("last_seen"), now),
    }
    return shown(run.client.agents(managed=given.managed), lambda found: columns(found, wanted, "no agents yet"))


def _status(agent: dict[str, Any]) -> str:
    """With what it reports of itself, where that is not good."""
    health = agent.get("health") or "ok"
    return str(agent["status"]) if health in ("ok", "healthy") else f"{agent['status']}, {health}"


def _step(agent: dict[str, Any]) -> str:
    percent = agent.get("percent")
    return shorten(
        " ".join(plain(part) for part in (agent.get("step"), f"{percent}%" if percent is not None else "") if part), 40
    )


def _memory_text(agent: dict[str, Any]) -> str:
    used = agent.get("memory_mb")
    return "" if used is None else f"{used} MB" if used < 10_000 else f"{used / 1024:.1f} GB"


def _cpu_text(agent: dict[str, Any]) -> str:
    return "" if agent.get("cpu_percent") is None else f"{agent['cpu_percent']}%"


@options(
    arg("text", type=contents, help="the message: text, @FILE, or - for stdin"),
    arg("--to", default="@all", metavar="WHOM", help="an agent, @all, @leader, @idle, @track:B or @type:codex (@all)"),
    arg("--type", default="chat", metavar="TYPE", help="chat, request, response or system"),
    arg("--reply-to", metavar="MESSAGE", help="the message this answers"),
    arg("--action", metavar="NAME", help="make it a command for programs, as in review"),
    arg("--expires", type=seconds, metavar="DURATION", help="how long it is worth acting on, as in 60s"),
)
def msg(run: Run, given: Namespace) -> Answer:
    """Send a message to agents. Their next command reports it.

    With --action, brokers also carry it to one worker of the type.
    """
    fields = {name: getattr(given, name) for name in ("type", "reply_to", "action", "expires")}
    return answered(run.client.send(given.text, given.to, **fields))


@options(
    arg("--unread", action="store_true", help="only unread mail"),
    arg("--from", dest="sender", metavar="AGENT", help="only from this agent"),
    arg(
        "-n",
        "--limit",
        type=int,
        default=limits.LISTED,
        metavar="N",
        help=f"at most N, the oldest first ({limits.LISTED})",
    ),
    arg("--after", metavar="MESSAGE", help="continue after this message, the last of the previous page"),
    arg("--keep", action="store_true", help="do not mark it as read"),
)
def inbox(run: Run, given: Namespace) -> Answer:
    """Read your mail. Reading marks it as read, unless you --keep it."""
    found = run.client.inbox(unread=given.unread, sender=given.sender, after=given.after, limit=given.limit)
    unread = [message["id"] for message in found if message["read_at"] is None]
    if unread and not given.keep:
        run.client.read(unread)
    return shown(found, _mail, f"--after {found.next}")


def _mail(found: list[dict[str, Any]]) -> str:
    return "\n".join(map(_letter, found)) or "no mail"


def _letter(m: dict[str, Any]) -> str:
    new = " (new)" if m["read_at"] is None else ""
    return f"{moment(m['sent_at'])}  {m['from']} to {m['to']}{new}: {plain(m['text'])}"


@options(
    arg(
        "--lease", type=seconds, metavar="SECONDS", help="how long from now, with --term (agents.leader_lease, or 1800)"
    ),
    arg("--term", type=int, metavar="N", help="your current term, to renew"),
    arg("--step-down", action="store_true", help="give up leadership (with --term)"),
)
def lead(run: Run, given: Namespace) -> Answer:
    """Become the project's leader, or renew leadership; prints the term.

    Mail to @leader reaches you, and `assign`, `reassign` and `recover` accept your --term. In a store without a server
    the first agent that joins or claims leads, and its commands renew that: then `lead` shows its term.
    """
    if given.step_down:
        if given.term is None:
            raise Usage("lead --step-down: which term?", "pass it with --term")
        return answered(run.client.step_down(given.term))
    if given.lease is not None and given.term is None:
        raise Usage(
            "lead --lease: which term?",
            "`tenure lead` shows yours: pass it with --term; agents.leader_lease is for all",
        )
    lease = given.lease or run.setting("agents.leader_lease") or LEAD
    return answered(run.client.lead(lease=lease, term=given.term))


@options(arg("id", nargs="?", help="which one (else yours)"))
def session(run: Run, given: Namespace) -> Answer:
    """Show what a session claimed, completed and lost."""
    return shown(run.client.memory(given.id), _memory)


def _memory(memory: dict[str, Any]) -> str:
    lines = [f"{memory['id']}  agent {memory['agent']}{', over' if memory['is_over'] else ''}"]
    held = [f"{one['key']}@{one['generation']} until {moment(one['lease_until'])}" for one in memory["active_claims"]]
    lines += [f"holds      {', '.join(held) or 'nothing'}"]
    lines += [f"completed  {', '.join(memory['completed']) or 'nothing'}"]
    if memory["track_assignments"]:
        lines += [f"tracks     {', '.join(memory['track_assignments'])}"]
    for entry in memory["task_log"]:
        outcome = f": {entry['outcome'].lower()}" if entry.get("outcome") else ""
        often = f", {counted(entry['count'], 'time')}" if "count" in entry else ""
        what = f"{entry['event']}  {entry['task']} generation {entry['generation']}{outcome}{often}"
        lines += [f"  {moment(entry['time'])}  {what}"]
    if memory.get("more"):  # an older server has no word of it
        lines += ["… older entries are left out: `tenure log --after 0` has all events"]
    return "\n".join(lines)


_NAMED = arg("name", metavar="AGENT", help="its name, as `tenure agent list` shows it")


@options(_NAMED)
def show_agent(run: Run, given: Namespace) -> Answer:
    """Show one agent: capabilities, claims, whether it may claim, and its last hour."""
    found = run.client.agent_details(given.name)
    now = run.client.now()
    return shown(found, lambda agent: _agent_text(agent, now))


def _agent_text(agent: dict[str, Any], now: int) -> str:
    managed = ", managed" if agent["managed"] else ""
    seen = f"last seen {ago(agent['last_seen'], now)}{_next_heartbeat(agent, now)}"
    lines = [f"{plain(agent['name'])}  {agent['type']}{managed}, {_status(agent)}, {seen}"]
    if agent["terminated_at"] is not None:
        why = f": {plain(agent['terminated_for'])}" if agent["terminated_for"] else ""
        lines.append(f"terminated {moment(agent['terminated_at'])}{why}; `tenure agent resume` lets it claim again")
    elif agent["draining"]:
        lines.append("drained: it claims nothing more; `tenure agent resume` lets it claim again")
    if "heartbeat" in agent:  # an older server has no word of it
        lines.append(f"{'heartbeat':<13}{agent['heartbeat']:g} s; stale after {agent['stale_after']:g} s")
    lines += [f"{name:<13}{', '.join(agent[name])}" for name in ("capabilities", "tracks", "models") if agent[name]]
    lines.append(f"{'holds':<13}{', '.join(agent['tasks']) or 'nothing'}")
    if agent["task"]:
        ready = f", expected to be done {moment(agent['expected_at'], now)}" if agent["expected_at"] else ""
        lines.append(f"{'works on':<13}{plain(agent['task'])}  {_step(agent)}{ready}".rstrip())
    lines += [f"{'budget':<13}{plain(one['budget'])}: {_room(one)} left" for one in agent["budgets"]]
    lines += [f"{plain(name):<13}{plain(str(value))}" for name, value in agent["metadata"].items()]
    for name, what, text in (("memory_mb", "memory", _memory_text(agent)), ("cpu_percent", "cpu", _cpu_text(agent))):
        if text:
            lines.append(f"{what:<13}{text:<9} {_hour([minute[name] for minute in agent['minutes']])}".rstrip())
    return "\n".join(lines)


def _room(budget: dict[str, Any]) -> str:
    return f"${budget['headroom']}" if budget["currency"] == USD else f"{budget['headroom']:,} tokens"


def _next_heartbeat(agent: dict[str, Any], now: int) -> str:
    at = agent["next_heartbeat_at"]
    if at is None:
        return ""
    return f", next heartbeat in {lasting((at - now) / 1e6)}" if at > now else ", its heartbeat is overdue"


BLOCKS = "▁▂▃▄▅▆▇█"


def _hour(values: list[int | None]) -> str:
    """A bar for each minute of the last hour, relative to the highest."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return ""
    top = max(*known, 1)
    return "".join(" " if v is None else BLOCKS[v * (len(BLOCKS) - 1) // top] for v in values)


drain_agent = verb_of(
    c.Drain, "Let an agent finish its tasks and claim nothing more, until `tenure agent resume`.", _NAMED, agent="name"
)
resume_agent = verb_of(c.ResumeAgent, "Let a drained or terminated agent claim again.", _NAMED, agent="name")


@options(
    _NAMED,
    arg("-m", "--reason", default="", metavar="TEXT", help="the reason, for the agent and the log"),
    arg("--now", action="store_true", help="end its claims at once; else they may finish"),
)
def terminate_agent(run: Run, given: Namespace) -> Answer:
    """Terminate an agent. Its workers and runners exit, and it cannot claim until `tenure agent resume`."""
    return answered(run.client.terminate(given.name, graceful=not given.now, reason=given.reason))


@options(
    arg("patterns", nargs="+", metavar="PATTERN", help="src/api/**, port:8080, env:staging"),
    arg("--shared", action="store_true", help="allow others to share it"),
    arg("--with", dest="task", metavar="TASK", help="for as long as you hold this task's claim"),
    arg("--receipt", metavar="R", help="the receipt of that task"),
    arg("--lease", type=seconds, metavar="SECONDS", help="without a task: length of the lease"),
)
def reserve(run: Run, given: Namespace) -> Answer:
    """Reserve paths, ports or names. Without a task the reservation has its own lease and receipt."""
    receipt = run.receipt(given) if given.task or given.receipt else None
    mode = "shared" if given.shared else "exclusive"
    outcome = run.client.reserve(*given.patterns, receipt=receipt, mode=mode, lease=given.lease)
    what = outcome.message or f"{', '.join(given.patterns)}, {mode}"
    own = (
        f"\n  to release: tenure unreserve {shell_word(outcome.receipt)}" if outcome.receipt and receipt is None else ""
    )
    return answered(outcome, f"{outcome.outcome}: {what}{own}")


unreserve = verb_of(c.Unreserve, "Release a reservation.", arg("receipt", help="what `reserve` printed"))


@options()
def locks(run: Run, given: Namespace) -> Answer:
    """List reservations: pattern, holder, end of the lease."""
    names = {name: name for name in ("pattern", "mode", "agent", "task")}
    wanted: Columns = {**names, "until": lambda row: moment(row["until"])}
    return shown(run.client.reservations(), lambda held: columns(held, wanted, "no reservations"))
