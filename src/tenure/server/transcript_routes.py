"""`/api/v1/projects/{project}/tasks/{task}/transcript`: what an agent said and did, also while it works.

The transcript of an agent on this machine is a file beside the store while the agent runs, and an artifact of its claim
afterwards. A reader repeats the request with `next` of the answer before, and gets only new lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tenure.agents.transcript_text import readable
from tenure.client.routes import PREFIX, TRANSCRIPT
from tenure.core import artifacts, lifecycle, limits
from tenure.core.commands import Principal
from tenure.core.errors import NotFound
from tenure.core.queries import States
from tenure.core.redaction import without_secrets
from tenure.core.tenant_records import HOME
from tenure.engine import Engine
from tenure.engine.artifacts import artifact_verbs
from tenure.engine.reads.query_table import read_query
from tenure.server import responses
from tenure.server.app import Endpoint
from tenure.server.requests import Request
from tenure.server.responses import Response
from tenure.user_state import transcripts_of

PIECE = limits.TRANSCRIPT_PIECE
LARGEST = limits.TRANSCRIPT_BYTES


def routes(folder: str | None) -> Iterator[Endpoint]:
    """`folder` has the transcripts of agents on this machine; None: only those kept as artifacts are found."""
    yield Endpoint("GET", PREFIX + TRANSCRIPT, _Transcripts(folder).get)


class _Transcripts:
    def __init__(self, folder: str | None) -> None:
        self._folder = None if folder is None else Path(folder).resolve()

    async def get(self, request: Request) -> Response:
        after = int(request.number("after", 0, LARGEST * 2))
        generation = int(request.number("generation", 0, 999_999_999))
        fields = request.fields
        asked = (request.service.engine, fields["project"], fields["task"], generation, after, request.principal)
        return responses.of_value(await request.service.read_in_thread(self._read, *asked))

    def _read(
        self, engine: Engine, project: str, name: str, generation: int, after: int, principal: Principal
    ) -> dict[str, Any]:
        (task,) = read_query(engine, States(project=project, tasks=(name,)), principal)
        if task["outcome"] != "OK":
            raise NotFound(f"no task {name[:80]!r} in project {project}")
        generation = generation or task["generation"]
        is_live = generation == task["generation"] and task["state"] in lifecycle.HELD
        # The files are of agents in the home tenant: other tenants have tasks with the same keys.
        piece = self._of_file(project, task["key"], generation, after) if engine.tenant == HOME else None
        if piece is None:
            piece = self._of_artifact(engine, project, task["id"], generation, after, principal)
        lines, read = piece
        return {
            "key": task["key"], "generation": generation, "is_live": is_live, "next": after + read,
            "lines": [line for text in lines if (line := _line(text)) is not None],
        }  # fmt: skip

    def _of_file(self, project: str, key: str, generation: int, after: int) -> tuple[list[bytes], int] | None:
        """The key is the store's own, never the request's; a link may only lead to another generation's file."""
        if self._folder is None or not generation:
            return None
        folder = Path(transcripts_of(str(self._folder), project, key))
        path = (folder / f"gen-{generation}.jsonl").resolve()
        if path.parent != folder:
            return None
        with suppress(OSError), path.open("rb") as file:
            file.seek(after)
            return _whole_lines(file.read(PIECE))
        return None

    @staticmethod
    def _of_artifact(
        engine: Engine, project: str, task: str, generation: int, after: int, principal: Principal
    ) -> tuple[list[bytes], int]:
        place = engine.context.artifacts
        try:
            found: Any = artifact_verbs.found(engine, project, task, artifacts.TRANSCRIPT, generation, principal)
            if place is None or after >= found["size"]:
                return [], 0
            end = min(found["size"], after + PIECE)
            return _whole_lines(b"".join(place(project).read(found["digest"], start=after, end=end)))
        except NotFound:
            return [], 0


def _whole_lines(piece: bytes) -> tuple[list[bytes], int]:
    """The complete lines of a piece, and their bytes. A line longer than a piece is left out."""
    whole, end, _ = piece.rpartition(b"\n")
    if not end:
        return [], len(piece) if len(piece) == PIECE else 0
    return whole.split(b"\n"), len(whole) + 1


def _line(text: bytes) -> dict[str, Any] | None:
    """For people: the texts and tool calls of the agent, errors, and the runner's notes.

    A runner of an earlier version wrote them with their secrets.
    """
    line = readable(text.decode(errors="replace"))
    if not line:
        return None
    entry = msgspec.json.decode(text)
    origin = entry["from"]
    return {"at": entry.get("at"), "from": origin, "text": without_secrets(line.removeprefix(f"[{origin}] "))}
