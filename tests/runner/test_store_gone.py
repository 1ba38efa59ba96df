"""`git clean -xdf` under a running runner, server and worker: nothing is acknowledged into a file that is gone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.client import Client
from tenure.client.outbox import Finished
from tenure.core.errors import StoreUnavailable
from tests.runner.conftest import Stage, until
from tests.servers.tenure import TenureServer


@pytest.fixture
def backup(stage: Stage, tmp_path: Path) -> Path:
    """Of the store once something is held; the repository ignores `.tenure`, as `tenure init` has it."""
    stage.repository()
    return tmp_path / "backup.db"


def clean(stage: Stage) -> None:
    stage.git("clean", "-xdfq")
    assert not stage.home.exists()


def put_back(stage: Stage, backup: Path) -> Client:
    """The backup as the store, and a client of it."""
    stage.home.mkdir(mode=0o700)
    shutil.copyfile(backup, stage.home / "tenure.new")
    (stage.home / "tenure.new").rename(stage.home / "tenure.db")
    return Client(str(stage.home / "tenure.db"), "default", agent="bo")


def test_a_runner_keeps_the_result_and_hands_it_in_once_a_store_is_there(stage: Stage, backup: Path) -> None:
    key = stage.add("Cleaned away")
    runner = stage.run()
    stage.started(key)
    stage.client.backup(str(backup))
    clean(stage)
    stage.go()
    runner.says(f"{key}: cannot be submitted yet")
    (name,) = stage.outbox()
    assert json.loads((Path(stage.box.folder) / name).read_text())["data"] == {"made": key}
    assert not stage.home.joinpath("tenure.db").exists()  # nobody has made a new one

    with put_back(stage, backup) as client:
        until(lambda: not stage.outbox(), "the outbox to be empty")
        entries = client.history(key)
        kept = [refused for entry in entries for refused in entry["refused"]]
        assert kept or any(entry["result_accepted"] for entry in entries)
        assert client.verify() == []


def test_a_result_outlives_its_runner_too(stage: Stage, backup: Path) -> None:
    key = stage.add("Cleaned away")
    runner = stage.run()
    stage.started(key)
    stage.client.backup(str(backup))
    clean(stage)
    stage.go()
    runner.says(f"{key}: cannot be submitted yet")
    runner.kill()
    assert len(stage.outbox()) == 1

    with put_back(stage, backup) as client:
        stage.run("--once").ends(None)
        assert stage.outbox() == []
        (refused,) = client.history(key)[0]["refused"]
        assert refused["reason"] == "STALE_EPOCH"


def test_a_result_is_kept_where_a_new_store_is_made(stage: Stage) -> None:
    stage.repository()
    key = stage.add("Cleaned away")
    runner = stage.run()
    stage.started(key)
    clean(stage)
    with Client(str(stage.home / "tenure.db"), "default", create=True) as client:
        client.init()
        client.add("Another task under the same key")
    stage.go()
    runner.says("does not know the claim: it is a different store")
    assert len(stage.outbox()) == 1


def test_a_server_acknowledges_nothing_until_a_store_is_there(stage: Stage, backup: Path) -> None:
    key = stage.add("Held over HTTP")
    server = TenureServer(str(stage.home / "tenure.db"))
    server.start()
    try:
        with Client(
            server.url, "default", agent="cy", monotonic=count(0.0, 20.0).__next__, pause=lambda _: None
        ) as client:
            receipt = client.claim(key).receipt
            assert receipt is not None
            stage.client.backup(str(backup))
            clean(stage)
            for _ in range(3):
                with pytest.raises(StoreUnavailable, match="was removed"):
                    client.submit(receipt, "finished")
                with pytest.raises(StoreUnavailable):
                    client.add("Lost with the file")
                with pytest.raises(StoreUnavailable):
                    client.status()
            with put_back(stage, backup) as other:
                answer = until(lambda: _submitted(client, receipt), "the server to be back")
                assert answer.outcome == "STALE_EPOCH"
                assert other.history(key)[0]["refused"]
                assert client.add("Kept").ok
                assert len(other.tasks()) == 2
    finally:
        server.stop()


def _submitted(client: Client, receipt: str) -> Any:
    try:
        return client.submit(receipt, "finished")
    except StoreUnavailable:
        return None


WORKER = """
import sys, time
from pathlib import Path
from tenure import Worker

store, folder = sys.argv[1], Path(sys.argv[2])
worker = Worker(store, "default", lease=300.0)

@worker.task("t")
def work(ctx):
    (folder / "begun").touch()
    while not (folder / "go-on").exists():
        time.sleep(0.01)
    return "finished"

worker.run()
"""


def test_a_worker_keeps_the_result_until_a_store_is_there(stage: Stage, backup: Path, tmp_path: Path) -> None:
    key = stage.add("Held by a function", type="t")
    with (tmp_path / "log").open("w") as log:
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(stage.home / "tenure.db"), str(tmp_path)],
            env=stage.environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        until((tmp_path / "begun").exists, "the function to begin")
        stage.client.backup(str(backup))
        clean(stage)
        (tmp_path / "go-on").touch()
        until(lambda: " yet: " in (tmp_path / "log").read_text(), "the worker to notice")
        with put_back(stage, backup) as client:
            until(lambda: client.show(key)["state"] == "completed", "the result to be accepted")
            assert client.show(key)["result"]["data"] == "finished"
            assert client.verify() == []
    finally:
        worker.kill()
        worker.wait()


def test_a_result_outlives_its_worker_too_and_the_next_one_sends_it(stage: Stage, backup: Path, tmp_path: Path) -> None:
    key = stage.add("Held by a function", type="t")

    def start(log: Path) -> subprocess.Popen[bytes]:
        with log.open("w") as out:
            return subprocess.Popen(
                [sys.executable, "-c", WORKER, str(stage.home / "tenure.db"), str(tmp_path)], env=stage.environ,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip

    first = start(tmp_path / "log")
    try:
        until((tmp_path / "begun").exists, "the function to begin")
        stage.client.backup(str(backup))
        clean(stage)
        (tmp_path / "go-on").touch()
        until(stage.outbox, "the result to be in the outbox")
    finally:
        first.kill()
        first.wait()
    (name,) = stage.outbox()
    assert json.loads((Path(stage.box.folder) / name).read_text())["data"] == "finished"

    with put_back(stage, backup) as client:
        client.add("Another", type="none")  # its first write begins the epoch of the copy
        second = start(tmp_path / "log-2")
        try:
            until(lambda: not stage.outbox(), "the outbox to be empty")
        finally:
            second.kill()
            second.wait()
        (refused,) = client.history(key)[0]["refused"]
        assert refused["reason"] == "STALE_EPOCH"  # kept, though a backup that was put back begins a new epoch
        assert client.verify() == []


def test_two_files_for_one_receipt_have_one_effect(stage: Stage) -> None:
    """The preferred folder could not be written for a while: the same claim may lie in both."""
    key = stage.add("Twice")
    receipt = str(stage.client.claim(key).receipt)
    one = Finished(what="submit", project="default", key=key, receipt=receipt, data="once", request_id="r")
    failed = str(stage.client.claim(stage.add("Fails twice")).receipt)
    two = Finished(what="fail", project="default", key="x", receipt=failed, message="broke")
    for folder in (stage.box.folder, str(stage.home / "outbox")):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, finished in (("1.json", one), ("2.json", two)):
            (Path(folder) / name).write_bytes(msgspec.json.encode(finished))
    sent = stage.box.flush(stage.client)
    assert [(s.finished.what, s.outcome and s.outcome.outcome, s.outcome and s.outcome.again) for s in sent] == [
        ("submit", "ACCEPTED", False), ("fail", "OK", False), ("submit", "ACCEPTED", True), ("fail", "OK", True),
    ]  # fmt: skip
    assert stage.outbox() == []
    assert [claim["release_reason"] for claim in stage.client.history("A-002")] == ["FAILED"]
    assert stage.client.verify() == []
