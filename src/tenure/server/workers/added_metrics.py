"""The metrics of all workers as one page, whichever of them is asked.

Counters must never fall, or Prometheus takes it for a restart and counts everything once more. So each worker also
keeps in a file its last answer; the counters of one that died stay in the sum, as they were then.
"""

from __future__ import annotations

import asyncio
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from tenure.server.metric_definitions import METRICS, PER_PROCESS, SAME
from tenure.server.workers.peers import Peers, Sender

LIMIT = 2.0  # seconds for another worker's answer
ENDED = "counts-of-ended"
KEPT = 64  # names of ended workers that are remembered: a page may have read their file just before
NAME = "metrics"

_COUNTED = ("counter", "histogram")
# Gauges of a process; all others are added.
_LEAST = frozenset({"tenure_store_answer_age_seconds", "process_start_time_seconds", "process_max_fds"})
# The worker that was asked has just looked; another may have looked last during an outage that is over.
_OF_THE_ASKED = frozenset({"tenure_store_up"})


class Family(msgspec.Struct, array_like=True):
    """A metric with its series: name, labels and value of each."""

    name: str
    kind: str
    meaning: str
    samples: list[tuple[str, dict[str, str], float]]


class Ended(msgspec.Struct):
    """The counters of workers that have ended."""

    workers: list[str] = []
    families: list[Family] = []


class WorkerMetrics:
    def __init__(self, peers: Peers, registry: CollectorRegistry, folder: str) -> None:
        self._peers, self._registry, self._folder = peers, registry, Path(folder)
        self._id = worker_id(peers.number, os.getpid())
        peers.answers[NAME] = self._answer

    async def page(self) -> bytes:
        """The page for Prometheus."""
        own, *others = await asyncio.gather(
            asyncio.to_thread(self._counts),
            *(self._peers.ask_once(number, NAME, LIMIT) for number in self._peers.others),
        )
        return await asyncio.to_thread(self._added, own, [encoded for encoded in others if encoded is not None])

    async def _answer(self, _: object, send: Sender, __: asyncio.Event) -> None:
        await send(await asyncio.to_thread(self._counts))

    def _counts(self) -> bytes:
        """What this worker has counted, after it was kept."""
        encoded = msgspec.msgpack.encode((self._id, families_of(self._registry)))
        draft = self._folder / f"draft-{self._id}"
        draft.write_bytes(encoded)
        draft.replace(self._folder / f"counts-{self._id}")
        return encoded

    def _added(self, own: bytes, others: Sequence[bytes]) -> bytes:
        here = [_decode(encoded) for encoded in (own, *others)]
        answered = {id for id, _ in here}
        silent = dict(_decode(encoded) for encoded in self._kept() if encoded)
        ended = ended_in(self._folder)  # after the single files: one that was added meanwhile is named there
        silent = {id: found for id, found in silent.items() if id not in answered and id not in ended.workers}
        live = [found for _, found in here]
        return generate_latest(_Page(added(live, [*silent.values(), ended.families])))

    def _kept(self) -> Iterator[bytes]:
        for file in self._folder.glob("counts-[0-9]*"):
            with suppress(FileNotFoundError):
                yield file.read_bytes()


def worker_id(number: int, pid: int) -> str:
    return f"{number}-{pid}"


def fold(folder: str, id: str) -> None:
    """A worker has ended: add its file to those of others before it."""
    where = Path(folder)
    file = where / f"counts-{id}"
    try:
        _, last = _decode(file.read_bytes())
    except FileNotFoundError:
        return  # nobody has asked it
    before = ended_in(where)
    counted = added([], [before.families, last])
    draft = where / f"draft-{ENDED}"
    draft.write_bytes(msgspec.msgpack.encode(Ended([*before.workers, id][-KEPT:], counted)))
    draft.replace(where / ENDED)
    file.unlink()


def ended_in(folder: Path) -> Ended:
    try:
        return msgspec.msgpack.decode((folder / ENDED).read_bytes(), type=Ended)
    except FileNotFoundError:
        return Ended()


def families_of(registry: CollectorRegistry) -> list[Family]:
    return [
        Family(one.name, one.type, one.documentation, [(s.name, s.labels, s.value) for s in one.samples])
        for one in registry.collect()
    ]


def added(live: Sequence[Iterable[Family]], ended: Sequence[Iterable[Family]]) -> list[Family]:
    """One family for each name. The first of `live` is the worker that was asked: it has read the store."""
    found: dict[str, Family] = {}
    values: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for number, families in enumerate((*live, *ended)):
        is_live = number < len(live)
        for family in families:
            if not _counts(family, is_first=is_live and number == 0, is_live=is_live):
                continue
            found.setdefault(family.name, family)
            kept, join = values.setdefault(family.name, {}), _joined(family)
            for name, labels, value in family.samples:
                key = (name, tuple(sorted(labels.items())))
                kept[key] = join(kept[key], value) if key in kept else value
    return [
        Family(name, one.kind, one.meaning, [(s, dict(labels), v) for (s, labels), v in values[name].items()])
        for name, one in found.items()
    ]


def _counts(family: Family, *, is_first: bool, is_live: bool) -> bool:
    """Whether the family of this worker is part of the sum."""
    if _across(family) == SAME or family.name in _OF_THE_ASKED:
        return is_first
    return is_live or family.kind in _COUNTED


def _joined(family: Family) -> Callable[[float, float], float]:
    if family.kind in _COUNTED:
        return operator.add
    if family.name in _LEAST:
        return min
    return max if _across(family) == PER_PROCESS else operator.add


def _across(family: Family) -> str | None:
    known = METRICS.get(family.name) or METRICS.get(f"{family.name}_total")
    return known.across if known is not None else None


def _decode(encoded: bytes) -> tuple[str, list[Family]]:
    return msgspec.msgpack.decode(encoded, type=tuple[str, list[Family]])


class _Page(Collector):
    """As much of a registry as `generate_latest` uses."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.meaning, family.kind)
            for name, labels, value in family.samples:
                metric.add_sample(name, labels, value)
            yield metric
