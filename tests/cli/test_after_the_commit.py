"""What fails after the commit says that it was done; a claim whose answer was lost is given again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import Said, Tenure

# Runs the command line, with one function put in the place of another first.
WITH = """
import os, signal, sys
import tenure.agents.receipts as receipts
{change}
from tenure.__main__ import main
sys.argv = ["tenure", *sys.argv[1:]]
main()
"""
KILLED = WITH.format(change="receipts.Receipts.keep = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)")
STOPPED = WITH.format(change="receipts.Receipts.keep = lambda *_, **__: os.kill(os.getpid(), signal.SIGSTOP)")


def started(tenure: Tenure, text: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-c", text, *words], cwd=tenure.folder, env=tenure.environ,
        stdout=subprocess.PIPE if "done" in words else subprocess.DEVNULL,
    )  # fmt: skip


def into(tenure: Tenure, where: str, *words: str, **environ: str) -> Said:
    """A command whose stdout is redirected by a shell: `> /dev/full`, `>&-`."""
    done = subprocess.run(
        ["/bin/bash", "-c", f'"$@" {where}', "bash", *tenure.command(*words)], cwd=tenure.folder,
        env=tenure.environ | environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Said(done.returncode, done.stdout, done.stderr)


# --- a lost answer ------------------------------------------------------------------------------------------


def test_a_claim_that_was_killed_before_its_receipt_was_kept_is_given_again(
    tenure: Tenure, add: Callable[..., str]
) -> None:
    add("One"), add("Two")
    killed = started(tenure, KILLED, "claim", "--json")
    assert killed.wait() == -9
    assert tenure("show", "A-001", "--json").json["state"] == "claimed"
    again = tenure.process("claim", "--json").json
    assert (again["task_ref"], again["again"]) == ("A-001@1", True)
    assert tenure.process("claim", "--json").json["task_ref"] == "A-002@1"
    assert tenure.process("done", "A-001@1", "--json").json["outcome"] == "ACCEPTED"


@pytest.mark.parametrize("other", [("--agent", "kit"), ("--session", "bo"), ("--track", "A"), ("--lease", "60")])
def test_another_who_asks_or_asks_for_something_else_is_not_given_it(
    tenure: Tenure, add: Callable[..., str], other: tuple[str, ...]
) -> None:
    add("One"), add("Two")
    assert started(tenure, KILLED, "claim", "--json").wait() == -9
    assert tenure.process("claim", "--json", *other).json["task_ref"] == "A-002@1"
    assert tenure.process("claim", "--json").json["task_ref"] == "A-001@1"


def test_two_who_ask_at_the_same_time_are_given_two_claims(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One"), add("Two")
    waiting = started(tenure, STOPPED, "claim", "--json")
    try:
        assert os.WIFSTOPPED(os.waitpid(waiting.pid, os.WUNTRACED)[1])
        assert tenure.process("claim", "--json").json["task_ref"] == "A-002@1"
    finally:
        waiting.kill()
        waiting.wait()


def test_a_lost_claim_that_has_ended_since_is_not_given_again(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One"), add("Two", "-p", "low")
    assert started(tenure, KILLED, "claim", "--json").wait() == -9
    assert tenure("recover", "A-001").code == 0
    assert tenure.process("claim", "A-001", "--session", "bo").code == 0
    assert tenure.process("claim", "--json").json["task_ref"] == "A-002@1"


# --- what cannot be kept, or told ---------------------------------------------------------------------------


def test_a_claim_whose_receipt_cannot_be_kept_is_told_with_it(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One")
    (tenure.folder / "file").write_text("")
    nowhere = {"TENURE_STATE": str(tenure.folder / "file"), "TMPDIR": str(tenure.folder / "file")}
    claimed = tenure.process("claim", "--json", **nowhere)
    receipt = claimed.json["receipt"]
    assert (claimed.code, claimed.json["outcome"]) == (0, "GRANTED")
    assert f"--receipt {receipt}" in claimed.err
    assert "could not be kept" in claimed.json["warnings"][0]
    done = tenure.process("done", "--receipt", receipt, "--json", **nowhere)
    assert (done.code, done.json["outcome"]) == (0, "ACCEPTED")


@pytest.fixture
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file system that has room for the user's state until the test takes it."""
    place = tmp_path_factory.mktemp("full")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root mounts a file system that is full")
def test_a_full_disk_takes_neither_a_claim_nor_a_result(tenure: Tenure, add: Callable[..., str], full: Path) -> None:
    add("One"), add("Two")
    there = {"TENURE_STATE": str(full), "TMPDIR": str(full)}
    assert tenure.process("claim", **there).code == 0
    with suppress(OSError), (full / "rest").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    done = tenure.process("done", "--json", **there)
    assert (done.code, done.json["outcome"]) == (0, "ACCEPTED")
    claimed = tenure.process("claim", "--json", **there)
    assert (claimed.code, claimed.json["task_ref"]) == (0, "A-002@1")
    assert f"--receipt {claimed.json['receipt']}" in claimed.err
    (full / "rest").unlink()
    assert tenure.process("done", "--receipt", claimed.json["receipt"], **there).code == 0


VERBS: dict[str, tuple[str, ...]] = {
    "add": ("add", "Another"),
    "join": ("join", "-n", "kit"),
    "msg": ("msg", "hello"),
    "claim": ("claim",),
    "start": ("start", "A-002"),
    "progress": ("progress", "A-002", "half"),
    "checkpoint": ("checkpoint", "save", "A-002", "--notes", "x"),
    "renew": ("renew", "A-002"),
    "release": ("release", "A-002"),
    "fail": ("fail", "A-002", "-m", "no"),
    "done": ("done", "A-002"),
    "ask": ("ask", "A-002", "Which?"),
    "spawn": ("spawn", "--of", "A-002", "Part"),
    "edit": ("edit", "A-001", "--title", "Other"),
    "pause": ("pause", "A-001"),
    "cancel": ("cancel", "A-001"),
    "reserve": ("reserve", "src/**"),
    "leave": ("leave",),
}


@pytest.mark.sampled
@pytest.mark.parametrize("where", ["> /dev/full", ">&-"])
@pytest.mark.parametrize("verb", VERBS)
def test_an_answer_that_cannot_be_written_never_says_that_nothing_was_done(
    tenure: Tenure, add: Callable[..., str], verb: str, where: str
) -> None:
    add("One"), add("Two")
    assert tenure.process("claim", "A-002").code == 0
    for words in (VERBS[verb], (*VERBS[verb], "--json")):
        said = into(tenure, where, *words)
        assert said.code in (75, 6, 7), said  # the second time it may be refused, and says so
        if words == VERBS[verb]:
            assert said.code == 75
            assert "it was done: " in said.err
        assert "Traceback" not in said.err
        assert "bug" not in said.err


def test_a_claim_whose_answer_could_not_be_written_is_given_again(tenure: Tenure, add: Callable[..., str]) -> None:
    add("One"), add("Two")
    untold = into(tenure, "> /dev/full", "claim", "--json")
    assert untold.code == 75
    assert "receipt A-001@1:" in untold.err
    again = tenure.process("claim", "--json")
    assert (again.json["task_ref"], again.json["again"]) == ("A-001@1", True)


@pytest.mark.parametrize("is_json", [True, False])
def test_a_terminal_without_the_characters_is_told_all_the_same(tenure: Tenure, is_json: bool) -> None:
    words = ("add", "Größe prüfen ✓", *(("--json",) if is_json else ()))
    added = tenure.process(*words, PYTHONIOENCODING="ascii")
    assert added.code == 0, added.err
    if is_json:
        assert added.json["title"] == "Größe prüfen ✓" if "title" in added.json else added.json["key"]
    claimed = tenure.process("claim", *words[2:], PYTHONIOENCODING="ascii")
    assert claimed.code == 0, claimed.err
    if is_json:
        assert json.loads(claimed.out)["task"]["title"] == "Größe prüfen ✓"
    else:
        assert "Gr\\xf6\\xdfe" in claimed.out


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        ("StoreUnavailable('the store is away')", "STORE_UNAVAILABLE"),
        ("OSError(28, 'No space left on device')", "UNFINISHED"),
        ("ZeroDivisionError('ours')", "BUG"),
    ],
)
def test_an_error_after_the_effect_is_not_definite(
    tenure: Tenure, add: Callable[..., str], raised: str, code: str
) -> None:
    add("One")
    assert tenure.process("claim").code == 0
    away = WITH.format(
        change=f"from tenure.core.errors import StoreUnavailable\ndef gone(*_, **__): raise {raised}\n"
        "receipts.Receipts.settle = gone"
    )
    done = started(tenure, away, "done", "--json")
    error = json.loads(done.communicate()[0])["error"]
    assert (done.returncode, error["code"], error["definite"]) == (75, code, False)
    assert "it was done: ACCEPTED" in error["message"]
    assert tenure("show", "A-001", "--json").json["state"] == "completed"
