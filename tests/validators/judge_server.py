"""A model on loopback that speaks as OpenAI's and as Anthropic's endpoint do, and says what a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple


class Asked(NamedTuple):
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """All that the model reads."""
        system = self.body.get("system", "")
        return "\n".join([system, *(message["content"] for message in self.body["messages"])])


class Raw(NamedTuple):
    """An answer as it goes over the wire."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = MappingProxyType({})


@dataclass
class JudgeServer:
    """`says` is asked with each prompt: a text is put into the dialect's own shape."""

    says: Callable[[str], str | Raw]
    url: str = ""
    asked: list[Asked] = field(default_factory=list)

    def answer(self, asked: Asked) -> Raw:
        self.asked.append(asked)
        said = self.says(asked.prompt)
        if isinstance(said, Raw):
            return said
        if asked.path.endswith("/v1/messages"):
            body: dict[str, Any] = {
                "model": asked.body["model"], "content": [{"type": "text", "text": said}], "stop_reason": "end_turn",
                "usage": {"input_tokens": 90, "cache_read_input_tokens": 10, "output_tokens": 7},
            }  # fmt: skip
        else:
            body = {
                "model": asked.body["model"], "choices": [{"message": {"role": "assistant", "content": said}}],
                "usage": {
                    "prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 10},
                },
            }  # fmt: skip
        return Raw(200, json.dumps(body).encode(), {"content-type": "application/json"})


@contextmanager
def judge_server(says: Callable[[str], str | Raw]) -> Iterator[JudgeServer]:
    server = JudgeServer(says)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            said = server.answer(Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(said.status)
            for name, value in {"content-length": str(len(said.body)), **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()
