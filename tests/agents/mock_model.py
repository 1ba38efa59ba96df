"""A model on loopback that plays a script: no network, no keys, the same steps for every agent CLI.

The place in the script is the number of tool results in the request, so a request that is sent again gets the same
answer, and two runs against one model do not disturb each other. A request that offers no tools is one of the
housekeeping questions that some CLIs ask (a title, a summary): it gets a word and does not move the script.
"""

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

from tests.agents.dialects import anthropic, chat, gemini, responses
from tests.agents.script import Answer, Asked, NoSuchTool, Refuse, Say, Step, Usage, Wait, chosen_call

DIALECTS: tuple[tuple[re.Pattern[str], ModuleType], ...] = (
    (re.compile(r"/messages$"), anthropic),
    (re.compile(r"/responses$"), responses),
    (re.compile(r"/chat/completions$"), chat),
    (re.compile(r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent)$"), gemini),
)
HOUSEKEEPING = Usage(fresh=3, cached=0, output=1)


@dataclass
class MockModel:
    """What was asked, and what is answered. `url` is known once it is served."""

    script: Sequence[Step]
    usage: Usage = field(default_factory=Usage)
    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    housekeeping: list[Asked] = field(default_factory=list)
    strays: list[str] = field(default_factory=list)
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    is_waiting: threading.Event = field(default_factory=threading.Event)  # an agent has come to a Wait
    is_over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Answer | Refuse | Wait:
        with self._lock:
            if not asked.tools:
                self.housekeeping.append(asked)
                return Answer(f"side{len(self.housekeeping)}", HOUSEKEEPING, text="ok")
            self.asked.append(asked)
            number = len(asked.results)
            step = self.script[number] if number < len(self.script) else Say("The script is over.")
            if isinstance(step, Refuse):
                if step.times is None or self.refused < step.times:
                    self.refused += 1
                    return step
                step = Say("It goes again.")
        if isinstance(step, Wait):
            return step
        id = f"{number}x{len(self.asked)}"
        if isinstance(step, Say):
            return Answer(id, self.usage, text=step.text)
        return Answer(id, self.usage, call=chosen_call(step, asked, number))

    @property
    def last(self) -> Asked:
        return self.asked[-1]


@contextmanager
def serve(script: Iterable[Step], usage: Usage | None = None, port: int = 0) -> Iterator[MockModel]:
    """A model that answers at `model.url` until the block ends; its faults fail the block."""
    model = MockModel(list(script), usage or Usage())
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(model))
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="mock-model")
    thread.start()
    try:
        yield model
    finally:
        model.is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()
    assert not model.faults, "\n".join(model.faults)


def _handler(model: MockModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._stray()

        do_HEAD = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815 - the names are the standard library's

        def do_POST(self) -> None:
            path = self.path.partition("?")[0]
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            for pattern, dialect in DIALECTS:
                if found := pattern.search(path):
                    self._play(dialect, json.loads(raw), found.groupdict())
                    return
            if path.endswith(("/count_tokens", ":countTokens")):
                self._send(200, {"input_tokens": 1, "totalTokens": 1})
                return
            self._stray()

        def _play(self, dialect: ModuleType, body: Mapping[str, Any], in_path: Mapping[str, str]) -> None:
            asked: Asked = dialect.read(body)
            if in_path:  # this vendor says the model and the way of answering in the address
                asked = replace(asked, model=in_path["model"], is_stream=in_path["verb"].startswith("stream"))
            try:
                answer = model.answer(asked)
            except NoSuchTool as missing:
                model.faults.append(str(missing))
                self._send(400, dialect.error(400))
                return
            if isinstance(answer, Wait):
                model.is_waiting.set()
                model.is_over.wait()
                self.close_connection = True
            elif isinstance(answer, Refuse):
                wait = {} if answer.retry_after is None else {"Retry-After": str(answer.retry_after)}
                self._send(answer.status, dialect.error(answer.status), wait)
            elif asked.is_stream:
                self._stream(dialect.stream(answer, asked), is_marked=dialect is chat)
            else:
                self._send(200, dialect.whole(answer, asked))

        def _stream(self, events: Iterable[tuple[str, Mapping[str, Any]]], *, is_marked: bool) -> None:
            lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
            if is_marked:
                lines.append("data: [DONE]\n\n")
            self._write(200, "text/event-stream", "".join(lines).encode())

        def _send(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
            self._write(status, "application/json", json.dumps(body).encode(), headers)

        def _write(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _stray(self) -> None:
            model.strays.append(f"{self.command} {self.path}")
            self._send(404, {"error": {"message": "the mock model has no such page", "code": 404}})

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
