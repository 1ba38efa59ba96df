"""`Worker`: functions that are called with tasks, while everything around the work is kept: claims, leases, results.

    worker = tenure.Worker("https://tenure.example.com", "shop")

    @worker.task("research")
    def research(ctx: tenure.Context) -> dict[str, str]:
        ctx.progress(50, "half way")
        return {"answer": "42"}

    worker.run()

One thread claims (`worker.py`), one renews what is held (`keeper.py`), and each task has a thread of its own
(`work.py`); async functions run in an event loop, which may block as long as it likes without losing a lease. A claim
that was lost is taken again (`hold.py`). Works the same on a store and over a server.
"""

from tenure.client.worker.context import AsyncContext, Context
from tenure.client.worker.failures import Cancelled, Failure, Permanent, RetryLater
from tenure.client.worker.worker import Worker

__all__ = ["AsyncContext", "Cancelled", "Context", "Failure", "Permanent", "RetryLater", "Worker"]
