"""`join`, `leave`, `agents`, `msg`, `inbox`, `lead`, `session`: agents, sessions and mail."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from tenure.cli.main import Answer, Run, answered, arg, options
from tenure.cli.option_kinds import contents, seconds
from tenure.cli.text_format import ago, clock, plain, table
from tenure.client.wire import plain as wire
from tenure.core import limits

CLI_STALE = limits.CLI_AGENT_STALE


@options(
    arg("-n", "--name", metavar="NAME", help="your name (else detected)"),
    arg("-t", "--type", metavar="TYPE", help="claude, codex, gemini, generic … (else detected)"),
    arg("-c", "--cap", action="append", default=[], metavar="NAME", help="a capability (may be repeated)"),
    arg("--track", action="append", default=[], metavar="CODE", help="tracks you work on (may be repeated)"),
    arg("--model", action="append", default=[], metavar="NAME", help="models you work with (may be repeated)"),
    arg("--region", metavar="NAME", help="where you are"),
    arg("--max-tasks", type=int, metavar="N", help="how many tasks at once"),
)
def join(run: Run, given: Namespace) -> Answer:
    """Register your name and capabilities. Optional: agents are detected from their environment.

    The calling script is recorded: its later commands act as this agent, in a separate session.
    """
    from tenure.agents.identity import join as joined

    who = joined(run.environ, given.name or run.given.agent, run.given.session, given.type)
    run.speak_as(who)
    outcome = run.client.register(
        type=given.type or who.type, capabilities=tuple(given.cap), tracks=tuple(given.track),
        models=tuple(given.model), region=given.region, max_concurrent_tasks=given.max_tasks, user=who.user,
        stale_after=CLI_STALE,
    )  # fmt: skip
    lines = [f"export TENURE_AGENT={who.agent}", f"export TENURE_SESSION={who.session}"]
    # An agent is known by its name: that is its id.
    return answered(outcome, "\n".join(lines), id=who.agent, name=who.agent, session=who.session)


@options()
def leave(run: Run, given: Namespace) -> Answer:
    """End the session and release its claims at once."""
    from tenure.agents import session_records
    from tenure.agents.receipts import Receipts

    outcome = run.client.leave()
    if outcome.ok:  # of all agents in the session: it is over for each of them
        Receipts(run.home, run.project, run.who.session, environ=run.environ).forget()
        session_records.forget(run.environ, run.who.session)
    return answered(outcome)


@options()
def agents(run: Run, given: Namespace) -> Answer:
    """List agents and what they hold."""
    found = run.client.agents()
    now = run.client.now()
    return Answer(wire(found), lambda: _agents(found, now))


def _agents(found: list[dict[str, Any]], now: int) -> str:
    rows = [
        (a["name"], a["type"], a["status"], ", ".join(a.get("tasks", ())) or None, ago(a.get("last_seen"), now))
        for a in found
    ]
    return table(rows, ("agent", "type", "status", "holds", "last seen")) or "no agents yet"


@options(
    arg("text", type=contents, help="the message: text, @FILE, or - for stdin"),
    arg("--to", default="@all", metavar="WHOM", help="an agent, @all, @leader, @idle or @track:B (@all)"),
    arg("--type", default="chat", metavar="TYPE", help="chat, request, response or system"),
    arg("--reply-to", metavar="MESSAGE", help="the message this answers"),
)
def msg(run: Run, given: Namespace) -> Answer:
    """Send a message to agents. Their next command reports it."""
    return answered(run.client.send(given.text, given.to, type=given.type, reply_to=given.reply_to))


@options(
    arg("--unread", action="store_true", help="only unread mail"),
    arg("--from", dest="sender", metavar="AGENT", help="only from this agent"),
    arg("--keep", action="store_true", help="do not mark it as read"),
)
def inbox(run: Run, given: Namespace) -> Answer:
    """Read your mail. Reading marks it as read, unless you --keep it."""
    found = run.client.inbox(unread=given.unread, sender=given.sender)
    unread = [message["id"] for message in found if message["read_at"] is None]
    if unread and not given.keep:
        run.client.read(unread)
    return Answer(wire(found), lambda: _mail(found))


def _mail(found: list[dict[str, Any]]) -> str:
    lines = [
        f"{clock(m['sent_at'])}  {m['from']} to {m['to']}{' (new)' if m['read_at'] is None else ''}: {plain(m['text'])}"
        for m in found
    ]
    return "\n".join(lines) or "no mail"


@options(
    arg("--lease", type=seconds, default=1800.0, metavar="SECONDS", help="how long (1800)"),
    arg("--term", type=int, metavar="N", help="your current term, to renew"),
    arg("--step-down", action="store_true", help="give up leadership (with --term)"),
)
def lead(run: Run, given: Namespace) -> Answer:
    """Become the project's leader (mail to @leader reaches you), or renew leadership."""
    if given.step_down:
        from tenure.cli.main import Usage

        if given.term is None:
            raise Usage("lead --step-down: which term?", "pass it with --term")
        return answered(run.client.step_down(given.term))
    return answered(run.client.lead(lease=given.lease, term=given.term))


@options(arg("id", nargs="?", help="which one (else yours)"))
def session(run: Run, given: Namespace) -> Answer:
    """Show what a session claimed, completed and lost."""
    memory = run.client.memory(given.id)
    return Answer(wire(memory), lambda: _memory(memory))


def _memory(memory: dict[str, Any]) -> str:
    lines = [f"{memory['id']}  agent {memory['agent']}{', over' if memory['is_over'] else ''}"]
    lines += [f"holds      {', '.join(memory['active_claims']) or 'nothing'}"]
    lines += [f"completed  {', '.join(memory['completed']) or 'nothing'}"]
    for entry in memory["task_log"]:
        if "time" in entry:
            lines += [f"  {clock(entry['time'])}  {entry['what']}  {entry['task']} generation {entry['generation']}"]
    return "\n".join(lines)
