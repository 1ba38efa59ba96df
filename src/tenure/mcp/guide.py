"""What agents are told of the tools as a whole: on connecting, and by the prompt."""

from __future__ import annotations

INSTRUCTIONS = (
    "Tenure says who works on what. Work only on a task that you have claimed; its receipt proves that you hold it. "
    "A reply that tells you to stop means it: another has the task now."
)

WORK = """\
Work through the tasks of this project, one at a time:
1. `claim`{named}. Keep the receipt.
2. Do what the task says, with its inputs and the checkpoint that was left. Touch nothing that other tasks are about.
3. Every few minutes `update` with the receipt; that renews the lease. Tell step and percent, and save a checkpoint
   (next, files, tests, blockers) whenever somebody else should be able to go on from there.
4. `finish` with the receipt: done with a summary and the result that later tasks need; fail with the class if it
   cannot be done; ask if a person must decide; release if it is not for you.
5. Begin again at 1 until nothing is left to claim.
If a reply tells you to stop, stop and go back to 1. More work that you find: `add` it. Never do it unclaimed.
"""


def work(task: str | None) -> str:
    return WORK.format(named=f" with task={task}" if task else "")
