"""Finished work outlives an unavailable store and a killed runner, and is fenced when it is sent."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tenure import process_table
from tenure.agents.runner.outbox import Finished
from tenure.client import Client
from tenure.client.outbox import of_command, send
from tenure.core import commands as c
from tenure.core.commands import Totals
from tenure.core.land_request import LandRequest
from tenure.process_table import described
from tests.runner.conftest import Stage, until

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs prlimit, which only Linux has")


@contextmanager
def store_unavailable_for(pid: int) -> Iterator[None]:
    """The process cannot make any file longer than 16 KB: the store's log, which is longer, takes no more writes."""
    old = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (16 << 10, old[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, old)


def stuck(stage: Stage, key: str) -> None:
    until(stage.outbox, "the result to be in the outbox")
    until(
        lambda: f"{key}: cannot be submitted yet" in stage.runs[-1].log,
        "the runner to notice that the store is unavailable",
    )


def test_a_result_waits_for_the_store_to_come_back(stage: Stage) -> None:
    key = stage.add("Patient")
    runner = stage.run("--once")
    stage.started(key)
    with store_unavailable_for(runner.pid):
        stage.go()
        stuck(stage, key)
        file = Path(stage.box.folder) / stage.outbox()[0]
        assert file.stat().st_mode & 0o777 == 0o600
        assert json.loads(file.read_text())["data"] == {"made": key}
        assert stage.state(key) == "running"
        # the claim's own process is still there: nobody may take over while there is a result to submit
        holders = stage.client.processes()
        assert holders
        assert not any(process_table.has_ended(one["pid"], one["start"]) for one in holders)

    assert "1 completed" in runner.ends()
    assert stage.lineage(key) == [(1, "COMPLETED", True)]
    assert stage.outbox() == []


def test_a_result_outlives_its_runner_and_is_sent_by_the_next(stage: Stage) -> None:
    key = stage.add("Left behind")
    runner = stage.run()
    stage.started(key)
    with store_unavailable_for(runner.pid):
        stage.go()
        stuck(stage, key)
        runner.kill(signal.SIGKILL)

    log = stage.run("--once").ends(3)

    assert f"{key}: submit from the outbox: ACCEPTED" in log
    assert stage.lineage(key) == [(1, "COMPLETED", True)]
    assert stage.outbox() == []


def test_a_result_from_the_outbox_is_refused_where_another_has_taken_over(stage: Stage) -> None:
    key = stage.add("Overtaken")
    runner = stage.run()
    stage.started(key)
    with store_unavailable_for(runner.pid):
        stage.go()
        stuck(stage, key)
        runner.kill(signal.SIGKILL)
    kept = Path(stage.box.folder) / stage.outbox()[0]
    aside = kept.rename(stage.folder / "aside")
    stage.run("--once").ends()
    aside.rename(kept)

    log = stage.run("--once").ends(3)

    assert "submit from the outbox was refused" in log
    assert stage.outbox() == []
    first, second = stage.client.history(key)
    assert (first["release_reason"], second["release_reason"]) == ("EXPIRED", "COMPLETED")
    (refused,) = first["refused"]
    assert refused["work_lost"]


def test_interrupted_twice_the_runner_leaves_the_result_in_the_outbox(stage: Stage) -> None:
    key = stage.add("In a hurry")
    runner = stage.run()
    stage.started(key)
    with store_unavailable_for(runner.pid):
        stage.go()
        stuck(stage, key)
        runner.kill(signal.SIGINT)
        runner.says("draining")
        runner.kill(signal.SIGINT)
        assert "1 kept" in runner.ends(130)

    (sent,) = stage.box.flush(stage.client)
    assert sent.outcome is not None
    assert sent.outcome.outcome == "ACCEPTED"
    assert stage.state(key) == "completed"


def test_a_runner_continues_when_the_store_is_back(stage: Stage) -> None:
    stage.client.add("x" * 200, description="y" * 60_000)  # so that the log is long enough to be cut off
    stage.client.cancel("A-001")
    runner = stage.run()
    until(stage.client.agents, "the runner to be there")
    stage.go()
    with store_unavailable_for(runner.pid):
        key = stage.add("After the storm")
        runner.says("the store is unavailable")
    assert stage.is_completed(key)


def test_without_room_for_an_outbox_the_store_is_asked_all_the_same(stage: Stage) -> None:
    key = stage.add("No room")
    Path(stage.box.folder).write_text("in the way")
    stage.go()

    log = stage.run("--once").ends()

    assert "cannot be kept in the outbox" in log
    assert stage.state(key) == "completed"


# --- the box itself ---


def finished(client: Client, key: str, **fields: object) -> Finished:
    granted = client.claim(key)
    assert granted.receipt is not None
    return Finished(**({"what": "submit", "project": "default", "key": key, "receipt": granted.receipt} | fields))  # type: ignore[arg-type]


def test_what_a_living_runner_sees_to_is_left_to_it(stage: Stage) -> None:
    box, key = stage.box, stage.add("Mine")
    box.put(finished(stage.client, key, data=1, process=described(os.getpid())))
    assert box.flush(stage.client) == []
    box.put(finished(stage.client, stage.add("Orphan"), data=2))
    assert [sent.finished.data for sent in box.flush(stage.client)] == [2]
    assert len(stage.outbox()) == 1


def test_sent_twice_it_counts_once(stage: Stage) -> None:
    box, key = stage.box, stage.add("Twice")
    item = finished(stage.client, key, data=1, usage=(Totals(model="m1", fresh=10, cost_usd="0.5"),))
    for again in (False, True):
        box.put(item)
        (sent,) = box.flush(stage.client)
        assert sent.outcome is not None
        assert (sent.outcome.outcome, sent.outcome.again) == ("ACCEPTED", again)
    assert stage.client.show(key)["usage"]["cost_usd"] == "0.50"


@pytest.mark.parametrize("what", ["fail", "release"])
def test_a_failure_and_a_release_come_with_what_was_spent(stage: Stage, what: str) -> None:
    box, key = stage.box, stage.add("Spent")
    totals = (Totals(model="m1", output=7),)
    box.put(finished(stage.client, key, what=what, message="no", error_class="environment", usage=totals))
    (sent,) = box.flush(stage.client)
    assert sent.outcome is not None
    assert sent.outcome.outcome == "OK"
    assert stage.client.history(key)[0]["release_reason"] == {"fail": "FAILED", "release": "VOLUNTARY"}[what]
    assert stage.client.show(key)["usage"]["output"] == 7


def test_what_the_store_will_never_take_is_put_aside_and_not_lost(stage: Stage) -> None:
    box = stage.box
    box.put(finished(stage.client, stage.add("Odd"), summary="x" * (1 << 20)))
    (sent,) = box.flush(stage.client)
    assert sent.outcome is None
    assert [name.rpartition(".")[2] for name in stage.outbox()] == ["refused"]
    assert box.flush(stage.client) == []


def test_partial_files_of_a_killed_writer_are_removed(stage: Stage) -> None:
    box = stage.box
    Path(box.folder).mkdir()
    for name in ("a.json.4194000.new", f"b.json.{os.getpid()}.new"):  # no process has the first number
        (Path(box.folder) / name).write_text('{"what": "sub')
    assert box.flush(stage.client) == []
    assert stage.outbox() == [f"b.json.{os.getpid()}.new"]  # its writer may still be at it


def test_half_a_file_and_other_peoples_files_are_left_alone(stage: Stage) -> None:
    box = stage.box
    Path(box.folder).mkdir()
    for name in ("half.json", "half.json.new", "notes.txt"):
        (Path(box.folder) / name).write_text('{"what": "sub')
    assert box.flush(stage.client) == []
    assert stage.outbox() == ["half.json", "half.json.new", "notes.txt"]


def test_what_an_earlier_version_left_beside_the_store_is_sent_too(stage: Stage) -> None:
    key = stage.add("From before")
    path = Path(stage.box.put(finished(stage.client, key, data=1)))
    (stage.home / "outbox").mkdir()
    path.rename(stage.home / "outbox" / path.name)
    (sent,) = stage.box.flush(stage.client)
    assert sent.outcome is not None
    assert sent.outcome.outcome == "ACCEPTED"
    assert list((stage.home / "outbox").iterdir()) == []


@pytest.mark.parametrize("project", ["default", "elsewhere"])
def test_a_result_of_another_store_stays_in_the_outbox(stage: Stage, tmp_path: Path, project: str) -> None:
    key = stage.add("Of the store before")
    stage.box.put(finished(stage.client, key, data=1))
    with Client(str(tmp_path / "other.db"), project, create=True) as other:
        other.init()
        other.add("Another task under the same key")
        (sent,) = stage.box.flush(other)
        assert sent.outcome is None or sent.outcome.outcome == "STALE_EPOCH"
        assert len(stage.outbox()) == 1
    (sent,) = stage.box.flush(stage.client)  # the right store is back
    assert sent.outcome is not None
    assert sent.outcome.outcome == "ACCEPTED"
    assert stage.outbox() == []


@pytest.mark.parametrize("kind", [c.Submit, c.Fail, c.Release], ids=lambda kind: kind.__name__)
def test_a_command_comes_out_of_the_outbox_as_it_went_in(kind: type[c.Submit | c.Fail | c.Release]) -> None:
    samples: dict[str, Any] = {
        "data": {"a": 1}, "summary": "done", "usage": (Totals(model="opus", output=1),), "lines": 3, "test_files": 1,
        "artifacts": ("log.txt",), "seen": 2, "error_class": "timeout", "message": "slow", "retry_after": 5.0,
        "model": "opus", "reason": "later", "request_id": "r1", "receipt": "A-001@1:00", "project": "p",
        "trace": "Traceback …", "stopped": True, "land": LandRequest(commit="a" * 40, onto="main"),
    }  # fmt: skip
    # It is signed when it is sent.
    fields = [name for name in kind.__struct_fields__ if name not in ("trace_id", "signature")]
    command = kind(**{name: samples[name] for name in fields})
    sent: list[c.Command] = []
    client = SimpleNamespace(do=sent.append)
    send(client, of_command(command, "A-001"))  # type: ignore[arg-type]  # it only sends
    assert sent[-1] == command
