"""The fast path: claim next, renew and submit as one call of the store, for like commands on plain tasks.

What it is. The ordinary path decides a command in Python: read rows, apply core's rules, write rows and events. For the
three hot verbs most of that is always the same, and every read costs a round trip. A store that declares FAST_PATH
offers one call per verb (`stores/fast_path.py`, on PostgreSQL `stores/postgres/hot_functions.py`) that takes many
commands of one project. This package decides nothing. It selects the commands that may take the call, computes its
columns, and builds the outcomes from the rows that come back.

Restated rules. The calls repeat three rules of core, and nothing else:
- the guard: a grant needs a plain task that is in its lane; a holder's write needs the task's generation, the claim's
  nonce and the epoch of its receipt (`claims.judge`);
- the stamp: the columns that `claims.granted`, `claims.renewed` and `claims.ended` change, and the derived columns of
  `settle.stamp`;
- the events of these moves, with the patch that replay needs (`stores/postgres/event_blocks.py`).
Who may give a command, which lanes fit an agent, and which model is recommended are not restated: this package calls
the same functions as the ordinary path. What it must know for that (`Look`: the project's row, the lanes, the agents'
skills) it keeps between calls; each call names what it has relied on, and is refused where that has changed.

Why it is safe.
- Only plain tasks qualify. `core/settle.py` defines them in one place, and `settle.stamp` sets the mark at every
  write of the row. A task with a budget, a reservation, a contract, an artifact or a pause is not plain.
- The call finds everything as usual, or it raises Unusual and nothing was done. It never refuses anything itself: the
  ordinary path decides what it leaves, in a separate transaction.
- The guard is in the statement that writes, and nowhere else.
- Calls of a project run beside each other, except claims; the ordinary path has the project to itself.

What follows for others. A result of a task with dependents, children or a dag moves more than its own row. Such results
are left by a call that shares the project. They are written by the same call inside of an ordinary transaction
(`FastRunner.stamp`): all of them at once, before the first command is decided, and their effects (`effects.spread`) in
the turn of each command. So a batch of them takes a few round trips, however many there are.

Order. `Engine.run` keeps the order of its commands: where some of a run are unusual, those before them are called
first, then they take the ordinary path, then the rest. Commands of different callers have no order.

Which tests prove it.
- `testing/engine/both_ways.py` runs every history with and without the fast path, on every store: answers, rows and
  events must be equal.
- `tests/core/test_moves.py` compares the columns that the calls write with the constructors of `core/moves.py`.
- `tests/stores/test_postgres_guards.py` and `test_postgres_sharing.py` remove or race single conditions of the guard.
- `engine/verify` replays the log of every test history against the tables.

What a new field must do. A field of Task, Claim or Result that a hot verb changes goes into the constructor in
`core/moves.py` or `core/claims.py`, into the function, and into the patch in `event_blocks.py`. A field that makes one
of the three verbs do more than guard and stamp makes the task not plain: add it to `core/settle.py` instead. A field
of the view that a new holder gets goes into `TASK_FIELDS` or `BRIEF_FIELDS` of `stores/fast_path.py`. A new option of
the command is refused in `next_claims.py` or `held_claims.py` until the function supports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from tenure.core import commands, limits
from tenure.core.commands import Principal
from tenure.engine.runtime.context import Context, Random
from tenure.engine.runtime.fast_path.command_run import Built, Known, NoLane, NotFast
from tenure.engine.runtime.fast_path.held_claims import Turn, in_turn, renewals, submits
from tenure.engine.runtime.fast_path.next_claims import claims
from tenure.engine.runtime.optimistic import Optimism
from tenure.engine.runtime.unit_of_work import Reply, UnitOfWork
from tenure.stores.fast_path import FOLLOWS, MOST, FastPath, FastTransaction, Look, Unusual

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import CheckedCommand

_VERBS: dict[type[Any], Any] = {commands.ClaimNext: claims, commands.Submit: submits, commands.Renew: renewals}
_STALE = ("project", "lanes")  # the kept values are out of date: look again
NO_LANE = "no lane"
MOST_KNOWN = 50_000  # agents of a project whose skills are kept
MOST_LANES = limits.KNOWN_LANES
ROUNDS_OF_STAMPS = 4  # attempts, each without those that were odd in the one before


def kind_of(command: Any) -> tuple[str, type[Any]] | None:
    """Commands of one kind may share a call; None: it is not hot."""
    return (command.project, type(command)) if type(command) in _VERBS else None


class FastRunner:
    """Runs groups of like commands by calls of the store; safe to share between threads."""

    def __init__(self, store: Any, random: Random, context: Context) -> None:
        self._store: FastPath = store
        self._random, self._context = random, context
        self._optimism = context.optimism or Optimism()
        self._known: dict[str, Known] = {}
        self._lanes: dict[str, list[str]] = {}  # those that had tasks: a worker that waits is woken by one of them
        self._following: set[str] = set()  # projects with results that concern other tasks

    def tries(self, kind: Any) -> bool:
        """Whether commands of this kind are to be tried now."""
        return self._optimism.tries(kind)

    def run(self, groups: Sequence[Sequence[CheckedCommand]]) -> list[list[Reply]]:
        """The replies to each group, all in one transaction.

        Raises Unusual, with the number of the group, where some or all commands need the ordinary path.
        """
        kinds = [kind_of(group[0].item.command) for group in groups]
        for n, group in enumerate(groups):
            if sum(getattr(one.item.command, "n", 1) for one in group) > MOST:
                raise Unusual(n, "too many")
        try:
            replies = self._called(groups)
        except Unusual as unusual:
            if unusual.why in _STALE:
                for project in {group[0].item.command.project for group in groups}:
                    self._known.pop(project, None)
                try:
                    replies = self._called(groups)
                except Unusual as again:
                    self._note(groups, kinds, again)
                    raise
            else:
                self._note(groups, kinds, unusual)
                raise
        for kind in kinds:
            self._optimism.note(kind, True)
        return replies

    def leading(self, batch: Sequence[CheckedCommand]) -> int:
        """How many results the batch begins with that `stamp` is to try: where something has followed before."""
        project = batch[0].item.command.project
        same = takewhile(lambda one: kind_of(one.item.command) == (project, commands.Submit), batch)
        many = sum(1 for _ in same)
        return many if project in self._following and many <= MOST else 0

    def stamp(self, work: UnitOfWork, batch: Sequence[CheckedCommand]) -> dict[int, Turn]:
        """Within an ordinary transaction: write all of these results that need but guard and stamp, by one call.

        For each of them, by its number, what gives its answer in its turn. The project is this transaction's alone, so
        that also results with effects on others may go this way: these are applied in their turn.
        """
        tx: FastTransaction = work.tx  # type: ignore[assignment]  # the store declares it
        project = batch[0].item.command.project
        numbers = list(range(len(batch)))
        for _ in range(ROUNDS_OF_STAMPS):
            if not numbers:
                break
            run: list[tuple[Any, Principal]] = [(batch[n].item.command, batch[n].principal) for n in numbers]
            try:
                built = submits(self._looked_in(tx, project), run, self._random)
                rows = tx.call(built.call._replace(follows=True))()  # type: ignore[call-arg]  # a Submits
            except NotFast as error:
                which: Sequence[int] = error.which
            except Unusual as unusual:
                if unusual.why in _STALE:
                    self._known.pop(project, None)
                    continue
                which = unusual.which
            else:
                return dict(zip(numbers, in_turn(work, run, built, rows), strict=True))
            odd = {numbers[n] for n in which}
            numbers = [n for n in numbers if n not in odd] if odd else []
        self._following.discard(project)  # until a call reports it again
        return {}

    def _looked_in(self, tx: FastTransaction, project: str) -> Known:
        """As `_looked`, by the transaction's own connection."""
        known = self._known.get(project)
        if known is None:
            found = tx.look(project)
            if found is None:
                raise NotFast
            known = self._known[project] = Known(self._with_lanes(project, found), self._context)
        return known

    def _with_lanes(self, project: str, look: Look) -> Look:
        """With the lanes that are empty now: an empty one costs a call little, one that it does not know all."""
        lanes = sorted({*look.lanes, *self._lanes.get(project, ())})
        self._lanes[project] = lanes = lanes if len(lanes) <= MOST_LANES else look.lanes
        return look._replace(lanes=lanes)

    def _note(self, groups: Sequence[Sequence[CheckedCommand]], kinds: Sequence[Any], unusual: Unusual) -> None:
        """A few odd ones among many do not make it back off, nor does a worker that waits for its task."""
        of = unusual.call
        if unusual.why in ("few", NO_LANE):
            return
        if unusual.why == FOLLOWS:
            self._following.add(groups[of][0].item.command.project)
        went = 0 < 4 * len(unusual.which) < len(groups[of])
        self._optimism.note(kinds[of], went)
        known = self._known.get(groups[of][0].item.command.project)
        if known is not None and unusual.why == "claimants":
            for n in unusual.which:
                known.skills.pop(groups[of][n].item.command.agent, None)

    def _called(self, groups: Sequence[Sequence[CheckedCommand]]) -> list[list[Reply]]:
        built = [self._built(n, group) for n, group in enumerate(groups)]
        try:
            answers = self._store.call(self._context.tenant, [one.call for one in built])
        except Unusual as unusual:
            numbers = built[unusual.call].commands
            if numbers is None:
                raise
            raise Unusual(unusual.call, unusual.why, sorted({numbers[n] for n in unusual.which})) from None
        return [one.replies(rows) for one, rows in zip(built, answers, strict=True)]

    def _built(self, number: int, group: Sequence[CheckedCommand]) -> Built:
        first = group[0].item.command
        run: list[tuple[Any, Principal]] = [(one.item.command, one.principal) for one in group]
        agents = [c.agent for c, _ in run] if type(first) is commands.ClaimNext else []
        again = False
        while True:
            known = self._looked(first.project, agents, again=again)
            if known is None:
                raise Unusual(number, "no project")
            try:
                return _VERBS[type(first)](known, run, self._random)  # type: ignore[no-any-return]
            except NotFast as error:
                if isinstance(error, NoLane) and not again:
                    again = True  # there may be a new one
                    continue
                why = NO_LANE if isinstance(error, NoLane) else "command"
                raise Unusual(number, why, error.which) from None

    def _looked(self, project: str, agents: Sequence[str], *, again: bool = False) -> Known | None:
        known = self._known.get(project)
        missing = agents if known is None else [agent for agent in agents if agent not in known.skills]
        if known is not None and not missing and not again:
            return known
        found = self._store.look(self._context.tenant, project, dict.fromkeys(missing))
        if found is None:
            return None
        found = self._with_lanes(project, found)
        if known is None or known.look.seen != found.seen or known.look.lanes != found.lanes:
            fresh = Known(found, self._context)
            if known is not None and len(known.skills) < MOST_KNOWN:
                fresh.skills |= known.skills
            known = self._known[project] = fresh
        known.skills |= found.skills
        return known
