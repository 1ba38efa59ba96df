"""Claims of the next best task, as one call."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import msgspec

from tenure.core import commands, inputs, lifecycle
from tenure.core.claims import MOST_NAMED
from tenure.core.commands import Principal
from tenure.core.errors import TenureError
from tenure.core.ids import NONCE_BYTES, IdMaker, Receipt
from tenure.core.outcomes import Outcome
from tenure.core.priority import Profile, tier_of
from tenure.core.records import Task, replace
from tenure.engine.reads.task_view import SHOWN
from tenure.engine.runtime.context import Random
from tenure.engine.runtime.fast_path.claim_models import ModelFor
from tenure.engine.runtime.fast_path.command_run import Built, Known, NoLane, NotFast, Run, column
from tenure.engine.runtime.unit_of_work import Deferred, Reply
from tenure.engine.verbs.claim import MOST_AT_ONCE, fits, profile_for
from tenure.engine.verbs.grant_answer import Sent, granted_as, sent_of, several
from tenure.stores.fast_path import APART, BRIEF_FIELDS, TASK_FIELDS, Claims, Rows

_decoded = msgspec.json.decode


class _Asked(NamedTuple):
    command: commands.ClaimNext
    principal: Principal
    sent: Sent
    skills: str
    lease: int
    fits: str


def claims(known: Known, run: Run, random: Random) -> Built:
    project = known.project
    # Affordability, limits, stopped work and sessions that sign need the ordinary path.
    if project.stopped or project.limited or project.funded or project.set_aside or project.signs:
        raise NotFast
    if "max_concurrent_claims" in project.limits:
        raise NotFast
    asked = [_asked(known, n, command, principal) for n, (command, principal) in enumerate(run)]
    again = _repeated(asked)
    if again:
        raise NotFast(*again)
    sets = list(dict.fromkeys(one.fits for one in asked))
    number = {text: n for n, text in enumerate(sets, start=1)}
    slots = asked if all(one.command.n == 1 for one in asked) else [one for one in asked for _ in range(one.command.n)]
    total, first = len(slots), 1
    of: list[int] = []
    takes: list[int | None] = []
    for one in asked:
        n = one.command.n
        of += [first] * n
        takes += [n, *([None] * (n - 1))]
        first += n
    nonces = random.token(NONCE_BYTES * total)
    seed = random.token(IdMaker.RANDOM_BYTES)
    principals = [one.principal for one in slots]
    call = Claims(
        project.id, known.look.seen, known.look.lanes, known.boosts, sets, [number[one.fits] for one in slots],
        takes, of, [one.command.agent for one in slots], [one.command.session for one in slots],
        [one.skills for one in slots],
        column([one.command.user if p.key is None else p.user for one, p in zip(slots, principals, strict=True)]),
        [one.lease for one in slots], column([one.sent.process for one in slots]),
        column([one.sent.id for one in slots]), column([one.sent.digest for one in slots]),
        column([p.key for p in principals]), column([p.person for p in principals]),
        column([p.address for p in principals]), column([one.command.trace_id for one in slots]), nonces, seed,
    )  # fmt: skip
    of_command = [number for number, one in enumerate(asked) for _ in range(one.command.n)]
    return Built(call, partial(_replies, known, asked, nonces), of_command)


def _asked(known: Known, number: int, command: commands.ClaimNext, principal: Principal) -> _Asked:
    """Raises NotFast where the ordinary path must decide it."""
    skills = known.skills.get(command.agent)
    if skills is None or not 1 <= command.n <= MOST_AT_ONCE or not known.allows(command, principal):
        raise NotFast(number)
    if command.tags or command.metadata or command.spawn is not None or command.without or command.like:
        raise NotFast(number)
    if command.caused_by:  # each event names another message
        raise NotFast(number)
    if principal.agent not in (None, command.agent) or principal.session not in (None, command.session):
        raise NotFast(number)
    like = (skills, command.capabilities, command.tracks, command.types, command.region)
    try:
        lease = known.leases.get(command.lease)
        if lease is None:
            if isinstance(command.lease, str):
                raise NotFast(number)
            lease = known.leases[command.lease] = inputs.lease_of(command.lease, known.project.limits)
        lanes = known.fits.get(like)
        if lanes is None:
            inputs.check_list(command.capabilities or (), "capability")
            lanes = known.fits[like] = _fitting(known, skills, command)
        sent = sent_of(command, principal)
    except TenureError:
        raise NotFast(number) from None
    if "1" not in lanes:
        raise NoLane(number)
    return _Asked(command, principal, sent, skills, lease, lanes)


def _fitting(known: Known, skills: str, command: commands.ClaimNext) -> str:
    capabilities, tracks, agent_type, _, *region = skills.split(APART)
    own = Profile(
        command.agent, frozenset(_decoded(capabilities)), region[0] if region else None, tuple(_decoded(tracks)),
        agent_type,
    )  # fmt: skip
    profile = profile_for(own, command)
    return "".join("1" if fits(profile, lane) else "0" for lane in known.lanes)


def _repeated(asked: list[_Asked]) -> list[int]:
    """A request that is sent twice in one run is answered from what the first was granted."""
    seen: set[str] = set()
    again = []
    for n, one in enumerate(asked):
        if one.sent.id is not None:
            if one.sent.id in seen:
                again.append(n)
            seen.add(one.sent.id)
    return again


# --- answers ---

# Fields with a fixed value in the view of a task before its first claim.
_BY_DEFAULT = {
    f.name: f.default
    for f in msgspec.structs.fields(Task)
    if f.name in SHOWN and f.name not in TASK_FIELDS and f.default not in (msgspec.NODEFAULT, None, ())
}


def _replies(known: Known, asked: list[_Asked], nonces: bytes, rows: Rows) -> list[Reply]:
    outcomes = _Outcomes(known, asked, nonces, rows)
    return [Deferred(partial(outcomes.outcome, n)) for n in range(len(asked))]


class _Outcomes:
    """The outcomes of a run, built when the first is needed: after the commit."""

    def __init__(self, known: Known, asked: list[_Asked], nonces: bytes, rows: Rows) -> None:
        self._known, self._asked, self._nonces, self._rows = known, asked, nonces, rows
        self._outcomes: list[Outcome] = []

    def outcome(self, number: int) -> Outcome:
        if not self._outcomes:
            self._outcomes = list(self._made())
        return self._outcomes[number]

    def _made(self) -> Iterator[Outcome]:
        rows = sorted(self._rows())
        held: dict[str, list[tuple[str, str]]] = {}
        models: dict[str, ModelFor] = {}
        at = 0
        for asked in self._asked:
            command = asked.command
            model = models.get(asked.skills)
            if model is None:
                _, _, agent_type, of_models, *_ = asked.skills.split(APART)
                model = models[asked.skills] = self._known.models.of(self._known.project, agent_type, of_models)
            mine = [_granted(row, asked, model, self._nonces) for row in rows[at : at + command.n]]
            had = rows[at][5]
            at += command.n
            others = held.get(command.session)
            if others is None:
                names = had.split(" ") if had else []
                others = held[command.session] = list(zip(names[::2], names[1::2], strict=True))
            if others:
                mine[0] = replace(mine[0], unfinished=tuple(key for _, key in sorted(others)[:MOST_NAMED]))
            others += [(one.task["id"], one.task["key"]) for one in mine if one.task]
            yield several(mine, command.n)


def _granted(row: tuple[Any, ...], asked: _Asked, model: ModelFor, nonces: bytes) -> Outcome:
    place, now, _, _, epoch, _, id, key, ref, track, type, dag, parent, run, *rest = row
    max_attempts, priority, tags, not_before, created_by, created_at, ready_at, version, title, *brief = rest
    command = asked.command
    until = now + asked.lease
    view: Any = {
        "title": title, **_BY_DEFAULT, "state": lifecycle.CLAIMED, "generation": 1, "attempts": 1, "claimed_at": now,
        "updated_at": now, "id": id, "key": key, "ref": ref, "track": track, "type": type, "dag": dag, "run": run,
        "max_attempts": max_attempts, "priority": priority, "created_by": created_by, "created_at": created_at,
        "version": version, "agent": command.agent, "session": command.session, "lease_until": until,
        "tier": tier_of(priority),
    }  # fmt: skip
    if parent is not None:
        view["parent"] = parent
    tagged: tuple[str, ...] = ()
    if tags != "[]":
        tagged = view["tags"] = tuple(_decoded(tags))
    if not_before is not None:
        view["not_before"] = not_before
    if ready_at is not None:
        view["ready_at"] = ready_at
    constraints: dict[str, Any] = {}
    if not _EMPTY.issuperset(brief):
        for name, text in zip(BRIEF_FIELDS[1:], brief, strict=True):
            if text in _EMPTY:
                continue
            value = _decoded(text)
            view[name] = tuple(value) if name == "touches" else value
            if name == "constraints":
                constraints = value
    nonce = nonces[(place - 1) * NONCE_BYTES : place * NONCE_BYTES]
    receipt = str(Receipt(ref, 1, epoch, nonce))
    return granted_as(view, 1, 1, receipt, until, now, **model(priority, type, tagged, constraints))


_EMPTY = frozenset({"{}", "[]", '""'})
