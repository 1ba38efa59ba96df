"""The fast path: claim next, renew and submit as one statement each, for runs of like commands on plain tasks.

What it is. The slow path decides a command in Python: read rows, apply core's rules, write rows and events. For the
three hot verbs most of that is always the same, and every read costs a round trip. A store that declares FUSED offers
one statement per verb (`stores/fast_path.py`, on PostgreSQL `stores/postgres/hot_statements.py`) that takes a whole run
of commands. This package decides nothing. It selects the commands that may take the statement, computes their
arguments, and builds the outcomes from the rows that come back.

Restated rules. The statements repeat three rules of core, and nothing else:
- the guard: a grant needs a plain task that is in its lane; a holder's write needs the task's generation, the claim's
  nonce and the epoch of its receipt (`claims.judge`);
- the stamp: the columns that `claims.granted`, `claims.renewed` and `claims.ended` change, and the derived columns of
  `settle.stamp`;
- the events of these moves, with the patch that replay needs (`stores/postgres/event_blocks.py`).
Who may give a command, which task is next, which model is recommended, and what a completed task means for others
(dags, dependents, dead letters) are not restated: this package calls the same functions as the slow path.

Why it is safe.
- Only plain tasks qualify. `core/settle.py` defines them in one place, and `settle.stamp` sets the mark at every
  write of the row. A task with a budget, a reservation, a contract, an artifact or a pause is not plain.
- The guard is in the statement that writes. A row that does not pass is left out of the answer, and its command takes
  the slow path, which gives the refusal. The fast path never refuses anything itself.
- A run ends with the first command that does not qualify; that command and all later ones follow in their order. So
  the answers are the same as if the commands ran one by one.
- Changes that the batch has made so far are flushed before the statement, so that it sees them; rows that it wrote are
  forgotten by the unit of work, so that no later command decides on stale ones.
- A statement that wrote fewer rows than it found aborts itself, and the transaction runs again.
- The receipt alone passes the guard. Where a key proves its agent, `held_claims` compares the owner afterwards; a
  mismatch rolls the whole batch back, and it runs again in parts.

Optimism. `runtime/optimistic.py` decides when such a batch shares its projects with others or sends its statement
together with the commit. If something then needs the slow path, `NeedsExclusiveLock` ends the attempt with nothing
written, and the batch runs again without optimism. `Tries` backs off per kind of command: a failed attempt costs a
round trip.

Which tests prove it.
- `testing/engine/both_ways.py` runs every history with and without the fast path, on every store: answers, rows and
  events must be equal.
- `tests/core/test_moves.py` compares the columns that the statements write with the constructors of `core/moves.py`.
- `tests/stores/test_postgres_guards.py` and `test_postgres_sharing.py` remove or race single conditions of the guard.
- `engine/verify` replays the log of every test history against the tables.

What a new field must do. A field of Task, Claim or Result that a hot verb changes goes into the constructor in
`core/moves.py` or `core/claims.py`, into the statement, and into the patch in `event_blocks.py`. A field that makes one
of the three verbs do more than guard and stamp makes the task not plain: add it to `core/settle.py` instead. A
field of the view that a new holder gets goes into `TOLD` or `TOLD_OF_BRIEF` of `stores/fast_path.py`. A new option of
the command is refused in `ready`, `prepared` or `presented` until the statement supports it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from typing import Any

from tenure.core import commands
from tenure.core.commands import Principal
from tenure.engine.runtime.fast_path.command_run import Run
from tenure.engine.runtime.fast_path.held_claims import complete, prepared, presented, renew
from tenure.engine.runtime.fast_path.next_claims import claim
from tenure.engine.runtime.fast_path.next_claims import ready as ready_to_claim
from tenure.engine.runtime.unit_of_work import Reply, UnitOfWork

_VERBS: dict[type[Any], tuple[Callable[[Any, Principal], Any], Callable[[UnitOfWork, Run, bool], list[Reply]]]] = {
    commands.ClaimNext: (ready_to_claim, claim),
    commands.Submit: (lambda command, _: prepared(command), complete),
    commands.Renew: (lambda command, _: presented(command), renew),
}


def is_hot(command: Any) -> bool:
    return type(command) in _VERBS


def ready(command: Any, principal: Principal) -> Any:
    """What can be computed before the transaction, so that others do not wait for it; None where there is nothing."""
    verb = _VERBS.get(type(command))
    return None if verb is None else verb[0](command, principal)


def answers(work: UnitOfWork, batch: Run) -> list[Reply]:
    """Replies to the first commands; [] where the first must take the slow path."""
    kind = type(batch[0][0])
    verb = _VERBS.get(kind)
    if verb is None or work.recalled or work.fast_path_tries.is_to_wait(kind):
        return []
    work.flush()  # the statement must see the batch's changes so far
    run = list(takewhile(lambda asked: type(asked[0]) is kind, batch))
    done = verb[1](work, run, len(run) == len(batch))
    work.fast_path_tries.note(kind, bool(done))
    return done
