"""The signatures of results, as the log has them: each is checked against the text that is made from the events.

The event of a signed result has the result and its signature. The epoch is the claim's, and the artifacts are those
that the claim has put before; both are in earlier events of the task.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from tenure.core.events import Event
from tenure.core.ids import parse_key
from tenure.core.signed_results import message, weakness_of
from tenure.core.task_records import REF, is_reference

Verify = Callable[[str, str, bytes], bool]


class _Signed(NamedTuple):
    event: Event
    result: dict[str, Any]
    signature: dict[str, Any]


class SignedResults:
    def __init__(self, tenant: str, project: str, is_signed: Verify | None) -> None:
        self._tenant, self._project, self._is_signed = tenant, project, is_signed
        self.wanted: set[str] = set()  # names of large values that a signature covers
        self.bodies: dict[str, bytes] = {}  # those of them that were found
        self._signed: list[_Signed] = []
        self._epochs: dict[str, str] = {}  # claim → its epoch
        self._artifacts: dict[str, tuple[str, str]] = {}  # artifact → its name and digest

    def take(self, event: Event) -> None:
        if self._is_signed is None:
            return
        rows: dict[str, dict[str, Any]] = {}
        for table, id, fields in event.patch:
            if fields is None:
                continue
            if table == "claim" and "epoch" in fields:
                self._epochs[id] = fields["epoch"]
            elif table == "artifact" and "digest" in fields:
                self._artifacts[id] = (str(fields.get("name")), str(fields["digest"]))
            elif table in ("result", "signature"):
                rows[table] = fields
        if "signature" in rows and event.kind != "archive.returned":
            result = rows.get("result", {})
            self._signed.append(_Signed(event, result, rows["signature"]))
            data: Any = result.get("data")
            if is_reference(data):
                self.wanted.add(str(data[REF]))

    def check(self, find: Callable[[str], None]) -> int:
        """Check each signature; `find` gets the faults. Returns how many were checked."""
        checked = 0
        for one in self._signed:
            covered = self._covered(one)
            key, value = str(one.signature.get("public_key")), str(one.signature.get("value"))
            if covered is None:
                continue  # its data is in the archive alone, and that is gone
            assert self._is_signed is not None
            checked += 1
            weakness = weakness_of(key)
            if weakness:
                find(f"event {one.event.sequence}: the signature of {one.event.key} proves nothing: its key {weakness}")
            elif not self._is_signed(key, value, covered):
                find(
                    f"event {one.event.sequence}: the signature of {one.event.key} is not that of its key over "
                    "this result"
                )
        return checked

    def _covered(self, one: _Signed) -> bytes | None:
        """The text that must be signed; None where its data is gone."""
        result, signature = one.result, one.signature
        generation, key = signature.get("generation"), parse_key(one.event.key or "")
        data: Any = result.get("data")
        if is_reference(data):
            body = self.bodies.get(str(data[REF]))
            if body is None:
                return None
            data = msgspec.json.decode(body)
        return message(
            tenant=self._tenant, project=self._project, task=key.ref if key is not None else "",
            generation=generation if isinstance(generation, int) else 0,
            epoch=self._epochs.get(f"{signature.get('task')}@{generation}", ""), data=data,
            summary=result.get("summary", ""),
            artifacts=dict(self._artifacts.get(id, (id, "")) for id in result.get("artifacts", ())),
            request_id=signature.get("request_id"),
        )  # fmt: skip
