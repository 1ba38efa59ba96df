"""Instructions for agents about the tools as a whole: sent on connecting, and by the prompt."""

from __future__ import annotations

INSTRUCTIONS = (
    "Tenure decides who works on what. Work only on a task that you have claimed; its receipt proves that you hold it. "
    "If a reply says stop, stop: another agent has the task now."
)

WORK = """\
Work through the tasks of this project, one at a time:
1. `claim`{named}. Keep the receipt.
2. Do the task, with its inputs and its last checkpoint. Do not change what other tasks are about.
3. Every few minutes `update` with the receipt; that renews the lease. Report step and percent, and save a checkpoint
   (next, files, tests, blockers) whenever another agent should be able to continue from there.
4. `finish` with the receipt: done with a summary and the result that later tasks need; fail with the class if it
   cannot be done; ask if a person must decide; release if you cannot do it.
5. Repeat from 1 until there is nothing to claim.
If a reply says stop, stop and go back to 1. If you find more work, `add` it. Never do unclaimed work.
"""


def work(task: str | None) -> str:
    return WORK.format(named=f" with task={task}" if task else "")
