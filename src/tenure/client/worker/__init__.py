"""`Worker`: calls functions with tasks; claims, renews leases and submits results for them.

    worker = tenure.Worker("https://tenure.example.com", "shop")

    @worker.task("research")
    def research(ctx: tenure.Context, question: str) -> dict[str, str]:
        ctx.progress(50, "half way")
        return {"answer": "42"}

    research.enqueue(question="why")  # from any program
    worker.run()

One thread claims (`worker.py`), one renews all claims and claims a lost one again (`held_claim.py`), one watches for
changes by others (`watcher.py`), and each task has its own thread (`attempt.py`); async functions run in an event
loop, which may block without losing a lease. Works the same on a store and over a server. With a `source` the claimer
gets messages of a broker instead of waiting at the store (`message_source.py`); `mail_commands.py` has the commands of
other agents.
"""

from tenure.client.worker.context import AsyncContext, Context
from tenure.client.worker.failures import Cancelled, Failure, Permanent, RetryLater
from tenure.client.worker.functions import Secret, TaskFunction
from tenure.client.worker.mail_commands import CommandContext
from tenure.client.worker.worker import Worker

__all__ = [
    "AsyncContext",
    "Cancelled",
    "CommandContext",
    "Context",
    "Failure",
    "Permanent",
    "RetryLater",
    "Secret",
    "TaskFunction",
    "Worker",
]
