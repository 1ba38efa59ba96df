"""Handles a request: authenticate, route, decode, run, respond."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, MutableMapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from tenure.client.routes import BATCH, COMMANDS, CONDITION_FAILED, NEWS, PREFIX, PREVIEW, QUERIES, Route
from tenure.core import limits
from tenure.core.caller_errors import for_caller, in_full
from tenure.core.commands import Add, ClaimNext, Command, Plan, Principal
from tenure.core.errors import Bug, InvalidInput, TenureError
from tenure.core.events import kinds_of, levels_from
from tenure.core.inputs import check_list
from tenure.core.outcomes import Outcome
from tenure.core.queries import Log, Show, States
from tenure.core.records import replace
from tenure.core.roles import check_kind, check_scope, sees_store
from tenure.core.tenant_records import HOME
from tenure.server import feed, responses
from tenure.server.auth.request_source import TENANT_PATH, check_one_host, without_tenant
from tenure.server.logs import ServerLog
from tenure.server.query_strings import query_of, query_reader
from tenure.server.regions import check_home, with_age
from tenure.server.representation import represented, tagged
from tenure.server.requests import (
    TRACEPARENT,
    Disconnected,
    Receive,
    Request,
    Scope,
    Send,
    read_batch,
    reader_of,
    trace_of,
)
from tenure.server.responses import Response, StreamedResponse
from tenure.server.route_tree import NoMethod, NoRoute, RouteTree
from tenure.server.service import Service
from tenure.server.signed_in_connections import Who

LONGEST_WAIT = limits.RESPONSE_WAIT
FAILED, BROKEN = 400, 500  # the least status of a request that failed, and of one that failed here
DISCONNECTED = 499  # as nginx logs it: the client closed the connection before the response
STAY_SECURE = (b"strict-transport-security", b"max-age=31536000")
ANYWHERE = frozenset(  # about this process
    {"/metrics", f"{PREFIX}/me", f"{PREFIX}/coordinator/status", f"{PREFIX}/coordinator/logs"}
)
FILTERS = ("task", "kind", "level", "agent", "session")  # of a live stream


Handler = Callable[[Request], Awaitable[Response | StreamedResponse]]
SignIn = Callable[[Request], Awaitable[Principal]]
RunBatch = Callable[[Service, list[Command], Principal], Awaitable[list[Any]]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class Lives(Protocol):
    """What starts and stops with the application."""

    def start(self) -> None: ...

    async def close(self) -> None: ...


class Endpoint(NamedTuple):
    """A method and path, and the function that handles them."""

    method: str
    path: str  # with its placeholders; logs and metrics show it
    handle: Handler
    is_open: bool = False  # needs no authentication
    takes_rest: bool = False  # the last field is the rest of the path, including slashes
    is_costly: bool = False  # its cost grows with the body: it runs behind the gate of costly queries
    is_read: bool = False  # it may be answered with older data, where the request allows that
    is_watched: bool = False  # it answers while the store is unavailable: see `authenticate_watcher`


class App:
    """The ASGI application.

    `sign_in` authenticates the request before its body is read; `is_https` returns whether the client uses TLS, to this
    server or to a trusted proxy.
    """

    def __init__(
        self,
        service: Service,
        sign_in: SignIn,
        log: ServerLog | None = None,
        is_https: Callable[[Scope], bool] = lambda scope: bool(scope["scheme"] == "https"),
        access: Callable[[Request, int, float], None] | None = None,
        service_of: Callable[[Request], Awaitable[Service]] | None = None,
        lives: Lives | None = None,
        sign_in_watcher: SignIn | None = None,
    ) -> None:
        """`service` is the home tenant's; `service_of` returns that of a request, once it is signed in.

        `sign_in_watcher` authenticates requests of endpoints that are watched; by default `sign_in` does.

        `access` gets each answered request, with its status and its seconds.
        """
        self.service = service
        self._service_of = service_of
        self._lives: Lives = lives or service
        self._access = access
        self._sign_in, self._sign_in_watcher = sign_in, sign_in_watcher or sign_in
        self._log = log
        self._is_https = is_https
        self._tree: RouteTree[Endpoint] = RouteTree()
        self._mounts: list[tuple[str, AsgiApp, bool]] = []
        for route in COMMANDS:
            self.add(Endpoint(route.method, PREFIX + route.path, self._command(route)))
        for route in QUERIES:
            handle = self._live_log(route) if route.asks is Log else self._look(route)
            self.add(Endpoint(route.method, PREFIX + route.path, handle, is_read=True))
        self.add(
            Endpoint("POST", PREFIX + BATCH, self._batch(Service.batch, Service.batch)),
            Endpoint("POST", PREFIX + PREVIEW, self._batch(Service.preview, Service.costly_preview), is_costly=True),
        )
        self.add(Endpoint("GET", PREFIX + NEWS, self._news))

    def add(self, *endpoints: Endpoint) -> None:
        for endpoint in endpoints:
            path = endpoint.path.removesuffix("}") + "*}" if endpoint.takes_rest else endpoint.path
            self._tree.add(endpoint.method, path, endpoint)

    def endpoints(self) -> Iterator[Endpoint]:
        return iter(self._tree)

    def mount(self, prefix: str, inner: AsgiApp, *, is_open: bool = False) -> None:
        """Give requests below `prefix` without a route to another ASGI application; the longest prefix wins."""
        self._mounts.append((prefix, inner, is_open))
        self._mounts.sort(key=lambda mount: -len(mount[0]))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            scope = without_tenant(scope)
            await self._serve(Request(scope, receive), self._kept_secure(scope, send))

    def _kept_secure(self, scope: Scope, send: Send) -> Send:
        """Add the HSTS header to responses over TLS."""
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
                self._lives.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._lives.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, request: Request, send: Send) -> None:
        began = time.perf_counter()
        request.trace = trace_of(request.headers.get(TRACEPARENT), os.urandom)
        try:
            answer = await self._answer(request, send)
        except Disconnected:
            self._observe(request, DISCONNECTED, began)
            return
        except TenureError as error:
            answer = self._refused(request, error)
        except Exception as error:  # noqa: BLE001 a client never sees a traceback
            request.crash = error
            answer = self._refused(request, Bug(f"{type(error).__name__}: {error}", "please report this"))
        if isinstance(answer, StreamedResponse):
            request.status = answer.status
            if self._access is not None:  # it may last for hours
                self._access(request, answer.status, time.perf_counter() - began)
            with self.service.metrics.waiting_request(answer.waits):
                await answer.send(request, send)
        elif answer is not None:
            answer = await represented(request, answer)
            headers = [*answer.all_headers(), (TRACEPARENT, request.trace.header)]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            is_head = request.scope["method"] == "HEAD"
            await send({"type": "http.response.body", "body": b"" if is_head else answer.body})
        status = answer.status if isinstance(answer, Response) else request.status
        self._observe(request, status, began)

    @staticmethod
    def _refused(request: Request, error: TenureError) -> Response:
        """The error as its caller may read it; the log has all of it."""
        shown = for_caller(error, request.principal if request.is_known else None)
        answer = responses.of_error(shown)
        request.error = shown.code
        if shown is not error or answer.status >= BROKEN:  # not of a refusal, which quotes what the caller has sent
            request.cause = error
        return answer

    def _observe(self, request: Request, status: int, began: float) -> None:
        seconds, method, route = time.perf_counter() - began, request.scope["method"], request.route or "none"
        self.service.metrics.request(route, method, status, seconds)
        if self._access is not None:
            self._access(request, status, seconds)
        if self._log is None:
            return
        principal, trace_id = request.principal if request.is_known else None, request.trace.id
        path = None if request.route else request.scope["path"]
        why: dict[str, Any] = {"trace_id": trace_id, "path": path}
        if status >= FAILED:
            why |= {"code": request.error, "request_id": request.header(b"idempotency-key")}
        if request.cause is not None:
            why |= {"code": request.cause.code, "why": in_full(request.cause)}
        self._log.request(method, route, status, seconds, principal=principal, **why)
        if request.crash is not None:
            self._log.error("internal error", exc_info=request.crash, trace_id=trace_id)

    async def _answer(self, request: Request, send: Send) -> Response | StreamedResponse | None:
        scope = request.scope
        check_one_host(scope["headers"], scope.get("http_version"))
        path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        try:
            endpoint, request.fields = self._tree.find(scope["method"], path)
        except (NoRoute, NoMethod):
            mounts = () if scope["path"].startswith(PREFIX) else self._mounts
            for prefix, inner, is_open in mounts:
                if f"{scope['path']}/".startswith(f"{prefix.rstrip('/')}/"):
                    request.route = prefix
                    if not is_open:
                        await self._know(request)
                        check_home(request, is_read=False)
                        scope.setdefault("state", {}).update(principal=request.principal, service=request.service)
                    await inner(scope, request.receive, request.sent_by(send))
                    return None
            await self._know(request)  # without a sign-in, unknown paths are not revealed
            raise
        request.route = endpoint.path
        if not endpoint.is_open:
            await self._know(request, is_watched=endpoint.is_watched)
            if "project" in request.fields:  # before the body: a project outside the scope is never revealed
                check_scope(request.principal, request.fields["project"])
            if endpoint.path not in ANYWHERE and check_home(request, is_read=endpoint.is_read):
                answer = await endpoint.handle(request)
                return await with_age(request.service, answer) if isinstance(answer, Response) else answer
        return await endpoint.handle(request)

    async def _know(self, request: Request, *, is_watched: bool = False) -> None:
        request.principal = await (self._sign_in_watcher if is_watched else self._sign_in)(request)
        if is_watched or self._service_of is None:  # that of another tenant might have to be looked up
            request.service = self.service
        else:
            request.service = await self._service_of(request)
        request.is_known = True
        if (signed_in := request.scope.get("state", {}).get("signed_in")) is not None:
            who = request.principal
            signed_in(Who(who.tenant or HOME, who.key or ""))  # its connection is counted as theirs

    # --- commands ---

    def _command(self, route: Route) -> Handler:
        read, kind = reader_of(route), route.asks
        assert issubclass(kind, Command)

        async def run(request: Request) -> Response:
            check_kind(request.principal, kind)  # a role that may not run it need not send a body
            command = read(request.context(), await request.json())
            outcome = await self._did(request, command, request.service.do(command, request.principal))
            answer = responses.of_outcome(outcome, *_location(request, command, outcome))
            is_condition = outcome.outcome == "VERSION_CONFLICT" and request.header(b"if-match") is not None
            return answer._replace(status=CONDITION_FAILED) if is_condition else answer

        async def claim(request: Request) -> Response:
            check_kind(request.principal, kind)
            wait = request.number("wait", 0.0, LONGEST_WAIT)
            command = read(request.context(), await request.json())
            assert isinstance(command, ClaimNext)
            if wait:
                answer = request.while_there(request.service.claim_or_wait(command, request.principal, wait))
            else:
                answer = request.service.do(command, request.principal)
            outcome = await self._did(request, command, answer)
            return responses.of_outcome(outcome, lists_claims=True)

        return claim if route.asks is ClaimNext else run

    async def _did(self, request: Request, command: Command, answer: Awaitable[Outcome]) -> Outcome:
        """The outcome, noted for the access log."""
        try:
            outcome = await answer
        except TenureError as error:
            request.operations.append((command, error))
            raise
        request.operations.append((command, outcome))
        return outcome

    def _batch(self, run: RunBatch, run_large: RunBatch) -> Handler:
        async def handle(request: Request) -> Response:
            body, who = await request.json(), request.principal
            read = read_batch(request.context(), body)
            given = [c for c in read if isinstance(c, Command)]
            answers = await (run_large if len(body) > limits.COSTLY_BODY else run)(request.service, given, who)
            request.operations += zip(given, answers, strict=True)
            done = iter(answers)
            whole = [next(done) if isinstance(c, Command) else c for c in read]
            return responses.of_batch([for_caller(a, who) if isinstance(a, TenureError) else a for a in whole])

        return handle

    # --- queries ---

    def _look(self, route: Route) -> Handler:
        if route.method == "POST":
            return self._look_with_body(route)

        async def handle(request: Request) -> Response:
            query = query_of(route, request.fields, request.scope["query_string"])
            view, cost = await request.service.look_and_measure(query, request.principal)
            request.operations.append((query, view))
            began = time.thread_time()
            answer = tagged(responses.of_view(view), view["version"] if route.asks is Show else None)
            return responses.with_cost(answer, cost + time.thread_time() - began)

        return handle

    def _look_with_body(self, route: Route) -> Handler:
        read = query_reader(route)

        async def handle(request: Request) -> Response:
            query = read(request.fields, await request.json())
            view = await request.service.look(query, request.principal)
            request.operations.append((query, view))
            return responses.of_view(view)

        return handle

    def _live_log(self, route: Route) -> Handler:
        look = self._look(route)

        async def handle(request: Request) -> Response | StreamedResponse:
            if "text/event-stream" not in (request.header(b"accept") or ""):
                return await look(request)
            query = query_of(route, request.fields, request.scope["query_string"])
            assert isinstance(query, Log)
            return StreamedResponse(await self._events(request.service, query, _cursor(request), request.principal))

        return handle

    async def _events(
        self, service: Service, query: Log, cursor: int | None, principal: Principal
    ) -> AsyncGenerator[bytes, None]:
        """Events from the cursor on, then live. The first page is read first, so its errors have a status."""
        if query.task is not None:
            (named,) = await service.look(States(project=query.project, tasks=(query.task,)), principal)
            query = replace(query, task=named.get("id", query.task))
        where = {name: wanted for name in FILTERS if (wanted := getattr(query, name)) is not None}
        if query.kind is not None:
            where["kind"] = kinds_of(query.kind)
        if query.level is not None:
            where["level"] = levels_from(query.level)
        after = await service.read_in_thread(service.engine.mark) if cursor is None else cursor
        stream = service.feed.subscribe(query.project, where, store=query.store and sees_store(principal))
        # It is subscribed before the query: no event is missed between the two.

        async def page() -> Any:
            return await service.look(replace(query, after=after, last=False, limit=feed.PAGE), principal)

        async def chunks(behind: Any) -> AsyncGenerator[bytes, None]:
            nonlocal after
            try:
                yield b"retry: 1000\n\n"
                while behind:
                    for view in behind:
                        yield feed.event_message(view)
                    after = behind[-1]["sequence"]
                    if not await service.is_still_valid(principal):  # a slow reader may catch up for hours
                        return
                    behind = await page()
                async for chunk in stream.chunks(after):
                    if not await service.is_still_valid(principal):
                        return
                    yield chunk
            except TenureError as error:
                yield feed.error_event(for_caller(error, principal))
            finally:
                service.feed.unsubscribe(query.project, stream)

        try:
            return chunks(await page())
        except BaseException:
            service.feed.unsubscribe(query.project, stream)
            raise

    async def _news(self, request: Request) -> Response:
        check_scope(request.principal, request.fields["project"])
        wait = request.number("wait", 0.0, LONGEST_WAIT)
        mark = int(request.number("mark", 0, 2**62))
        tasks = check_list(request.parameters("task"), "task")
        feed = request.service.feed
        is_news = True
        if wait:
            news = feed.beyond_of(mark, wait, request.fields["project"], tasks) if tasks else feed.beyond(mark, wait)
            with self.service.metrics.waiting_request("news"):
                is_news = await request.while_there(news)
        return responses.of_value({"mark": max(0, feed.position) if is_news else mark})


def _location(request: Request, command: Command, outcome: Outcome) -> responses.Headers:
    """Where the row that a command created can be read."""
    if outcome.outcome != "CREATED":
        return ()
    path = (request.scope.get("raw_path") or request.scope["path"].encode()).decode("latin-1")
    path = request.scope.get(TENANT_PATH, "") + path
    if isinstance(command, Add) and outcome.task is not None:
        path = f"{path}/{quote(outcome.task['key'], safe='')}"
    elif isinstance(command, Plan) and outcome.tasks:
        path = f"{path}/{quote(outcome.tasks[0]['dag'], safe='')}"
    elif request.scope["method"] != "PUT":
        return ()
    return ((b"location", path.encode()),)


def _cursor(request: Request) -> int | None:
    """Where a stream starts: after the last event that its reader has; None: at the end of the log."""
    text = request.header(b"last-event-id") or request.parameter("after")
    if text is not None and not text.isdecimal():
        raise InvalidInput(f"Last-Event-ID must be the id of an event (got {text[:40]!r})")
    return None if text is None else int(text)
