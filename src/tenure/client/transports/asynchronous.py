"""The transports for asyncio. On a local store commands are batched and queries run in threads; HTTP is over httpx2."""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tenure.client.contents import PIECE, AsyncDownload, in_threads
from tenure.client.transports.bounded import LONGEST, SLOWEST, Size, Unbounded, longest, too_long
from tenure.client.transports.http import TO_ANSWER, TO_CONNECT, Calls, IsWanted
from tenure.client.transports.http_messages import FOUND, Reply, Request, Trouble
from tenure.client.transports.server_address import Address, Failed, lost, may_pass, strange, unreachable
from tenure.core import limits
from tenure.core.errors import InvalidInput, StoreError, StoreUnavailable, TenureError, close_all
from tenure.core.task_defaults import SHIPPED, TaskDefaults

if TYPE_CHECKING:
    import httpx2

    from tenure.artifacts.port import Checking
    from tenure.client.contents import Upload, Wanted
    from tenure.core.commands import ClaimNext, Command, Principal
    from tenure.core.outcomes import Outcome
    from tenure.core.queries import Query
    from tenure.engine import Engine, Random
    from tenure.stores.port import Clock

SLICE = 0.2  # seconds that the waker waits at a time: new waiters are noticed then
UNAVAILABLE = 1.0  # seconds between tries while the store is unavailable


class AsyncLocalTransport:
    def __init__(
        self,
        url: str,
        *,
        random: Random,
        create: bool,
        clock: Clock | None,
        artifacts: str | None = None,
        task_defaults: TaskDefaults = SHIPPED,
        leader_lease: float = limits.AGENT_LEADER_LEASE / 1e6,
        tenant: str | None = None,
    ) -> None:
        # Here, not above: a client of a server does not load the engine.
        from tenure.client.transports.local import LocalTransport
        from tenure.engine.runtime.work_wait import POLL_WITH_WAKE_UPS, POLL_WITHOUT, SHORTEST
        from tenure.stores.port import WAKE_UPS

        self._local = LocalTransport(
            url, random=random, create=create, gather=True, clock=clock, artifacts=artifacts,
            task_defaults=task_defaults, leader_lease=leader_lease, tenant=tenant,
        )  # fmt: skip
        self.url = self._local.url
        self._waker = Waker(self._local.engine)
        self._poll = POLL_WITH_WAKE_UPS if WAKE_UPS in self._local.store.features else POLL_WITHOUT
        self._shortest = SHORTEST

    async def do(self, command: Command, principal: Principal) -> Outcome:
        assert self._local.batcher is not None
        return await self._local.batcher.ado(command, principal)

    async def run(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await asyncio.to_thread(self._local.run, batch, principal)

    async def preview(self, batch: Sequence[Command], principal: Principal) -> list[Outcome | TenureError]:
        return await asyncio.to_thread(self._local.preview, batch, principal)

    async def claim_or_wait(self, command: ClaimNext, seconds: float, principal: Principal) -> Outcome:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + seconds
        while True:
            mark = await self.mark(command.project, principal)  # before the claim: later events will wake us
            outcome = await self.do(command, principal)
            left = give_up - loop.time()
            if outcome.outcome != "NO_TASK" or left <= 0:
                return outcome
            wait = min(left, self._poll)
            if outcome.retry_in is not None:
                wait = min(wait, max(self._shortest, outcome.retry_in))
            await self._waker.wait(mark, wait)

    async def query(self, query: Query, principal: Principal) -> Any:
        return await asyncio.to_thread(self._local.query, query, principal)

    async def put(self, upload: Upload, principal: Principal) -> Outcome:
        return await asyncio.to_thread(self._local.put, upload, principal)

    async def get(self, wanted: Wanted, principal: Principal) -> AsyncDownload:
        got = await asyncio.to_thread(self._local.get, wanted, principal)
        return AsyncDownload(got.view, in_threads(iter(got)))

    async def mark(self, project: str, principal: Principal) -> int:
        return await asyncio.to_thread(self._local.engine.mark)

    async def wait(
        self,
        mark: int,
        seconds: float,
        project: str,
        principal: Principal,
        is_wanted: IsWanted = None,
        tasks: Collection[str] = (),
    ) -> bool:
        return await self._waker.wait(mark, seconds)

    async def now(self, project: str, principal: Principal) -> int:
        return await asyncio.to_thread(self._local.now, project, principal)

    async def close(self) -> None:
        await asyncio.to_thread(close_all, self._waker.close, self._local.close)


class Waker:
    """Wakes coroutines when the log grows: one thread waits for the store for all of them, and ends with the last."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._waiting: dict[asyncio.Future[None], tuple[asyncio.AbstractEventLoop, int]] = {}
        self._lock = threading.Lock()
        self._is_closed = threading.Event()
        self._thread: threading.Thread | None = None

    async def wait(self, mark: int, seconds: float) -> bool:
        """True as soon as there are events after `mark`, False after `seconds`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._add(future, loop, mark)
        try:
            # Events from before the thread knew this waiter count too.
            if await asyncio.to_thread(self._engine.mark) > mark:
                return True
            await asyncio.wait_for(future, seconds)
        except TimeoutError:
            return False
        finally:
            with self._lock:
                self._waiting.pop(future, None)
        return True

    def close(self) -> None:
        self._is_closed.set()
        thread = self._thread
        if thread is not None:
            thread.join()

    def _add(self, future: asyncio.Future[None], loop: asyncio.AbstractEventLoop, mark: int) -> None:
        with self._lock:
            self._waiting[future] = (loop, mark)
            if self._thread is None and not self._is_closed.is_set():
                self._thread = threading.Thread(target=self._watch, name="tenure-waker", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        while True:
            with self._lock:
                marks = [mark for _, mark in self._waiting.values()]
                if not marks or self._is_closed.is_set():
                    self._thread = None
                    return
            try:
                if self._engine.wait(min(marks), SLICE):
                    self._wake(self._engine.mark())
            except StoreError:  # the next command raises it to its caller
                self._is_closed.wait(UNAVAILABLE)

    def _wake(self, reached: int) -> None:
        with self._lock:
            woken = [(future, loop) for future, (loop, mark) in self._waiting.items() if mark < reached]
            for future, _ in woken:
                del self._waiting[future]
        for future, loop in woken:
            with suppress(RuntimeError):  # its loop has ended
                loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _tls(url: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context()
    except OSError as error:  # of a file that the environment names
        raise unreachable(url, error).error from error


class AsyncHttpTransport(Calls):
    def __init__(
        self,
        url: str,
        *,
        key: str | None,
        random: Random,
        tenant: str | None = None,
        homes: Mapping[str, str] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(url, key=key, tenant=tenant, random=random, monotonic=monotonic, homes=homes)
        try:
            import httpx2
        except ImportError as error:
            raise InvalidInput(
                f"AsyncClient speaks to a server with httpx2, which is not installed ({error})", "Install httpx2."
            ) from None
        self._httpx = httpx2
        is_secure = any(one.startswith("https://") for one in (url, *self._homes.values()))
        self._http = httpx2.AsyncClient(
            verify=_tls(url) if is_secure else False,
            limits=httpx2.Limits(
                max_connections=limits.ASYNC_CONNECTIONS, max_keepalive_connections=limits.ASYNC_CONNECTIONS
            ),
            trust_env=False,  # as Client: a proxy in the environment is for the web, not for the team's own server
            headers={"Accept-Encoding": "identity"},  # as Client: most replies are small, and the server is near
        )

    async def _exchange(self, address: Address, request: Request, wait: float, is_wanted: IsWanted) -> Reply:
        url, source = address.url + request.path, request.source
        if self._http.is_closed:
            closed = StoreUnavailable(f"{address.url}: this client was closed; nothing was done")
            raise Failed(Trouble(closed, False), may_pass=False)
        content = in_threads(source.pieces()) if source is not None else request.body or None
        timeout = self._httpx.Timeout(wait + TO_ANSWER, connect=TO_CONNECT)
        try:
            built = self._http.build_request(
                request.method, url, headers=request.headers, timeout=timeout, content=content
            )
            seconds = longest(wait) + (0.0 if source is None else source.size / SLOWEST)
            whole = asyncio.timeout(seconds)
            try:
                async with whole:
                    response = await self._http.send(built, stream=True)
                    if request.is_download and response.status_code in FOUND:
                        return Reply(response.status_code, b"", response.headers, response)
                    return Reply(response.status_code, await self._whole(response), response.headers)
            except TimeoutError:
                if whole.expired():
                    raise too_long(seconds) from None
                raise
        except Unbounded as error:
            raise error.failed(address.url) from None
        except self._httpx.TransportError as error:
            raise self._failed(error, address.url) from error
        except TenureError:  # of the content of an upload
            raise
        except Exception as error:
            raise Failed(strange(address.url, error), may_pass=False) from error

    @staticmethod
    async def _whole(response: httpx2.Response) -> bytes:
        try:
            size, parts = Size(response.headers), []
            async for part in response.aiter_raw():
                size.add(len(part))
                parts.append(part)
            return b"".join(parts)
        finally:
            await response.aclose()

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _leave(self, stream: Any) -> None:
        await stream.aclose()

    def _failed(self, error: httpx2.TransportError, url: str) -> Failed:
        # Before these nothing was sent; after any other failure the request may have been applied.
        unsent = (self._httpx.ConnectError, self._httpx.ConnectTimeout, self._httpx.PoolTimeout)
        trouble = (unreachable if isinstance(error, unsent) else lost)(url, error)
        cause = error.__cause__.__cause__ if error.__cause__ is not None else None
        return Failed(trouble, may_pass=not isinstance(cause, OSError) or may_pass(cause))

    async def get(self, wanted: Wanted, principal: Principal) -> AsyncDownload:
        view, checking, response = await self._found(wanted, principal)
        return AsyncDownload(view, self._pieces(response, checking))

    async def _pieces(self, response: httpx2.Response, checking: Checking) -> AsyncIterator[bytes]:
        """The bytes as they come; the last piece only after all were checked."""
        until = self._monotonic() + (seconds := LONGEST + checking.left / SLOWEST)
        try:
            async for piece in response.aiter_raw(PIECE):
                if self._monotonic() > until:
                    raise too_long(seconds)
                if before := checking.take(piece):
                    yield before
            if last := checking.finish():
                yield last
        except Unbounded as error:
            raise error.refused(self.url) from None
        except (self._httpx.HTTPError, self._httpx.StreamError, OSError) as error:
            raise StoreUnavailable(lost(self.url, error).error.message, "get it again") from error
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._http.aclose()
