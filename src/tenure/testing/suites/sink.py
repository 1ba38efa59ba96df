"""The suite of a sink's contract, against its real server.

class TestMine(SinkSuite):
    drops_repeats = False

    def open_sink(self): return Mine(URL)
    def received(self, family): ...  # by a consumer of your own
    def kill(self): ...
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise

import pytest

from tenure.sinks import names
from tenure.sinks.port import Message, Sink, SinkUnavailable

TIMEOUT = 10.0  # seconds: a sink that works is done long before
SHORT = 1.0
PATIENCE = 120.0  # seconds until a test gives up
PAGE = 500


def message(number: int, name: str = "evt.task.noted.v1", *, size: int = 300, sequence: int | None = None) -> Message:
    """The message of event `number`; a repeat of it is equal."""
    start = b'{"message_id":"m-%d","payload":"' % number
    return Message(
        id=f"m-{number}",
        name=name,
        body=start + b"x" * max(0, size - len(start) - 2) + b'"}',
        sequence=number + 1 if sequence is None else sequence,
        task=f"task-{number % 7}",
    )


def numbers(received: Sequence[Message]) -> list[int]:
    return [int(got.id.removeprefix("m-")) for got in received]


def firsts(received: Sequence[Message]) -> list[int]:
    """The numbers in the order in which each came first."""
    return list(dict.fromkeys(numbers(received)))


class SinkSuite:
    """Every test gets `sink`, open and empty. Its server is killed, restarted, frozen and wiped."""

    drops_repeats = True  # what is sent again soon with the same id is not delivered twice

    def open_sink(self) -> Sink:
        """A sink of this test's server, each time a new one."""
        raise NotImplementedError

    def received(self, family: str) -> list[Message]:
        """All that a consumer of the family has got since the test began, in its order; id, name and body."""
        raise NotImplementedError

    def kill(self) -> None:
        """End the server without warning. What it has acknowledged survives."""
        raise NotImplementedError

    def restart(self) -> None:
        """Start it on its data, and return when it serves."""
        raise NotImplementedError

    def wipe(self) -> None:
        """Kill it and start it without its data."""
        raise NotImplementedError

    def freeze(self) -> None:
        """Keep its process from running; connections stay open."""
        raise NotImplementedError

    def thaw(self) -> None:
        raise NotImplementedError

    @pytest.fixture
    def sink(self) -> Iterator[Sink]:
        sink = self.open_sink()
        yield sink
        sink.close()

    # --- sending ---

    def test_messages_arrive_whole_and_in_order(self, sink: Sink) -> None:
        sent = [message(number, size=300 + number) for number in range(300)]
        assert self.send_all(sink, sent, page=100) == 300
        received = self.received(names.EVENTS)
        assert [(got.id, got.name, got.body) for got in received] == [(m.id, m.name, m.body) for m in sent]

    def test_each_family_goes_to_its_own_consumers(self, sink: Sink) -> None:
        named = ("evt.task.ready.v1", names.EXECUTE, "evt.task.dead_lettered.v1", "dlq.task.a~20b.v1")
        sent = [message(number, name) for number, name in enumerate(named)]
        assert sink.send(sent, TIMEOUT) == 4
        for family in names.FAMILIES:
            expected = [m.id for m in sent if names.family_of(m.name) == family]
            assert [got.id for got in self.received(family)] == expected

    def test_nothing_is_sent_for_an_empty_page(self, sink: Sink) -> None:
        assert sink.send([], TIMEOUT) == 0
        assert self.received(names.EVENTS) == []

    def test_a_message_of_the_largest_size_is_delivered(self, sink: Sink) -> None:
        sent = [message(0), message(1, size=256 * 1024), message(2)]
        assert sink.send(sent, TIMEOUT) == 3
        assert [got.body for got in self.received(names.EVENTS)] == [m.body for m in sent]

    def test_ten_thousand_events_are_all_delivered_in_order(self, sink: Sink) -> None:
        assert self.send_all(sink, [message(number) for number in range(10_000)]) == 10_000
        assert numbers(self.received(names.EVENTS)) == list(range(10_000))

    def test_messages_that_no_event_caused_are_delivered(self, sink: Sink) -> None:
        sent = [message(number, names.EXECUTE, sequence=0) for number in range(3)]
        assert sink.send(sent, TIMEOUT) == 3
        assert sink.send([message(3, names.EXECUTE, sequence=7)], TIMEOUT) == 1
        assert firsts(self.received(names.COMMANDS)) == [0, 1, 2, 3]

    # --- at least once ---

    def test_a_page_that_is_sent_again_after_a_restart_has_the_same_ids(self, sink: Sink) -> None:
        """The relay ended between the acknowledgement and its cursor."""
        page = [message(number) for number in range(50)]
        assert sink.send(page, TIMEOUT) == 50
        sink.close()
        again = self.open_sink()
        try:
            assert again.send(page, TIMEOUT) == 50
        finally:
            again.close()
        assert numbers(self.received(names.EVENTS)) == list(range(50)) * (1 if self.drops_repeats else 2)

    def test_a_page_that_was_sent_in_part_is_completed(self, sink: Sink) -> None:
        assert sink.send([message(number) for number in range(10)], TIMEOUT) == 10
        assert sink.send([message(number) for number in range(5, 15)], TIMEOUT) == 10
        received = self.received(names.EVENTS)
        assert firsts(received) == list(range(15))
        assert len(received) == (15 if self.drops_repeats else 20)

    def test_a_repeat_of_one_family_does_not_hide_another(self, sink: Sink) -> None:
        """One event becomes several messages of the same sequence; the page was cut between them."""
        event, short, letter, command = (
            message(1, name, sequence=5)
            for name in ("evt.task.dead_lettered.v1", "evt.task.dead.v1", "dlq.task.code.v1", names.EXECUTE)
        )
        short = Message(id="m-2", name=short.name, body=short.body, sequence=5)
        assert sink.send([event], TIMEOUT) == 1
        assert sink.send([event, short, letter, command], TIMEOUT) == 4
        assert firsts(self.received(names.EVENTS)) == [1, 2]
        assert len(self.received(names.DEAD_LETTERS)) == len(self.received(names.COMMANDS)) == 1

    def test_events_of_a_restored_log_are_delivered_although_their_sequences_were_used(self, sink: Sink) -> None:
        """A store that came back from a backup counts on from an earlier sequence, with new events."""
        assert sink.send([message(number) for number in range(20)], TIMEOUT) == 20
        fresh = [message(number, sequence=number - 90) for number in range(100, 105)]
        assert sink.send(fresh, TIMEOUT) == 5
        assert firsts(self.received(names.EVENTS)) == [*range(20), *range(100, 105)]

    def test_nothing_is_lost_when_the_server_is_killed_again_and_again(self, sink: Sink) -> None:
        sent = [message(number) for number in range(6_000)]
        acknowledged, kills = 0, 0
        killer: threading.Thread | None = None
        while acknowledged < len(sent):
            if kills < 2 and acknowledged >= 2_000 * (kills + 1):
                kills += 1
                killer = threading.Thread(target=self.kill)
                killer.start()
            try:
                acknowledged += sink.send(sent[acknowledged : acknowledged + PAGE], TIMEOUT)
            except SinkUnavailable:
                assert killer is not None, "it was not killed"
                killer.join(PATIENCE)
                self.restart()
                killer = None
        if killer is not None:
            killer.join(PATIENCE)
            self.restart()
        received = self.received(names.EVENTS)
        assert kills == 2
        assert sorted(set(numbers(received))) == list(range(6_000))
        assert firsts(received) == list(range(6_000))
        if self.drops_repeats:
            assert len(received) == 6_000

    # --- away ---

    def test_a_server_that_is_down_is_unavailable_and_then_works_again(self, sink: Sink) -> None:
        other = self.open_sink()
        assert sink.send([message(0)], TIMEOUT) == other.send([message(0)], TIMEOUT) == 1
        self.kill()
        try:
            for ask in (lambda: sink.send([message(1)], SHORT), sink.identity):
                with pytest.raises(SinkUnavailable) as raised:
                    ask()
                assert "@" not in raised.value.message, "a URL with its password"
            closing = threading.Thread(target=other.close, daemon=True)
            closing.start()
            closing.join(PATIENCE)
            assert not closing.is_alive(), "closing waits for a server that is down"
        finally:
            self.restart()
        assert self._patiently(lambda: sink.send([message(1)], TIMEOUT)) == 1
        assert firsts(self.received(names.EVENTS)) == [0, 1]

    def test_a_server_that_hangs_is_unavailable_after_the_timeout(self, sink: Sink) -> None:
        assert sink.send([message(0)], TIMEOUT) == 1
        outcome: list[object] = []

        def send() -> None:
            try:
                outcome.append(sink.send([message(1)], SHORT))
            except SinkUnavailable as error:
                outcome.append(error)

        self.freeze()
        try:
            thread = threading.Thread(target=send, daemon=True)
            thread.start()
            thread.join(PATIENCE)
        finally:
            self.thaw()
        assert [type(one) for one in outcome] == [SinkUnavailable]
        assert self._patiently(lambda: sink.send([message(1)], TIMEOUT)) == 1
        assert firsts(self.received(names.EVENTS)) == [0, 1]

    # --- identity ---

    def test_after_a_restart_identity_and_acknowledged_messages_are_the_same(self, sink: Sink) -> None:
        identity = sink.identity()
        other = self.open_sink()
        try:
            assert other.identity() == identity
        finally:
            other.close()
        acknowledged = self.send_all(sink, [message(number) for number in range(1_000)])
        assert sink.identity() == identity
        self.kill()
        self.restart()
        assert self._patiently(sink.identity) == identity
        assert numbers(self.received(names.EVENTS)) == list(range(acknowledged))

    def test_a_server_that_was_wiped_takes_messages_and_has_another_identity(self, sink: Sink) -> None:
        identity = sink.identity()
        assert sink.send([message(0), message(1, names.EXECUTE)], TIMEOUT) == 2
        self.wipe()
        page = [message(2), message(3, names.EXECUTE)]
        assert self._patiently(lambda: sink.send(page, TIMEOUT)) == 2
        assert (numbers(self.received(names.EVENTS))[-1], numbers(self.received(names.COMMANDS))[-1]) == (2, 3)
        assert sink.identity() != identity

    # --- the rest ---

    def test_the_lag_is_unknown_or_a_number(self, sink: Sink) -> None:
        lag = sink.lag()
        assert lag is None or lag >= 0

    def test_a_sink_that_is_closed_lets_go_and_keeps_what_it_has_sent(self, sink: Sink) -> None:
        threads = threading.active_count()
        other = self.open_sink()
        assert other.send([message(0), message(1)], TIMEOUT) == 2
        other.close()
        other.close()
        assert threading.active_count() == threads
        assert numbers(self.received(names.EVENTS)) == [0, 1]

    # --- parts of the tests ---

    def send_all(self, sink: Sink, messages: Sequence[Message], page: int = PAGE) -> int:
        ends = [*range(0, len(messages), page), len(messages)]
        return sum(sink.send(messages[start:end], TIMEOUT) for start, end in pairwise(ends))

    def _patiently(self, ask: Callable[[], object]) -> object:
        """Ask again, as a relay does: the connection that was lost, and a server that is not quite there."""
        for _ in range(20):
            with suppress(SinkUnavailable):
                return ask()
        return ask()
