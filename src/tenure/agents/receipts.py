"""Receipts of a session's agents, one file per claim, readable by the user alone.

They are in the user's state folder: `receipts/SESSION/PROJECT/AGENT/KEY@GENERATION`. A receipt is used only for the
session and the agent that got it, never by folder or worktree: agents share folders, terminals and session ids, and a
superseded agent must not present the receipt of its successor. The receipt of a claim that has ended is kept as
`.ended` (by its holder) or `.lost`: naming it presents the receipt again, so that a repeat gets the same answer.

The request id of a claim is written before the claim is sent. A command that is killed between the commit and the
receipt leaves its id behind: the next claim of the same agent in the same session, with the same arguments, sends that
id again and gets the same claim. Only where the process that wrote it has ended: two concurrent processes want two
claims.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from tenure import process_table
from tenure.core import limits
from tenure.core.errors import Ambiguous, TenureError
from tenure.core.outcomes import Outcome
from tenure.user_state import (
    is_own,
    listed,
    make_private_folder,
    read_record,
    safe_name,
    store_states,
    writable_store_state,
    write_private,
)

if TYPE_CHECKING:
    from tenure.config import Home

# Outcomes after which the claim has ended for good: by its holder, or without it.
OWN_WORDS = frozenset({"ACCEPTED", "VALIDATING"})
LOST_WORDS = frozenset(
    {
        "STALE_GENERATION", "STALE_EPOCH", "FUTURE_GENERATION", "SESSION_MISMATCH", "NO_CLAIM",
        "TASK_ALREADY_COMPLETED", "TASK_CANCELLED",
    }
)  # fmt: skip
LAST_WORDS = OWN_WORDS | LOST_WORDS
ENDED, LOST = ".ended", ".lost"
DAY = limits.LOST_CLAIM
_MANY = limits.CLAIM_FILES
_UNANSWERED = limits.CLAIM_UNANSWERED


class NoReceipt(TenureError):
    code = "NO_RECEIPT"


class AmbiguousClaim(Ambiguous):
    """Several claims fit, or one was lost: which is meant is not known, and nothing says that another holds it."""


class Kept(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    project: str
    task: str  # its id
    key: str
    receipt: str
    agent: str = ""
    ended: str | None = None  # the outcome that ended it
    instead_of: tuple[int, ...] = ()  # generations that its holder lost and knows about

    @property
    def name(self) -> str:
        return claim_name(self.receipt)

    @property
    def generation(self) -> int:
        return int(self.name.rpartition("@")[2])


class Named(msgspec.Struct, frozen=True):
    """A task as a user names it: `B-003`, `B-003-implement`, an id, or one claim of it, `B-003@7`."""

    task: str
    generation: int | None

    def fits(self, kept: Kept) -> bool:
        wanted = self.task.upper()
        if wanted in (kept.task.upper(), kept.key.upper(), ref_of(kept.receipt).upper()):
            return True
        # `B-003-imp` may be a prefix of a key; `B-003` is a whole reference, and never a prefix of B-0031
        return self.task.count("-") > 1 and kept.key.upper().startswith(wanted)


def named(text: str) -> Named:
    task, at, number = text.rpartition("@")
    return Named(task, int(number)) if at and task and number.isascii() and number.isdigit() else Named(text, None)


class Receipts:
    """The receipts of one agent of a session in one project; without an agent, those of all."""

    def __init__(
        self, home: Home, project: str, session: str, agent: str | None = None, environ: Mapping[str, str] = os.environ
    ) -> None:
        self.project, self.session, self.agent = project, session, agent
        self.home, self.environ = home, environ
        self._states: tuple[str, ...] = ()
        self._inner = os.path.join(
            "receipts", safe_name(session), safe_name(f"{home.tenant}@{project}" if home.tenant else project)
        )

    # --- writes ---

    def keep(self, task: str, key: str, receipt: str, *, instead_of: str | None = None) -> None:
        """Store the receipt of a claim. `instead_of`: the lost receipt that it replaces. Raises OSError."""
        before = next((kept for kept in self.all() if kept.receipt == instead_of), None) if instead_of else None
        lost = (*before.instead_of, before.generation) if before else ()
        kept = Kept(project=self.project, task=task, key=key, receipt=receipt, agent=self.agent or "", instead_of=lost)
        folder = self._writable(self.agent or "")
        write_private(os.path.join(folder, _file(receipt)), msgspec.json.encode(kept))
        for place in self._places():
            for suffix in (ENDED, LOST):
                with suppress(OSError):
                    os.unlink(os.path.join(place, safe_name(self.agent or ""), _file(receipt) + suffix))
        if before is not None:
            self._end(before, ENDED, "TAKEN_AGAIN")
        _prune(folder)

    def settle(self, receipt: str, outcome: Outcome, *, ends: bool = False) -> Outcome:
        """Note that a claim has ended: it is no longer held, and hooks no longer renew it.

        `ends`: the command releases the claim if it succeeds. A note that cannot be written is skipped: the store
        answers the same.
        """
        is_own = outcome.outcome in OWN_WORDS or (ends and outcome.ok) or is_last_refusal(outcome)
        if is_own or outcome.outcome in LOST_WORDS:
            for kept in self._of_all().live():  # a sub-agent may present another's receipt with --receipt
                if kept.receipt == receipt:
                    self._end(kept, ENDED if is_own else LOST, outcome.outcome)
        return outcome

    def _end(self, kept: Kept, suffix: str, word: str) -> None:
        content = msgspec.json.encode(msgspec.structs.replace(kept, ended=word))
        with suppress(OSError):
            agent, file = safe_name(kept.agent), _file(kept.receipt)
            write_private(os.path.join(self._writable(kept.agent), file + suffix), content)
            for place in self._places():
                with suppress(OSError):
                    os.unlink(os.path.join(place, agent, file))

    def forget(self) -> None:
        """Remove all receipts, at the end of a session."""
        for place in self._places():
            for agent in self._agents(place):
                folder = os.path.join(place, agent)
                for name in listed(folder):
                    with suppress(OSError):
                        os.unlink(os.path.join(folder, name))
                for empty in (folder, place, os.path.dirname(place)):
                    with suppress(OSError):
                        os.rmdir(empty)

    # --- reads ---

    def all(self) -> Iterator[Kept]:
        """Every stored claim, also ended ones."""
        return self._each(lambda name: True)

    def live(self) -> list[Kept]:
        """Claims that have not ended, as far as this machine knows."""
        return list(self._each(lambda name: not name.endswith((ENDED, LOST))))

    def _each(self, is_wanted: Callable[[str], bool]) -> Iterator[Kept]:
        for agent, names in self._by_agent().items():
            for name in sorted(filter(is_wanted, names)):
                kept = self._read(agent, name)
                if kept is not None:
                    yield kept

    def _by_agent(self) -> dict[str, set[str]]:
        """File names by agent. A claim that one folder marks as ended has ended."""
        found: dict[str, set[str]] = {}
        for place in self._places():
            for agent in self._agents(place):
                found.setdefault(agent, set()).update(listed(os.path.join(place, agent)))
        return {agent: names - _over(names) for agent, names in found.items()}

    def _of_all(self) -> Receipts:
        return Receipts(self.home, self.project, self.session, None, self.environ)

    def _agents(self, place: str) -> list[str]:
        return [safe_name(self.agent)] if self.agent is not None else listed(place)

    def _read(self, agent: str, name: str) -> Kept | None:
        for place in self._places():
            kept = read_record(os.path.join(place, agent, name), Kept)
            if kept is not None and kept.project == self.project:
                return kept
        return None  # just being replaced, or not a receipt

    def _places(self) -> list[str]:
        self._states = self._states or store_states(self.environ, self.home.url)
        return [os.path.join(state, self._inner) for state in self._states if is_own(state)]

    def _writable(self, agent: str) -> str:
        state = writable_store_state(self.environ, self.home.url)
        folder = os.path.join(state, self._inner, safe_name(agent))
        make_private_folder(folder)
        return folder

    # --- selection ---

    def find(self, task: str | None, ask: Callable[[], Sequence[Mapping[str, Any]]] | None = None) -> Kept:
        """The receipt for a claim named `KEY@GENERATION`; or for a task or for none, while that is unambiguous.

        `ask` returns what the store knows about this agent's claims in this session (`Client.own_claims`). It is called
        only where the files are ambiguous: several claims seem live, or one was lost.
        """
        wanted = named(task) if task is not None else None
        if wanted is not None and wanted.generation is not None:
            return self._one_claim(wanted)
        live = self.live()
        if len(live) < 2 and not self._has_lost():
            return self._alone(wanted, live)
        return self._among(wanted, live, ask() if ask is not None else [])

    def _one_claim(self, wanted: Named) -> Kept:
        for kept in self.all():
            is_it = wanted.generation in (kept.generation, *kept.instead_of) and kept.ended != "TAKEN_AGAIN"
            if is_it and wanted.fits(kept):
                return kept
        raise self._none(f"{wanted.task}@{wanted.generation}")

    def _alone(self, wanted: Named | None, live: list[Kept]) -> Kept:
        """No claim was lost, and at most one is live."""
        if wanted is None:
            if live:
                return live[0]
            raise self._none(None)
        fitting = [kept for kept in live if wanted.fits(kept)] or [kept for kept in self.all() if wanted.fits(kept)]
        if not fitting or len({kept.task for kept in fitting}) > 1:
            raise self._none(wanted.task)
        return max(fitting, key=lambda kept: kept.generation)

    def _among(self, wanted: Named | None, live: list[Kept], known: Sequence[Mapping[str, Any]]) -> Kept:
        """Several claims, or a lost one: the store decides which are live."""
        every = list(self.all())
        forgiven = {(kept.task, number) for kept in every for number in kept.instead_of}
        living = {(claim["task"], claim["generation"]) for claim in known if claim["state"] == "active"}
        lost = [
            claim
            for claim in known
            if claim["state"] != "active" and (claim["task"], claim["generation"]) not in forgiven
        ]
        held = [kept for kept in live if (kept.task, kept.generation) in living]
        if wanted is not None and not any(wanted.fits(kept) for kept in every):
            raise self._none(wanted.task)
        if lost:
            # The only claim was lost: it is unambiguous, and its result is kept as refused.
            own = [kept for kept in every if (kept.task, kept.generation) == (lost[0]["task"], lost[0]["generation"])]
            others = [kept for kept in every if kept not in own]
            if len(lost) == 1 and not living and len(own) == 1 and not others and (not wanted or wanted.fits(own[0])):
                return own[0]
            raise self._several(held, lost)
        fitting = [kept for kept in held if wanted is None or wanted.fits(kept)]
        if not fitting and wanted is not None:  # a repeat for a claim that has ended
            ended = [kept for kept in every if kept.ended is not None and wanted.fits(kept)]
            fitting = sorted(ended, key=lambda kept: kept.generation)[-1:] if len({k.task for k in ended}) == 1 else []
        if len(fitting) == 1:
            return fitting[0]
        raise self._several(held, lost) if fitting else self._none(wanted.task if wanted else None)

    def _has_lost(self) -> bool:
        """Did this agent lose a claim in the last day?"""
        folders = [os.path.join(place, agent) for place in self._places() for agent in self._agents(place)]
        lost = (os.path.join(folder, name) for folder in folders for name in listed(folder) if name.endswith(LOST))
        return any(_age(path) < DAY for path in lost)

    def _several(self, held: list[Kept], lost: Sequence[Mapping[str, Any]]) -> AmbiguousClaim:
        names = [f"{kept.name} (held)" for kept in held]
        names += [f"{claim['ref']}@{claim['generation']} ({str(claim['reason']).lower()})" for claim in lost]
        why = "one of its claims was lost" if lost else f"it holds {len(held)} tasks"
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        more_hint = "; the answer to that name shows whether you still hold it" if lost else ""
        return AmbiguousClaim(
            f"ambiguous claim: agent {self.agent} in session {self.session}: {why}: {', '.join(names[:10])}{more}",
            f"name it as KEY@GENERATION, or set TENURE_TASK to it; `tenure claim` printed both{more_hint}",
        )

    def _none(self, task: str | None) -> NoReceipt:
        what = f"no receipt for {task}" if task else "no task"
        theirs = [kept for kept in self._of_all().live() if kept.agent != self.agent]
        hint = "`tenure claim` takes one" if task is None else "present it with --receipt, or claim the task"
        if theirs and self.agent is not None:
            names = ", ".join(f"{kept.name} for agent {kept.agent}" for kept in theirs[:5])
            hint += f"; this session also keeps {names}: use --agent to act as that agent, or present --receipt"
        else:
            hint += "; `tenure whoami` shows who you are and what you hold"
        return NoReceipt(f"agent {self.agent} in session {self.session} holds {what}", hint)


def sessions_with_receipts(home: Home, environ: Mapping[str, str]) -> list[str]:
    states = (state for state in store_states(environ, home.url) if is_own(state))
    return sorted({name for state in states for name in listed(os.path.join(state, "receipts"))})


def is_last_refusal(outcome: Outcome) -> bool:
    """The output was refused and the attempt failed: nothing is left to fix."""
    return outcome.outcome == "INVALID_OUTPUT" and outcome.directive != "continue"


def ref_of(receipt: str) -> str:
    """The short key at the start of a receipt."""
    return receipt.partition("@")[0]


def claim_name(receipt: str) -> str:
    """`B-003@7`: the claim of a receipt."""
    return receipt.rpartition(":")[0] or receipt


def _over(names: set[str]) -> set[str]:
    return {name.removesuffix(ENDED).removesuffix(LOST) for name in names if name.endswith((ENDED, LOST))}


def _file(receipt: str) -> str:
    ref, _, generation = claim_name(receipt).rpartition("@")
    return f"{safe_name(ref.replace('::', '.'))}@{generation}"


def _age(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return DAY


def _prune(folder: str) -> None:
    """Remove claims that ended more than a day ago, once there are many."""
    names = listed(folder)
    if len(names) > _MANY:
        for name in names:
            if name.endswith((ENDED, LOST)) and _age(os.path.join(folder, name)) > DAY:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


# --- claims that were sent and not yet answered ---------------------------------------------------------------


class _Sent(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    words: str  # agent, session and arguments
    boot: str
    pid: int
    start: int
    at: float


class Request:
    """One claim's request id, kept until the receipt is stored."""

    def __init__(self, id: str, path: str | None, content: bytes, *, is_again: bool) -> None:
        self.id, self.is_again = id, is_again
        self._path, self._content = path, content

    def answered(self) -> None:
        if self._path is not None:
            with suppress(OSError):
                os.unlink(self._path)

    def unanswered(self) -> None:
        """The answer was lost: the next claim sends the same id."""
        if self._path is not None:
            with suppress(OSError):
                write_private(self._path, self._content)


def request(environ: Mapping[str, str], home: Home, words: str, within: float) -> Request:
    """A request id for a claim with these arguments: an unanswered one of the last `within` seconds, else a new one.

    Where no file can be written the id is not kept: storing the receipt will report the same problem.
    """
    left = _left_behind(environ, home, words, within)
    own = process_table.look_up(os.getpid())
    sent = _Sent(
        id=left or os.urandom(16).hex(),
        words=words,
        boot=process_table.boot_id(),
        pid=os.getpid(),
        start=own.start if own else 0,
        at=time.time(),
    )
    content = msgspec.json.encode(sent)
    path = None
    with suppress(OSError):
        folder = os.path.join(writable_store_state(environ, home.url), "requests")
        make_private_folder(folder)
        write_private(os.path.join(folder, sent.id), content)
        path = os.path.join(folder, sent.id)
    return Request(sent.id, path, content, is_again=left is not None)


def _left_behind(environ: Mapping[str, str], home: Home, words: str, within: float) -> str | None:
    for state in store_states(environ, home.url):
        folder = os.path.join(state, "requests")
        for name in listed(folder) if is_own(state) else ():
            path = os.path.join(folder, name)
            sent = read_record(path, _Sent)
            if sent is None:
                continue
            age = time.time() - sent.at
            is_over = sent.boot == process_table.boot_id() and process_table.has_ended(sent.pid, sent.start)
            if sent.words == words and 0 <= age < within and is_over:
                try:
                    os.rename(path, f"{path}.{os.getpid()}")  # only one process gets it
                    os.unlink(f"{path}.{os.getpid()}")
                except OSError:
                    continue
                return sent.id
            if age > _UNANSWERED:
                with suppress(OSError):
                    os.unlink(path)
    return None
