"""A result that has passed and waits to be landed: its taker records the move of the branch before it makes it.

The taker's receipt is the fence, as a holder's is: it is judged with the rows of the transaction that writes. Record
and phase are written together, so from that moment on no cancel, reset or supersede takes the task away from a commit
that may be on the branch already. The taker's verdict settles it; after a crash that of the next taker, which looks at
the branch first.
"""

from __future__ import annotations

from tenure.core import commands
from tenure.core.errors import InvalidInput
from tenure.core.land_request import LANDING
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.core.validation import onto
from tenure.engine.checks.validation_verbs import held_by_taker
from tenure.engine.runtime.rows import current_claim
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.land import landing_of, record


def recorded_by_taker(work: UnitOfWork, cmd: commands.Land) -> Outcome:
    held = held_by_taker(work, cmd.project, cmd.receipt)
    if cmd.branch != onto(held.row):
        raise InvalidInput(
            f"branch {cmd.branch[:80]!r}: the result of {held.task.key} is to be landed on {onto(held.row)}",
            "name that branch",
        )
    landing, before, again = landing_of(work, cmd, held.task, current_claim(work, held.task))
    marked = replace(held.row, phase=LANDING)
    rows = (marked,) if again else (marked, landing)
    task = held.task if again and held.row.phase == LANDING else record(work, cmd, *rows, task=held.task)
    return Outcome(
        outcome="OK", again=again, landings=before, state=task.state, generation=held.row.generation,
        **work.leased_until(held.row.until),
    )  # fmt: skip
