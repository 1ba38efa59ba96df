"""The application as it is, with an engine that has always just granted the same task."""

from __future__ import annotations

import sys

import msgspec

from tenure.client.caller import SystemRandom
from tenure.client.wire import from_plain
from tenure.config import read_settings
from tenure.core.commands import Command, DefineProject, Principal
from tenure.core.outcomes import Outcome
from tenure.engine import Engine
from tenure.server import assembly, serve
from tenure.server.service import Service
from tenure.stores.open_store import open_store


class Bare(Service):
    granted: Outcome

    async def do(self, command: Command, principal: Principal) -> Outcome:
        return self.granted


def main(port: int, answer: bytes) -> int:
    """Serve; `answer` is the answer to a real claim, so that the JSON is the same."""
    Bare.granted = msgspec.convert(from_plain(msgspec.json.decode(answer)), Outcome)
    assembly.Service = Bare  # type: ignore[misc]
    engine = Engine(open_store("memory://"), SystemRandom())
    engine.do(DefineProject(project="bench"))
    settings = read_settings("/", {}, {"serve.port": port, "serve.log_file": "/dev/null", "serve.auth": "open"})
    return serve.serve(engine, serve.Site(settings), lambda url, link: None)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.stdin.buffer.read()))
