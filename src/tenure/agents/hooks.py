"""Handles the hook events of agents: brief, renew, report, guard edits, continue, release.

One event in, at most one answer out; no event takes more than one transaction. Errors only go to the log: an agent
never fails because of its hook. An event that comes twice (two settings files, a repeat) counts once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tenure import process_table
from tenure.agents import dialects, hook_memory, identity, own_usage
from tenure.agents.dialects import AFTER_TOOL, BEFORE_EDIT, COMPACTING, END, START, STOP, Event
from tenure.agents.hook_memory import hook_state
from tenure.agents.identity import GIVEN, JOINED, KNOWN, Known, known_types, marked
from tenure.agents.receipts import Kept, Receipts
from tenure.config import Home, find_home, read_settings
from tenure.core import limits
from tenure.core.errors import NoStore
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.agents.identity import Who
    from tenure.client import Client
    from tenure.config import Value

SURE = identity.SURE | {JOINED}
QUIET = 30.0  # seconds between two renewals of a session; a lease is sixty times as long
CLI_STALE = limits.CLI_AGENT_STALE

# The claim has ended for good; after other outcomes the work may still be submitted or claimed again.
_LOST = {
    "STALE_GENERATION": "another agent holds it now. Stop that work; do not commit or submit it",
    "SESSION_MISMATCH": "another agent holds it now. Stop that work; do not commit or submit it",
    "FUTURE_GENERATION": "the store does not know that claim. Stop that work",
    "STALE_EPOCH": "the store was restored, and all claims ended. Claim it again before you continue",
    "TASK_CANCELLED": "it was cancelled. Stop that work",
    "TASK_ALREADY_COMPLETED": "it is completed. Stop that work",
    "NOT_FOUND": "it is gone. Stop that work",
    "NO_CLAIM": "your claim was ended. Save a checkpoint, and stop that work",
}
_EXPIRED = "your lease ran out. If you still work on it, `tenure claim {}` at once, and continue"


class Call(NamedTuple):
    """One event with its agent and store."""

    event: Event
    agent: str
    who: Who
    home: Home
    settings: Mapping[str, Value]
    now: Callable[[], float]
    environ: Mapping[str, str]

    @property
    def project(self) -> str:
        return str(self.settings["project"].value)

    @property
    def receipts(self) -> Receipts:
        """Of all agents in the session, also sub-agents: a hook acts for the whole session."""
        return Receipts(self.home, self.project, self.who.session, environ=self.environ)

    def client(self) -> Client:
        from tenure.client import Client
        from tenure.config import homes_of

        who = self.who
        return Client(
            self.home.url,
            self.project,
            key=self.settings["key"].value,
            tenant=self.home.tenant,
            homes=homes_of(self.settings),
            agent=who.agent,
            session=who.session,
            role="agent",
            user=who.user,
            create=False,
        )

    @property
    def state_file(self) -> str:
        return hook_memory.file_of(self.home.folder, self.who.session)


class HookOptions(NamedTuple):
    """Options of the command line; they take precedence over payload and environment."""

    event: str | None = None
    caller: str | None = None  # the agent that runs the hook
    folder: str | None = None
    project: str | None = None
    agent: str | None = None
    session: str | None = None
    tenant: str | None = None


def answer(
    payload: bytes, options: HookOptions, environ: Mapping[str, str], folder: str, now: Callable[[], float]
) -> dict[str, Any]:
    """The output of the hook, as JSON; empty where there is nothing to report, or no store."""
    event = dialects.read(payload, options.event)
    if event.kind is None:
        return {}
    where = options.folder or (event.folder if os.path.isdir(event.folder) else folder)
    settings = read_settings(where, environ, {"project": options.project, "tenant": options.tenant})
    try:
        home = find_home(where, settings)
    except NoStore:
        return {}
    agent, who = recognise(environ, event, options)
    if who.source not in SURE:
        return {}  # the agent has just ended, and the process above is not its session
    transcript = event.transcript or own_usage.unnamed_transcript(agent, event.session, environ)
    event_here = event._replace(folder=where, transcript=transcript)
    call = Call(event_here, agent, who, home, settings, now, environ)
    key = f"{event.kind} {event.tool} {event.id or event.label}"
    with hook_state(call.state_file) as state:
        is_first = state.is_first(key, now(), has_id=bool(event.id))
        state.transcript = transcript or state.transcript
    return HANDLERS[event.kind](call) if is_first else {}


# --- identity ---------------------------------------------------------------------------------------------


def recognise(environ: Mapping[str, str], event: Event, options: HookOptions) -> tuple[str, Who]:
    """The agent of the hook, and its session: the same that commands in its shell have.

    Hooks do not get the environment that shells get. Codex and Copilot give their shells a session id and their hooks
    none, but the payload has it. Gemini CLI and OpenCode give none to their shells: there the nearest agent process is
    the session, in the hook as in the shell, and the payload's id is not used.
    """
    known = known_types(environ).get(options.caller or "") or _nearest(environ)
    others = {m for agent in known_types(environ).values() if agent != known for m in (*agent.markers, agent.session)}
    seen = {name: value for name, value in environ.items() if name not in others}
    for marker in known.markers:
        if marker != known.session:
            seen.setdefault(marker, "1")
    if known.session and event.session:
        seen[known.session] = event.session
    return known.type, identity.recognise(seen, options.agent, options.session)


def _nearest(environ: Mapping[str, str]) -> Known:
    """The agent whose process is nearest, since variables are inherited from agents further out."""
    programs = {program: agent for agent in known_types(environ).values() for program in agent.programs}
    process = process_table.nearest(programs)
    named = [programs[name] for name in process.programs if name in programs] if process else []
    return next(iter([*named, *marked(environ)]), KNOWN["claude"])


# --- the events ---------------------------------------------------------------------------------------------


def _start(call: Call) -> dict[str, Any]:
    """A session starts, or its context was lost: register it and return its brief."""
    hook_memory.prune(os.path.join(call.home.folder, "hooks"), call.now())
    with call.client() as client:
        _present(call, client)
        text = _primed(call, client)
    with hook_state(call.state_file) as kept:
        kept.is_context_lost = False
    return dialects.text_for(call.agent, call.event, text)


def _present(call: Call, client: Client) -> None:
    """A heartbeat; what an agent registered before is not overwritten."""
    with hook_state(call.state_file) as kept:
        is_new = kept.is_unregistered() and client.agent.startswith(f"{call.who.type}-")
    if is_new:
        client.register(type=call.who.type, stale_after=CLI_STALE, user=call.who.user)
    else:
        client.heartbeat()


def _primed(call: Call, client: Client) -> str:
    from tenure.agents.session_brief import prime

    start = _elsewhere() if call.agent == "codex" else None
    return prime(client, start=start, has_runner=own_usage.is_below_a_runner(call.environ))


def _elsewhere() -> str | None:
    """Codex runs commands in a login shell, whose PATH may lack tenure."""
    import shutil
    import sys

    found = shutil.which("tenure")
    if found and os.path.dirname(found) in ("/usr/local/bin", "/usr/bin", "/bin"):
        return None
    return found or f"{sys.executable} -m tenure"


def _compacting(call: Call) -> dict[str, Any]:
    """For agents that start no new session after it: the next text that reaches the model is the brief."""
    with hook_state(call.state_file) as kept:
        kept.is_context_lost = True
    return {}


def _after_tool(call: Call) -> dict[str, Any]:
    """Renew the session's claims and report news once each. Cheap: mostly the last renewal is recent."""
    with hook_state(call.state_file) as kept:
        was_lost = kept.is_context_lost
        if not was_lost and not kept.is_due(call.now(), QUIET):
            return {}
        kept.renewed = call.now()
    held = call.receipts.live()
    with call.client() as client:
        outcomes, mail = _renew(client, held)
        own = {kept.name for kept, outcome in outcomes if _is_own_ending(client, kept, outcome.outcome)}
        _report_usage(call, client, held)
        text = _primed(call, client) if was_lost else ""
    news = []
    with hook_state(call.state_file) as kept:
        kept.is_context_lost = False
        for receipt, outcome in outcomes:
            line = _news(receipt, outcome.outcome, outcome.directive, outcome.directive_text)
            if receipt.name in own:
                continue
            about = (outcome.directive_text or "").partition(":")[0]  # of which budget; not how much of it is used
            if kept.is_news(receipt.name, f"{outcome.outcome}{outcome.directive or ''} {about}") and line:
                news.append(line)
            if outcome.outcome in _LOST or outcome.outcome == "ALREADY_EXPIRED":
                kept.lost(receipt.key)
        if kept.is_more_mail(mail):
            news.append(f"tenure: {mail} unread message{'' if mail == 1 else 's'}; read with `tenure inbox`.")
    for receipt, outcome in outcomes:
        if outcome.outcome in _LOST and outcome.outcome != "NO_CLAIM":
            call.receipts.settle(receipt.receipt, outcome)
    report = "\n".join([*news, text]).strip()
    return dialects.text_for(call.agent, call.event, report) if report else {}


def _is_own_ending(client: Client, held: Kept, outcome: str) -> bool:
    """Whether a command of the session has ended the claim meanwhile, and is about to put its receipt away."""
    from tenure.core.claims import is_own_ending

    if outcome not in ("TASK_ALREADY_COMPLETED", "NO_CLAIM"):
        return False
    ref, _, generation = held.name.rpartition("@")
    return any(
        str(entry["generation"]) == generation and is_own_ending(entry["release_reason"], entry["error_class"])
        for entry in client.history(ref)
    )


def _renew(client: Client, held: list[Kept]) -> tuple[list[tuple[Kept, Any]], int]:
    """One transaction: renew every claim, send a heartbeat, and count unread mail."""
    from tenure.core.commands import Heartbeat, Renew
    from tenure.core.errors import TenureError

    project = client.project
    renewals = [Renew(project=project, receipt=kept.receipt, background=True, worked=True) for kept in held]
    answers = client.batch([*renewals, Heartbeat(project=project, agent=client.agent, session=client.session)])
    outcomes = [(k, a) for k, a in zip(held, answers, strict=False) if not isinstance(a, TenureError)]
    return outcomes, max((a.mail or 0 for a in answers if not isinstance(a, TenureError)), default=0)


def _report_usage(call: Call, client: Client, held: list[Kept]) -> None:
    if held and call.event.transcript and not own_usage.is_below_a_runner(call.environ):
        own_usage.book(client, held, call.event.transcript)


def _news(kept: Kept, outcome: str, directive: str | None, text: str | None) -> str:
    ref, _, generation = kept.name.rpartition("@")
    if outcome == "ALREADY_EXPIRED":
        return f"tenure: {kept.key} (generation {generation}): {_EXPIRED.format(ref)}."
    if outcome in _LOST:
        return f"tenure: your generation {generation} of {kept.key} is stale: {_LOST[outcome]}."
    if directive == "pause":
        return f"tenure: {kept.key}: {text} with `tenure release {shell_word(ref)}`."
    if directive == "changed":
        return f"tenure: {kept.key}: {text}. `tenure renew {shell_word(ref)}` shows the difference."
    if directive == "warn":
        return f"tenure: {kept.key}: {text}."
    if directive == "terminated":
        return f"tenure: {text}."
    return ""


def _before_edit(call: Call) -> dict[str, Any]:
    """Deny an edit when the session's claim is lost, or another agent has the file. Opt-in per project."""
    if not call.settings["hooks.guard_edits"].value:
        return {}
    files = _inside(call, dialects.edited_files(call.event))
    if not files:
        return {}
    with call.client() as client:
        lost = _lost(call, client)
        if lost is not None:
            return dialects.deny(call.agent, call.event, lost)
        why = _anothers(client, files)
    return dialects.deny(call.agent, call.event, why) if why else {}


def _inside(call: Call, files: Iterable[str]) -> list[str]:
    """Paths as reservations name them: relative to the root of their worktree."""
    from tenure.agents.new_store import worktree_of

    found = []
    for file in files:
        real = os.path.realpath(os.path.join(call.event.folder, file))
        for root in (worktree_of(os.path.dirname(real)), os.path.realpath(call.home.root)):
            if root is not None and real.startswith(root.rstrip(os.sep) + os.sep):
                found.append(os.path.relpath(real, root))
                break
    return found


def _lost(call: Call, client: Client) -> str | None:
    """Why this session may not edit: it lost every claim, and has claimed nothing since."""
    every = list(call.receipts.all())
    held = [kept for kept in every if kept.ended is None]
    valid, gone = _judged(client, held)
    with hook_state(call.state_file) as kept:
        if valid or not every:
            kept.losses = []
            return None
        for receipt in gone:
            if not _is_own_ending(client, receipt, "NO_CLAIM"):
                kept.lost(receipt.key)
        keys = list(kept.losses)
    if not keys:
        return None
    names = ", ".join(keys)
    return (
        f"tenure: you no longer hold {names}, so this session may not edit. `tenure claim` takes a task (or this one"
        " again, if it is free); `tenure leave` ends your work on tasks."
    )


def _judged(client: Client, held: list[Kept]) -> tuple[list[Kept], list[Kept]]:
    """Receipts whose generation is still the one that holds the task, and the others."""
    from tenure.core.lifecycle import HELD

    states = client.states([kept.task for kept in held]) if held else []
    valid: list[Kept] = []
    gone: list[Kept] = []
    for kept, state in zip(held, states, strict=True):
        is_held = state.get("state") in HELD and state.get("generation") == kept.generation
        (valid if is_held else gone).append(kept)
    return valid, gone


def _anothers(client: Client, files: list[str]) -> str | None:
    """Why a file may not be edited: a reservation or claim of another agent overlaps it."""
    from tenure.core.reservations import overlap

    for held in client.reservations():
        if held["session"] == client.session:
            continue
        for file in files:
            if overlap(file, held["pattern"]):
                task = f" for {held['task']}" if held.get("task") else ""
                return (
                    f"tenure: {file} is held by agent {held['agent']}{task} ({held['pattern']}). Work on something"
                    f' else, or write to them: `tenure msg "…" --to {shell_word(held["agent"])}`.'
                )
    return None


def _stop(call: Call) -> dict[str, Any]:
    """Book its usage. Ask an agent that stops while it holds a task to continue, once; a second stop is accepted."""
    if call.event.transcript and (held := call.receipts.live()):
        with call.client() as client:
            _report_usage(call, client, held)
    if not call.settings["hooks.keep_working"].value or call.event.is_again:
        return {}
    if own_usage.is_below_a_runner(call.environ):
        return {}  # its end is its submission
    held = call.receipts.live()
    if not held:
        return {}
    with call.client() as client:
        valid, _ = _judged(client, held)
    with hook_state(call.state_file) as kept:
        if not valid or not kept.may_ask_to_go_on():
            return {}
    names = ", ".join(kept.key for kept in valid[:5])
    return dialects.go_on(
        call.agent,
        f"tenure: you still hold {names}. Continue with it; or end it with `tenure done`, `tenure fail` or"
        " `tenure release`; or, if you must stop here, save a checkpoint first: `tenure checkpoint save`.",
    )


def _end(call: Call) -> dict[str, Any]:
    """The session has ended: release its claims, unless another process named the session."""
    if call.who.source in (*GIVEN, JOINED):
        return {}
    from tenure.core.errors import NotFound

    with call.client() as client, suppress(NotFound):  # a session without commands is not registered
        _report_usage(call, client, call.receipts.live())
        client.leave()
    call.receipts.forget()
    with suppress(FileNotFoundError):
        os.unlink(call.state_file)
    return {}


HANDLERS: dict[str, Callable[[Call], dict[str, Any]]] = {
    START: _start,
    BEFORE_EDIT: _before_edit,
    AFTER_TOOL: _after_tool,
    COMPACTING: _compacting,
    STOP: _stop,
    END: _end,
}
