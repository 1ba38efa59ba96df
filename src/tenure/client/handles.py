"""A task that was created elsewhere or earlier: wait for its end, get its result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tenure.core.errors import TenureError
from tenure.core.lifecycle import COMPLETED, spoken
from tenure.core.safe_text import shell_word

if TYPE_CHECKING:
    from tenure.client.times import Duration

T = TypeVar("T")


class TaskFailed(TenureError):
    """The task has ended without a result: cancelled, or a dead letter."""

    code = "TASK_FAILED"


class Ended:
    """A task that has ended. `task` is everything about it, as `Client.show` returns it."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.task = task
        self.key: str = task["key"]
        self.state: str = task["state"]
        result = task.get("result") or {}
        self.data: Any = result.get("data")
        self.summary: str = result.get("summary") or ""

    @property
    def ok(self) -> bool:
        """Whether it was completed."""
        return self.state == COMPLETED

    @property
    def error(self) -> str:
        """Why it has no result; empty if it was completed."""
        if self.ok:
            return ""
        last = (self.task.get("last_error") or {}).get("message")
        return str(self.task.get("reason") or last or "")

    def check(self) -> Ended:
        """This task if it was completed; raises TaskFailed otherwise."""
        if not self.ok:
            because = f": {self.error}" if self.error else ""
            raise TaskFailed(
                f"{self.key} is {spoken(self.state)}{because}", f"see `tenure show {shell_word(self.key)}`"
            )
        return self

    def __repr__(self) -> str:
        return f"<Ended {self.key} {self.state}>"


class Handle(Generic[T]):
    """A task and what its function returns, for code that blocks and for asyncio.

    `client` is a Client: the methods that end in `_async` call it in a thread.
    """

    def __init__(self, client: Any, task: str, key: str | None = None) -> None:
        self._client, self.id, self.key = client, task, key or task

    def wait(self, timeout: Duration | None = None) -> Ended:
        """Wait until the task has ended. Raises TimeoutError after `timeout`."""
        ended: Ended = self._client.wait(self.id, timeout)
        return ended

    def result(self, timeout: Duration | None = None) -> T:
        """What the function returned. Raises TaskFailed if the task ended without a result."""
        data: T = self.wait(timeout).check().data
        return data

    async def wait_async(self, timeout: Duration | None = None) -> Ended:  # noqa: ASYNC109 - as `wait`
        """As `wait`, in asyncio."""
        return await asyncio.to_thread(self.wait, timeout)

    async def result_async(self, timeout: Duration | None = None) -> T:  # noqa: ASYNC109 - as `result`
        """As `result`, in asyncio."""
        return await asyncio.to_thread(self.result, timeout)

    def __repr__(self) -> str:
        return f"<Handle {self.key}>"
