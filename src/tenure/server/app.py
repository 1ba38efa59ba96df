"""The way of a request: who asks, which route, what is said, the answer."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

from tenure.client.routes import BATCH, COMMANDS, LOOKS, NEWS, PREFIX, PREVIEW, Route
from tenure.core import limits
from tenure.core.commands import ClaimNext, Command, Principal
from tenure.core.errors import Bug, InvalidInput, TenureError
from tenure.core.queries import Log, States
from tenure.core.records import replace
from tenure.core.roles import check_kind, check_scope
from tenure.server import answers, feed
from tenure.server.answers import Answer, Headers
from tenure.server.bodies import query_of, read_batch, reader_of
from tenure.server.requests import Disconnected, Receive, Request, Scope, Send
from tenure.server.routing import NoMethod, NoRoute, Tree
from tenure.server.service import Service
from tenure.server.tracing import HEADER as TRACEPARENT
from tenure.server.tracing import trace_of

LONGEST_WAIT = limits.RESPONSE_WAIT
HUNG_UP = 499  # as other servers write it down: there was nobody left to answer
STAY_SECURE = (b"strict-transport-security", b"max-age=31536000")
FILTERS = ("task", "kind", "level", "agent", "session")  # of a live stream


class Streamed(NamedTuple):
    """An answer that goes on: server-sent events, or bytes that are not all there at once."""

    chunks: AsyncGenerator[bytes, None]
    status: int = 200
    headers: Headers = (
        (b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"),
        (b"x-content-type-options", b"nosniff"),
    )  # fmt: skip
    waits: str = "events"  # what kind of request is open, for whoever counts them


Handler = Callable[[Request], Awaitable[Answer | Streamed]]
SignIn = Callable[[Request], Awaitable[Principal]]
Watch = Callable[[Request, int, float], None]  # the request, its status, its seconds
Inner = Callable[[Scope, Receive, Send], Awaitable[None]]


class Place(NamedTuple):
    """Where a request is answered."""

    method: str
    path: str  # as the table has it, for logs and metrics too
    handle: Handler
    is_open: bool = False  # needs nobody to be signed in
    takes_rest: bool = False  # its last field is the rest of the path, slashes and all


class App:
    """The ASGI application.

    `sign_in` says who asks, before a byte of the body is read; `watch` is told at the end; `is_https` says whether the
    visitor came by TLS, to us or to a proxy that we trust.
    """

    def __init__(
        self,
        service: Service,
        sign_in: SignIn,
        watch: Watch = lambda *_: None,
        is_https: Callable[[Scope], bool] = lambda scope: bool(scope["scheme"] == "https"),
    ) -> None:
        self.service = service
        self._sign_in = sign_in
        self._watch = watch
        self._is_https = is_https
        self._tree: Tree[Place] = Tree()
        self._mounts: list[tuple[str, Inner, bool]] = []
        for route in COMMANDS:
            self.add(Place(route.method, PREFIX + route.path, self._command(route)))
        for route in LOOKS:
            handle = self._live_log(route) if route.asks is Log else self._look(route)
            self.add(Place(route.method, PREFIX + route.path, handle))
        for path, run in ((BATCH, service.batch), (PREVIEW, service.preview)):
            self.add(Place("POST", PREFIX + path, self._batch(run)))
        self.add(Place("GET", PREFIX + NEWS, self._news))

    def add(self, *places: Place) -> None:
        for place in places:
            path = place.path.removesuffix("}") + "*}" if place.takes_rest else place.path
            self._tree.add(place.method, path, place)

    def places(self) -> Iterator[Place]:
        return iter(self._tree)

    def mount(self, prefix: str, inner: Inner, *, is_open: bool = False) -> None:
        """Hand everything below `prefix` that the table does not have to another application; the longest one wins."""
        self._mounts.append((prefix, inner, is_open))
        self._mounts.sort(key=lambda mount: -len(mount[0]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(Request(scope, receive), receive, self._kept_secure(scope, send))

    def _kept_secure(self, scope: Scope, send: Send) -> Send:
        """Who came by TLS is told to come by TLS from now on."""
        if not self._is_https(scope):
            return send

        async def secured(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), STAY_SECURE]
            await send(message)

        return secured

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.service.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.service.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, request: Request, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        request.trace = trace_of(request.headers.get(TRACEPARENT), os.urandom)
        try:
            answer = await self._answer(request, receive, send)
        except Disconnected:
            self._watch(request, HUNG_UP, time.perf_counter() - began)
            return
        except TenureError as error:
            answer = answers.of_error(error)
        except Exception as error:  # noqa: BLE001 nobody outside sees a traceback
            request.crash = error
            answer = answers.of_error(Bug(f"{type(error).__name__}: {error}", "please report this"))
        if isinstance(answer, Streamed):
            request.status = answer.status
            with self.service.eyes.holding(answer.waits):
                await _send_stream(answer, request, send)
        elif answer is not None:
            headers = [*answer.all_headers(), (TRACEPARENT, request.trace.header)]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            is_head = request.scope["method"] == "HEAD"
            await send({"type": "http.response.body", "body": b"" if is_head else answer.body})
        status = answer.status if isinstance(answer, Answer) else request.status
        self._watch(request, status, time.perf_counter() - began)

    async def _answer(self, request: Request, receive: Receive, send: Send) -> Answer | Streamed | None:
        scope = request.scope
        if not request.headers.get(b"host") and scope.get("http_version") != "1.0":
            raise InvalidInput("the header Host is missing", "every request names the server that it is for")
        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        try:
            place, request.fields = self._tree.find(scope["method"], path)
        except (NoRoute, NoMethod):
            mounts = () if scope["path"].startswith(PREFIX) else self._mounts
            for prefix, inner, is_open in mounts:
                if f"{scope['path']}/".startswith(f"{prefix.rstrip('/')}/"):
                    request.route = prefix
                    if not is_open:
                        await self._know(request)
                        scope.setdefault("state", {})["principal"] = request.principal
                    await inner(scope, receive, request.sent_by(send))
                    return None
            await self._know(request)  # a stranger is not told what there is
            raise
        request.route = place.path
        if not place.is_open:
            await self._know(request)
            if "project" in request.fields:  # before the body: another's project looks unknown whatever is asked of it
                check_scope(request.principal, request.fields["project"])
        return await place.handle(request)

    async def _know(self, request: Request) -> None:
        request.principal = await self._sign_in(request)
        request.is_known = True
        if (signed_in := request.scope.get("state", {}).get("signed_in")) is not None:
            signed_in()  # the connection is a stranger's no more: see `doorstep`

    # --- commands ---

    def _command(self, route: Route) -> Handler:
        read, service, kind = reader_of(route), self.service, route.asks
        assert issubclass(kind, Command)

        async def run(request: Request) -> Answer:
            check_kind(request.principal, kind)  # whoever may not ask for it need not send a body
            command = read(request.said(), await request.body())
            return answers.of_outcome(await service.do(command, request.principal))

        async def claim(request: Request) -> Answer:
            check_kind(request.principal, kind)
            wait = request.number("wait", 0.0, LONGEST_WAIT)
            command = read(request.said(), await request.body())
            assert isinstance(command, ClaimNext)
            if wait:
                waiting = service.claim_or_wait(command, request.principal, wait)
                outcome = await request.while_there(waiting)
            else:
                outcome = await service.do(command, request.principal)
            return answers.of_outcome(outcome, lists_claims=True)

        return claim if route.asks is ClaimNext else run

    def _batch(self, run: Callable[[list[Command], Principal], Awaitable[list[Any]]]) -> Handler:
        async def handle(request: Request) -> Answer:
            read = read_batch(request.said(), await request.body())
            done = iter(await run([c for c in read if isinstance(c, Command)], request.principal))
            return answers.of_batch([next(done) if isinstance(c, Command) else c for c in read])

        return handle

    # --- looks ---

    def _look(self, route: Route) -> Handler:
        async def handle(request: Request) -> Answer:
            query = query_of(route, request.fields, request.scope["query_string"])
            return answers.of_look(query, await self.service.look(query, request.principal))

        return handle

    def _live_log(self, route: Route) -> Handler:
        look = self._look(route)

        async def handle(request: Request) -> Answer | Streamed:
            if "text/event-stream" not in (request.header(b"accept") or ""):
                return await look(request)
            query = query_of(route, request.fields, request.scope["query_string"])
            assert isinstance(query, Log)
            return Streamed(await self._events(query, _cursor(request), request.principal))

        return handle

    async def _events(self, query: Log, cursor: int | None, principal: Principal) -> AsyncGenerator[bytes, None]:
        """From the cursor to now, then as they come. The first page is read here, so that its errors have a status."""
        service = self.service
        if query.task is not None:
            (named,) = await service.look(States(project=query.project, tasks=(query.task,)), principal)
            query = replace(query, task=named.get("id", query.task))
        where = {name: wanted for name in FILTERS if (wanted := getattr(query, name)) is not None}
        after = await service.aside(service.engine.store.mark) if cursor is None else cursor
        stream = service.feed.subscribe(query.project, where)  # before the look: nothing falls between the two

        async def page() -> Any:
            return await service.look(replace(query, after=after, last=False, limit=feed.PAGE), principal)

        async def chunks(behind: Any) -> AsyncGenerator[bytes, None]:
            nonlocal after
            try:
                yield b"retry: 1000\n\n"
                while behind:
                    for view in behind:
                        yield feed.sent(view)
                    after = behind[-1]["sequence"]
                    behind = await page()
                async for chunk in stream.chunks(after):
                    if not await service.is_still_good(principal):
                        return
                    yield chunk
            except TenureError as error:
                yield feed.told(error)
            finally:
                service.feed.unsubscribe(query.project, stream)

        try:
            return chunks(await page())
        except BaseException:
            service.feed.unsubscribe(query.project, stream)
            raise

    async def _news(self, request: Request) -> Answer:
        check_scope(request.principal, request.fields["project"])
        wait = request.number("wait", 0.0, LONGEST_WAIT)
        mark = int(request.number("mark", 0, 2**62))
        if wait:
            with self.service.eyes.holding("news"):
                await request.while_there(self.service.feed.beyond(mark, wait))
        return answers.of_value({"mark": max(0, self.service.feed.position)})


def _cursor(request: Request) -> int | None:
    """Where a stream goes on: behind the last event its reader has seen; None: from now."""
    text = request.header(b"last-event-id") or request.parameter("after")
    if text is not None and not text.isdecimal():
        raise InvalidInput(f"Last-Event-ID {text[:40]!r}: the id of the last event that was seen")
    return None if text is None else int(text)


async def _send_stream(answer: Streamed, request: Request, send: Send) -> None:
    """Send what comes, until it is over or nobody reads it any more."""
    headers = [*answer.headers, (TRACEPARENT, request.trace.header)]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    is_head = request.scope["method"] == "HEAD"

    async def pour() -> None:
        async with aclosing(answer.chunks) as chunks:
            if not is_head:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    with suppress(Disconnected, TenureError):  # an answer that is cut short says so by its length
        await request.while_there(pour())
