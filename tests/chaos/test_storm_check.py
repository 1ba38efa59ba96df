"""The check after a storm must find what it is there to find: here the damage is done by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tenure.core import commands
from tenure.core.errors import OutcomeUnknown, StoreUnavailable
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tests.reliability.storm import found
from tests.reliability.storm_check import verdict
from tests.reliability.storm_log import GAVE_UP, Log, asked_in, estate_of, log_path
from tests.reliability.storm_worker import PROJECT, Worker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store in which one worker has completed two tasks, was refused once, and has left a third task ready."""
    found(tmp_path)
    worker = Worker(tmp_path, slot=1, life=0, seed="by hand")
    worker.ask(*(worker.addition() for _ in range(3)))
    for _ in range(2):
        (granted,) = worker.ask(worker.claim())
        held = {"project": PROJECT, "receipt": granted.receipt or ""}
        step = worker.new_id()
        worker.ask(commands.Renew(**held), commands.Progress(**held, step=step, request_id=step))
        worker.ask(worker.submission(held["receipt"]))
    worker.ask(worker.submission(held["receipt"]))  # other data: refused, and kept
    worker.close()
    return tmp_path


def kinds_found(folder: Path) -> set[str]:
    return {kind for kind, _ in verdict(folder).findings}


def damaged(folder: Path, *statements: str) -> Path:
    connection = apsw.Connection(str(folder / "tenure.db"))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return folder


def told(folder: Path, command: commands.Command, outcome: Outcome) -> Path:
    """Another worker's log, with an answer that nobody gave."""
    log = Log(log_path(folder, slot=2, life=0))
    log.asking(["forged"], [command])
    log.answered(["forged"], [outcome])
    log.close()
    return folder


def receipts(folder: Path) -> list[str]:
    asked = (folder / "logs" / "1-0.log").read_text()
    return [part.partition('"')[0] for part in asked.split('"outcome":"GRANTED","again":false,"receipt":"')[1:]]


def test_a_sound_store_is_found_sound(folder: Path) -> None:
    result = verdict(folder)
    assert result.findings == []
    assert (result.counts["accepted"], result.counts["submissions refused"]) == (3, 1)  # one by the drain


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("DELETE FROM claim WHERE id = (SELECT min(id) FROM claim)", "lost"),
        ("DELETE FROM claim WHERE id = (SELECT min(id) FROM claim)", "gap"),
        ("UPDATE claim SET nonce = x'00'", "gap"),
        ("UPDATE claim SET renewals = 0", "lost"),
        ("UPDATE claim SET generation = generation + 1, id = id || '1'", "gap"),
        ("DELETE FROM result WHERE accepted = 1", "lost"),
        ("DELETE FROM result WHERE accepted = 0", "lost"),
        ("DELETE FROM event WHERE kind = 'task.progress'", "lost"),
        ("DELETE FROM event WHERE kind = 'task.started'", "gap"),
        ("UPDATE event SET generation = 0 WHERE kind = 'task.completed'", "stale"),
        ("UPDATE task SET lane = NULL WHERE state = 'ready'", "limbo"),
        ("UPDATE task SET state = 'retrying', lane = NULL WHERE state = 'ready'", "limbo"),
        ("DELETE FROM task WHERE state = 'ready'", "lost"),
    ],
)
def test_damage_to_the_store_is_found(folder: Path, statement: str, kind: str) -> None:
    assert kind in kinds_found(damaged(folder, statement))


FORGERIES: dict[str, tuple[Callable[[str], commands.Command], Callable[[str], Outcome]]] = {
    "lost": (
        lambda _: commands.ClaimNext(project=PROJECT, agent="a", session="s"),
        lambda receipt: Outcome(outcome="GRANTED", receipt=receipt[:-8] + "00000000"),
    ),
    "double": (
        lambda receipt: commands.Submit(project=PROJECT, receipt=receipt, data=1),
        lambda _: Outcome(outcome="ACCEPTED", result="another"),
    ),
    "stale": (
        lambda receipt: commands.Renew(project=PROJECT, receipt=receipt),
        lambda _: Outcome(outcome="STALE_GENERATION", current_generation=2),
    ),
}


@pytest.mark.parametrize("kind", FORGERIES)
def test_an_answer_that_the_store_knows_nothing_of_is_found(folder: Path, kind: str) -> None:
    receipt = receipts(folder)[0]
    command, outcome = FORGERIES[kind]
    assert kind in kinds_found(told(folder, command(receipt), outcome(receipt)))


def test_a_sender_that_did_not_ask_again_is_found(folder: Path) -> None:
    log = Log(log_path(folder, slot=2, life=0))
    log.asking(["unheard"], [commands.Renew(project=PROJECT, receipt=receipts(folder)[0])])
    log.troubled("unheard", OutcomeUnknown("the answer was cut off"))
    log.close()
    told(folder, commands.Renew(project=PROJECT, receipt=receipts(folder)[0]), Outcome(outcome="NO_CLAIM"))
    assert "guessed" in kinds_found(folder)


def test_an_error_that_said_nothing_was_done_is_found_untrue(folder: Path) -> None:
    (request,) = accepted_requests(folder)[:1]
    log = Log(log_path(folder, slot=2, life=0))
    log.asking([request], [commands.Submit(project=PROJECT, receipt=receipts(folder)[0], data=1)])
    log.troubled(request, StoreUnavailable("not reached"))
    log.answered([request], [Outcome(outcome=GAVE_UP)])
    log.close()
    assert "untrue" in kinds_found(folder)


def test_an_accepted_result_that_its_sender_has_noticed_is_stale_is_found(folder: Path) -> None:
    (request,) = accepted_requests(folder)[:1]
    log = Log(log_path(folder, slot=2, life=0))
    log.asking([request], [commands.Submit(project=PROJECT, receipt=receipts(folder)[0], data=1)])
    log.answered([request], [Outcome(outcome="NO_CLAIM")])
    log.close()
    assert "falsely stale" in kinds_found(folder)


def test_a_task_that_was_made_twice_is_found(folder: Path) -> None:
    worker = Worker(folder, slot=3, life=0, seed="by hand")
    once = worker.addition()
    worker.ask(once)
    worker.engine.do(replace(once, request_id="another"))
    worker.close()
    assert "double" in kinds_found(folder)


def accepted_requests(folder: Path) -> list[str]:
    asked = asked_in(folder / "logs" / "1-0.log")
    return [a.id for a in asked if a.answer is not None and a.answer.get("outcome") == "ACCEPTED"]


def test_an_heir_takes_over_open_receipts_and_commands_without_an_answer(tmp_path: Path) -> None:
    found(tmp_path)
    dead = Worker(tmp_path, slot=1, life=0, seed="by hand")
    dead.inherit()
    dead.ask(dead.addition())
    (granted,) = dead.ask(dead.claim())
    dead.log.asking(["cut"], [dead.submission(granted.receipt or "")])
    dead.close()
    with log_path(tmp_path, 1, 0).open("ab") as log:
        log.write(b'{"got":"cu')  # killed while it wrote the answer down
    log_path(tmp_path, 1, 1).touch()  # and its first heir before it had read anything

    estate = estate_of(tmp_path, slot=1, life=2)

    assert list(estate.receipts) == [granted.receipt]
    assert [asked.id for asked in estate.unanswered] == ["cut"]
