"""That no secret leaves its seal: every value that a scene seals is searched for at the end of its test.

Searched are all rows and events, archived documents and large values unpacked, every answer and error that a command
got, and what queries answer. The one place where a secret may stand is an answer made for it: `secrets` of a claim, and
`secret` of a webhook or trigger that was just made.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import archive
from tenure.core import queries as q
from tenure.core.commands import Principal
from tenure.core.decoders import defaults_of
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Archived, Body, Dag, DataKey, Schedule, Session, Task, Trigger, Webhook
from tenure.core.sealed import SEALED, Place, Sealed
from tenure.core.task_secrets import SEARCHED, spellings
from tenure.engine.reads.query_table import read_query

if TYPE_CHECKING:
    from tenure.core.sealed import Sealer
    from tenure.testing.factories import Scene


MOST = 20  # rows of a kind that queries are tried on
ASKS = Principal(role="owner", user="olaf")
_NAMED: dict[str, type[Any]] = {
    "task": Task, "agent": Agent, "session": Session, "dag": Dag, "schedule": Schedule, "trigger": Trigger,
    "webhook": Webhook,
}  # fmt: skip


class WatchedSealer:
    """A cipher that remembers what it was given to seal."""

    def __init__(self, inner: Sealer) -> None:
        self._inner = inner
        self.plain: set[bytes] = set()

    def seal(self, place: Place, value: bytes, key: DataKey, digest_key: DataKey, nonce: bytes) -> Sealed:
        self.plain.add(value)
        return self._inner.seal(place, value, key, digest_key, nonce)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def plain_secrets(scene: Scene) -> list[str]:
    """Where a secret of the scene stands in the clear."""
    if scene.sealer is None or not scene.sealer.plain:
        return []
    wanted = spelled(scene.sealer.plain)
    found = []
    for place, text in _written(scene):
        found += [f"{place}: {secret!r}" for secret in wanted if secret in text]
    return found + [f"{place}: a sealed value" for place, text in _shown(scene) if SEALED in text]


def spelled(secrets: Iterable[bytes]) -> set[str]:
    """Each secret as it could stand in JSON: as text in its spellings, as bytes in base64 and hex."""
    found: set[str] = set()
    for secret in secrets:
        found |= {b64encode(secret).decode(), secret.hex()}
        try:
            found |= spellings(secret.decode())
        except UnicodeDecodeError:
            continue
    return {text for text in found if len(text) >= SEARCHED}


def _written(scene: Scene) -> Iterator[tuple[str, str]]:
    for table, rows in scene.tables().items():
        for row in rows:
            yield f"{table} {row.id}", text_of(row)
            if isinstance(row, Archived):
                yield f"document of {row.id}", archive.inflated(row.document).decode()
            elif isinstance(row, Body):
                yield f"body {row.id}", row.content.decode()
    yield from _shown(scene)


def _shown(scene: Scene) -> Iterator[tuple[str, str]]:
    """What callers saw, and what they see when they look now."""
    for answer in scene.answers:
        yield "answer", answer_text(answer)
    for query in queries_on(scene):
        try:
            view = text_of(read_query(scene.engine, query, ASKS))
        except TenureError as error:
            view = str(error)
        yield f"query {type(query).__name__}", view


def queries_on(scene: Scene) -> Iterator[q.Query]:
    """Each query that exists, on each row that it may name, now and where it can also as of the last event."""
    rows = {field: [row.id for row in scene.stored_rows(kind)][:MOST] for field, kind in _NAMED.items()}
    rows["task"] += [row.id for row in scene.stored_rows(Archived)][:MOST]
    last = max((event.sequence for event in scene.events()), default=0)
    for kind in q.ALL:
        needed = [name for name in kind.__struct_fields__ if name != "project" and name not in defaults_of(kind)]
        if not set(needed) <= rows.keys():
            continue
        for named in product(*(rows[name] for name in needed)):
            asked: dict[str, Any] = {"project": "p", **dict(zip(needed, named, strict=True))}
            yield kind(**asked)
            if "at" in kind.__struct_fields__ and last:
                yield kind(**asked | {"at": str(last)})


def answer_text(answer: Outcome | TenureError) -> str:
    if isinstance(answer, TenureError):
        return str(answer)
    fields: dict[str, Any] = msgspec.to_builtins(answer)
    for part in (fields, *fields.get("claims", ())):
        part.pop("secrets", None)
        part.pop("secret", None)
    return text_of(fields)


def text_of(value: Any) -> str:
    """As JSON, without escapes."""
    return msgspec.json.encode(value, enc_hook=str).decode()
