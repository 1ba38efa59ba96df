"""The suite of a source's contract, against its real server.

class TestMine(SourceSuite):
    def open_sink(self): return Mine(URL)
    def open_source(self, subscription): return MineSource(URL, subscription)
    def kill(self): ...
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tenure.sinks import names
from tenure.sinks.port import Received, Sink, SinkUnavailable, Source
from tenure.sinks.subscriptions import Subscription
from tenure.testing.suites.sink import PATIENCE, TIMEOUT, message

WAIT = 10.0  # seconds: longer than any delivery takes
SHORT = 0.3


class SourceSuite:
    """Every test gets `sink` and `source`, open and empty, of a pool with one slot."""

    def open_sink(self) -> Sink:
        raise NotImplementedError

    def open_source(self, subscription: Subscription) -> Source:
        """A source of this test's server, each time a new one."""
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError

    def restart(self) -> None:
        raise NotImplementedError

    def wipe(self) -> None:
        raise NotImplementedError

    def hasten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Have messages that are not acknowledged delivered again after a second, instead of after thirty."""
        raise NotImplementedError

    @pytest.fixture
    def sink(self) -> Iterator[Sink]:
        sink = self.open_sink()
        yield sink
        sink.close()

    @pytest.fixture
    def source(self, sink: Sink) -> Iterator[Source]:
        sink.identity()
        source = self.open_source(Subscription("pool", size=4))
        assert source.fetch(1, SHORT) == []
        yield source
        source.close()

    def test_commands_are_received_in_order_and_whole(self, sink: Sink, source: Source) -> None:
        sent = [message(number, names.EXECUTE, size=300 + number) for number in range(4)]
        assert sink.send(sent, TIMEOUT) == 4
        received = fetched(source, 4)
        assert [(got.id, got.name, got.body) for got in received] == [(m.id, m.name, m.body) for m in sent]
        assert [got.tries for got in received] == [1] * 4

    def test_no_more_are_fetched_than_asked_for_and_none_after_the_timeout(self, sink: Sink, source: Source) -> None:
        assert sink.send([message(number, names.EXECUTE) for number in range(3)], TIMEOUT) == 3
        (first,) = source.fetch(1, WAIT)
        source.acknowledge(first)
        for got in fetched(source, 2):
            source.acknowledge(got)
        assert source.fetch(1, SHORT) == []

    def test_one_that_waits_gets_a_message_as_soon_as_it_is_sent(self, sink: Sink, source: Source) -> None:
        found: list[Received] = []
        waiting = threading.Thread(target=lambda: found.extend(source.fetch(5, PATIENCE)), daemon=True)
        waiting.start()
        assert sink.send([message(1, names.EXECUTE)], TIMEOUT) == 1
        waiting.join(PATIENCE / 2)
        assert [got.id for got in found] == ["m-1"]

    def test_events_and_commands_to_others_are_not_received(self, sink: Sink, source: Source) -> None:
        others = (names.agent_command_name("coder", "review"), names.mailbox_name("ann"), "evt.task.ready.v1")
        assert sink.send([message(number, name) for number, name in enumerate(others)], TIMEOUT) == 3
        assert source.fetch(5, SHORT) == []

    def test_a_worker_receives_commands_to_its_type_and_its_own_mail(self, sink: Sink) -> None:
        sink.identity()
        source = self.open_source(Subscription("pool", 4, agent_type="co der", agent="ann"))
        try:
            assert source.fetch(1, SHORT) == []
            named = (names.agent_command_name("co der", "review"), names.mailbox_name("ann"), names.EXECUTE)
            assert sink.send([message(number, name) for number, name in enumerate(named)], TIMEOUT) == 3
            received = fetched(source, 3)
            assert sorted(got.name for got in received) == sorted(named)
            for got in received:
                source.acknowledge(got)
        finally:
            source.close()

    def test_a_worker_with_commands_may_join_a_pool_that_had_none(self, sink: Sink, source: Source) -> None:
        other = self.open_source(Subscription("pool", 4, agent_type="coder"))
        try:
            assert other.fetch(1, SHORT) == []
            name = names.agent_command_name("coder", "review")
            assert sink.send([message(1, name)], TIMEOUT) == 1
            assert [got.name for got in fetched(other, 1)] == [name]
            assert source.fetch(1, SHORT) == []
        finally:
            other.close()

    def test_workers_of_a_pool_share_what_comes(self, sink: Sink, source: Source) -> None:
        other = self.open_source(Subscription("pool", size=4))
        try:
            assert other.fetch(1, SHORT) == []
            ids: list[str] = []
            for number in range(20):
                assert sink.send([message(number, names.EXECUTE)], TIMEOUT) == 1
            for _ in range(40):
                for one in (source, other):
                    for got in one.fetch(2, 0.05):
                        ids.append(got.id)
                        one.acknowledge(got)
                if len(ids) >= 20:
                    break
            assert sorted(ids) == sorted(f"m-{number}" for number in range(20))
        finally:
            other.close()

    def test_what_was_not_acknowledged_goes_to_another_when_its_worker_closes(self, sink: Sink) -> None:
        assert sink.send([message(number, names.EXECUTE) for number in range(2)], TIMEOUT) == 2
        first = self.open_source(Subscription("pool", size=4))
        received = fetched(first, 2)
        first.acknowledge(received[0])
        first.close()
        second = self.open_source(Subscription("pool", size=4))
        try:
            (again,) = fetched(second, 1)
            assert again.id == received[1].id
            assert again.tries >= 2
        finally:
            second.close()

    def test_a_rejected_message_comes_again_and_is_counted(self, sink: Sink, source: Source) -> None:
        assert sink.send([message(1, names.EXECUTE)], TIMEOUT) == 1
        tries = []
        for _ in range(3):
            (got,) = fetched(source, 1)
            tries.append(got.tries)
            source.reject(got, 0.1)
        assert tries == [1, 2, 3]

    def test_a_message_that_is_rejected_with_a_delay_does_not_hold_the_next_up(
        self, sink: Sink, source: Source
    ) -> None:
        assert sink.send([message(number, names.EXECUTE) for number in range(6)], TIMEOUT) == 6
        for _ in range(5):
            (got,) = fetched(source, 1)
            source.reject(got, 25.0)
        (last,) = fetched(source, 1)
        assert last.id == "m-5"

    def test_a_message_of_a_worker_that_is_gone_comes_again(self, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
        """It neither acknowledges nor closes."""
        self.hasten(monkeypatch)
        sink.identity()
        gone, other = (self.open_source(Subscription("pool", size=4)) for _ in range(2))
        try:
            assert gone.fetch(1, SHORT) == []
            assert sink.send([message(1, names.EXECUTE)], TIMEOUT) == 1
            (lost,) = fetched(gone, 1)
            self.vanish(gone)
            (got,) = fetched(other, 1)
            assert (lost.id, got.id) == ("m-1", "m-1")
            other.acknowledge(got)
        finally:
            gone.close()
            other.close()

    def vanish(self, source: Source) -> None:
        """What a broker sees of a worker that was killed; nothing where it goes by time alone."""

    def test_a_message_that_is_kept_does_not_come_again(self, sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hasten(monkeypatch)
        sink.identity()
        busy, other = (self.open_source(Subscription("pool", size=4)) for _ in range(2))
        try:
            assert busy.fetch(1, SHORT) == []
            assert sink.send([message(1, names.EXECUTE)], TIMEOUT) == 1
            (got,) = fetched(busy, 1)
            for _ in range(6):
                busy.keep(got)
                assert other.fetch(1, SHORT) == []
            busy.acknowledge(got)
        finally:
            busy.close()
            other.close()

    def test_a_server_that_is_down_is_unavailable_and_then_works_again(self, sink: Sink, source: Source) -> None:
        assert sink.send([message(0, names.EXECUTE)], TIMEOUT) == 1
        (got,) = fetched(source, 1)
        source.acknowledge(got)
        self.kill()
        try:
            with pytest.raises(SinkUnavailable) as raised:
                source.fetch(1, WAIT)
            assert "@" not in raised.value.message
        finally:
            self.restart()
        patiently(lambda: sink.send([message(1, names.EXECUTE)], TIMEOUT))
        (got,) = fetched(source, 1)
        if got.id == "m-0":  # the server was killed before it had stored the acknowledgement
            source.acknowledge(got)
            (got,) = fetched(source, 1)
        assert got.id == "m-1"

    def test_a_server_that_was_wiped_delivers_what_is_sent_next(self, sink: Sink, source: Source) -> None:
        self.wipe()
        patiently(sink.identity)
        with suppress(SinkUnavailable):
            source.fetch(1, SHORT)
        assert sink.send([message(1, names.EXECUTE)], TIMEOUT) == 1
        assert [got.id for got in fetched(source, 1)] == ["m-1"]


def fetched(source: Source, count: int) -> list[Received]:
    """Exactly so many, in as many calls as it takes."""
    found: list[Received] = []
    until = time.monotonic() + 2 * WAIT
    while len(found) < count and time.monotonic() < until:
        with suppress(SinkUnavailable):  # the connection that was lost
            found += source.fetch(count - len(found), WAIT)
    assert len(found) == count
    return found


def patiently(ask: Callable[[], object]) -> object:
    for _ in range(20):
        with suppress(SinkUnavailable):
            return ask()
    return ask()
