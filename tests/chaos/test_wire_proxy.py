"""The proxy's reading of PostgreSQL's messages, and each of its faults on a real connection."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.core import commands
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.stores.postgres import connection
from tests.reliability.chaos import Proxy
from tests.reliability.chaos_worker import Steadfast
from tests.reliability.storm import found
from tests.reliability.storm_log import asked_in, log_path
from tests.reliability.storm_worker import NAMED
from tests.reliability.wire_proxy import Answers, Frames, Questions
from tests.servers.postgres import PostgresServer, url_of


def message(letter: bytes, rest: bytes) -> bytes:
    return letter + struct.pack("!I", len(rest) + 4) + rest


def done(tag: bytes) -> bytes:
    return message(b"C", tag + b"\0")


def over(status: bytes) -> bytes:
    return message(b"Z", status)


def test_messages_are_found_wherever_the_stream_is_cut() -> None:
    stream = message(b"T", b"abc") + message(b"C", b"") + message(b"D", b"x" * 300)
    for cut in range(len(stream)):
        frames = Frames()
        seen = [part[1:] for piece in (stream[:cut], stream[cut:]) for part in frames.feed(piece)]
        assert seen == [(b"T", b"abc"), (b"C", b""), (b"D", b"x" * 300)]


@pytest.mark.parametrize(
    ("turn", "is_commit"),
    [
        (done(b"COMMIT") + over(b"I"), True),
        (done(b"INSERT 0 1") + done(b"COMMIT") + over(b"I"), True),
        (done(b"INSERT 0 1") + over(b"I"), True),  # a transaction of one statement
        (done(b"ROLLBACK") + over(b"I"), False),
        (done(b"SELECT 1") + over(b"I"), False),
        (done(b"INSERT 0 1") + over(b"T"), False),
        (message(b"E", b"") + done(b"COMMIT") + over(b"I"), False),
        (done(b"COMMIT"), False),  # not over yet
    ],
)
def test_a_commit_is_known_by_its_answer(turn: bytes, is_commit: bool) -> None:
    answers = Answers()
    answers.feed(over(b"I"))
    answers.feed(turn)
    assert (answers.committed, answers.is_over) == (is_commit, turn.endswith((b"I", b"T")))


def test_a_commit_is_found_among_what_is_asked() -> None:
    questions = Questions()
    assert questions.feed(b"the first message has no letter") is None
    first = message(b"P", b"t1\0SELECT 1\0") + message(b"P", b"t2\0COMMIT\0\0\0")
    assert questions.feed(first) is None  # prepared, not run
    asked = message(b"B", b"\0t1\0")
    assert questions.feed(asked + message(b"B", b"\0t2\0") + message(b"S", b"")) == len(asked)
    assert questions.feed(message(b"Q", b"COMMIT\0")) == 0
    assert questions.feed(asked) is None


# --- on a connection -------------------------------------------------------------------------------------------


@pytest.fixture
def proxy(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """A store to storm, and the proxy before it."""
    monkeypatch.setattr(
        connection, "_SILENCE", connection._SILENCE
    )  # workers change it, each in its own process elsewhere
    direct = url_of(tmp_path)
    (tmp_path / NAMED).write_text(direct)
    found(tmp_path)
    with Proxy(postgres.port, 1) as proxy:
        through = direct.replace(f":{postgres.port}/", f":{proxy.port}/")
        (tmp_path / NAMED).write_text(f"{through}&sslmode=disable&gssencmode=disable")
        yield proxy


class Once(Steadfast):
    """Says what it was told first, and does not ask again."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 1, 0, "by hand")

    def told(self, command: commands.Command) -> Outcome | TenureError:
        (answer,) = self.engine.run((command,))
        return answer


FATES = {
    "cut after the commit": ("OUTCOME_UNKNOWN", True),
    "cut before the commit": ("OUTCOME_UNKNOWN", False),
    "delay": ("CREATED", True),
    "black hole": ("CREATED", True),
}


@pytest.mark.parametrize("fault", FATES)
def test_what_a_fault_does_to_a_command(proxy: Proxy, tmp_path: Path, fault: str) -> None:
    worker = Once(tmp_path)
    worker.ask(worker.addition())
    hits: list[bool] = []
    striking = threading.Thread(target=lambda: hits.append(proxy.strike(fault)))
    striking.start()
    while striking.is_alive():
        command = worker.addition()
        answer = worker.told(command)
        if hits or isinstance(answer, TenureError):
            break
    striking.join()
    assert hits == [True]
    told, is_done = FATES[fault]
    assert (answer.code if isinstance(answer, TenureError) else answer.outcome) == told
    again = worker.told(command)
    assert isinstance(again, Outcome)
    assert again.again == is_done
    worker.close()


def test_a_worker_asks_again_until_it_is_told(proxy: Proxy, tmp_path: Path) -> None:
    worker = Steadfast(tmp_path, 1, 0, "by hand")
    worker.ask(worker.addition())
    striking = threading.Thread(target=proxy.strike, args=("cut after the commit",))
    striking.start()
    while striking.is_alive():
        worker.ask(worker.addition())
    worker.close()
    asked = asked_in(log_path(tmp_path, 1, 0))
    assert [a.answer["outcome"] for a in asked if a.answer] == ["CREATED"] * len(asked)
    assert [(a.unknown, (a.answer or {})["again"]) for a in asked if a.unknown] == [(1, True)]


def test_a_fault_that_finds_nothing_to_hit_says_so(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.reliability.chaos.SOON", 0.05)
    assert proxy.strike("reset") is False
