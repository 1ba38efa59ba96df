"""What comes between the steps of a landing: every case that land.py lists, one test each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.agents import checkouts, fences
from tests.servers.fixtures import provided
from tests.worktrees.conftest import Agent, Interrupted, Repository


@pytest.fixture
def zombie(repository: Repository, task: str) -> Agent:
    """Generation 1, with a commit to land, and something that will come between."""
    agent = repository.agent("zombie", Interrupted).claim(task)
    agent.make()
    agent.commit("zombie.py", "x\n")
    return agent


def after(agent: Agent, verb: str, happens: Callable[[], object], call: int = 1) -> None:
    assert isinstance(agent.client, Interrupted)
    agent.client.then(verb, happens, call=call)


def lapse(repository: Repository) -> None:
    repository.clock.advance(seconds=61)


def test_a_recorded_landing_is_refused_once_the_next_generation_has_its_worktree(
    repository: Repository, zombie: Agent, task: str
) -> None:
    bo = repository.agent("bo")

    def taken_over() -> None:
        lapse(repository)
        bo.claim(task).make()

    before = repository.tip()
    after(zombie, "land", taken_over)
    landed = zombie.land()
    assert (landed.outcome.outcome, landed.commit) == ("STALE_GENERATION", None)
    assert (repository.tip(), repository.status()) == (before, "")
    assert zombie.client.show(task)["landings"][0]["generation"] == 1
    assert landed.outcome.work_lost is True  # the store knows where the commits are
    (refused,) = zombie.client.results(task)
    assert (refused["accepted"], refused["data"]["landed"]) == (False, False)
    assert zombie.tree is not None
    assert refused["data"]["commit"] == repository.head(zombie.tree.path)
    bo.commit("bo.py", "y\n")
    assert bo.land().outcome.outcome == "ACCEPTED"
    assert "zombie.py" not in repository.files()


def test_it_is_refused_too_when_the_next_generation_lands_without_a_worktree(
    repository: Repository, zombie: Agent, task: str
) -> None:
    repository.git("branch", "work")
    tree = repository.path.parent / "own"
    repository.git("worktree", "add", "-q", str(tree), "work")
    repository.commit("bo.py", "y\n", tree)
    repository.git("branch", "next")
    bo = repository.agent("bo")

    def taken_over() -> None:
        lapse(repository)
        assert bo.claim(task).land(tree, onto="next").outcome.outcome == "ACCEPTED"

    before = repository.tip()
    after(zombie, "land", taken_over)
    # main is where the zombie left it: only the fence stands in its way
    landed = zombie.land()
    assert landed.outcome.outcome == "STALE_GENERATION"
    assert repository.tip() == before


def test_the_next_generation_sees_a_swap_before_its_first_git_command(
    repository: Repository, zombie: Agent, task: str
) -> None:
    bo = repository.agent("bo")

    def claimed() -> None:
        lapse(repository)
        bo.claim(task)

    after(zombie, "land", claimed)
    landed = zombie.land()
    assert (landed.outcome.outcome, landed.outcome.work_lost) == ("STALE_GENERATION", True)
    assert landed.commit == repository.tip()
    tree = bo.make()
    assert tree.base == landed.commit  # it begins from that landing
    bo.commit("bo.py", "y\n")
    second = bo.land()
    assert second.outcome.outcome == "ACCEPTED"
    assert [(said["generation"], said["new"]) for said in second.earlier] == [(1, landed.commit)]


def test_a_worktree_begins_from_a_landing_that_comes_while_it_is_made(
    repository: Repository, zombie: Agent, task: str
) -> None:
    """The swap falls between the next holder's question to the store and its move of the fence."""
    bo = repository.agent("bo", Interrupted)
    recorded, go_on, landed = threading.Event(), threading.Event(), []

    def waits() -> None:
        recorded.set()
        assert go_on.wait(60)

    after(zombie, "land", waits)
    thread = threading.Thread(target=lambda: landed.append(zombie.land()))
    thread.start()
    assert recorded.wait(60)
    lapse(repository)
    bo.claim(task)

    def swaps() -> None:
        go_on.set()
        thread.join(60)

    after(bo, "renew", swaps)
    tree = bo.make()
    assert (landed[0].outcome.outcome, landed[0].commit) == ("STALE_GENERATION", repository.tip())
    assert tree.base == landed[0].commit


@pytest.mark.parametrize("is_first", [True, False])
def test_a_fence_is_not_taken_by_one_who_asked_before_it_was_moved(
    repository: Repository, task: str, is_first: bool
) -> None:
    if not is_first:  # there is a fence already, of a generation before both
        repository.agent("ann").claim(task).make()
        lapse(repository)
    zombie, bo = repository.agent("zombie", Interrupted).claim(task), repository.agent("bo")

    def taken_over() -> None:
        lapse(repository)
        bo.claim(task).make()

    after(zombie, "renew", taken_over)
    with pytest.raises(fences.NotHeld) as caught:
        zombie.make()
    assert caught.value.outcome.outcome == "STALE_GENERATION"
    assert f"generation {bo.generation}" in repository.git("cat-file", "-p", fence_ref(repository))


def test_a_fence_that_a_zombie_still_took_is_taken_from_it(repository: Repository, zombie: Agent, task: str) -> None:
    """The zombie asks, bo claims, the zombie takes the fence and records nothing more; bo takes it from the zombie."""
    bo = repository.agent("bo", Interrupted)
    repository.git("update-ref", "-d", fence_ref(repository))  # as if the zombie had worked without a worktree

    def claimed() -> None:
        lapse(repository)
        bo.claim(task)

    after(zombie, "renew", claimed)
    landed = zombie.land()  # takes the fence, and is refused at the record
    assert landed.outcome.outcome == "STALE_GENERATION"
    assert "generation 1" in repository.git("cat-file", "-p", fence_ref(repository))
    bo.make()
    assert "generation 2" in repository.git("cat-file", "-p", fence_ref(repository))
    bo.commit("bo.py", "y\n")
    assert bo.land().outcome.outcome == "ACCEPTED"
    assert "zombie.py" not in repository.files()


def test_a_live_claim_takes_the_fence_whatever_it_names(repository: Repository, task: str, ann: Agent) -> None:
    """After a restore a fence may name a claim of the lost timeline, with a higher generation."""
    blob = repository.git("hash-object", "-w", str(repository.path / "readme.txt"))
    repository.git("update-ref", fence_ref(repository), blob)
    ann.commit("parser.py", "x\n")
    assert ann.land().outcome.outcome == "ACCEPTED"


def test_a_new_epoch_fences_the_lost_timeline_off(repository: Repository, zombie: Agent, task: str) -> None:
    bo = repository.agent("bo")

    def restored() -> None:
        bo.client.new_epoch("restored from a backup")
        bo.claim(task).make()

    before = repository.tip()
    after(zombie, "land", restored)
    assert zombie.land().outcome.outcome == "STALE_EPOCH"
    assert repository.tip() == before


def test_a_landing_killed_after_the_record_continues_with_its_commit(
    repository: Repository, zombie: Agent, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = repository.tip()
    after(zombie, "land", killed)
    with pytest.raises(KilledHere):
        zombie.land()
    recorded = zombie.client.show(task)["landings"][0]["new"]
    assert repository.tip() == before
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2031-01-01T00:00:00Z")  # a merge made now would be another commit
    landed = zombie.land()
    assert (landed.outcome.outcome, landed.commit) == ("ACCEPTED", recorded)
    assert len(zombie.client.log(kind="task.landing")) == 1


def test_a_landing_killed_after_the_record_merges_again_when_the_branch_has_moved(
    repository: Repository, zombie: Agent, task: str
) -> None:
    after(zombie, "land", killed)
    with pytest.raises(KilledHere):
        zombie.land()
    recorded = zombie.client.show(task)["landings"][0]["new"]
    theirs = repository.commit("lexer.py", "y\n")
    landed = zombie.land()
    assert landed.outcome.outcome == "ACCEPTED"
    assert (landed.base, landed.commit == recorded) == (theirs, False)
    assert {"lexer.py", "zombie.py"} <= repository.files()


def test_a_landing_killed_after_the_swap_only_submits(
    repository: Repository, zombie: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zombie.client, "submit", killed)
    with pytest.raises(KilledHere):
        zombie.land()
    monkeypatch.undo()
    tip = repository.tip()
    lapse(repository)  # nobody has claimed since: a late result
    landed = zombie.land()
    assert (landed.outcome.outcome, landed.commit, repository.tip()) == ("ACCEPTED", tip, tip)


def test_commits_to_the_branch_between_record_and_swap_are_merged_with(repository: Repository, zombie: Agent) -> None:
    after(zombie, "land", lambda: repository.commit("lexer.py", "y\n"))
    landed = zombie.land()
    assert landed.outcome.outcome == "ACCEPTED"
    assert {"lexer.py", "zombie.py"} <= repository.files()
    assert repository.status() == ""
    assert len(zombie.client.log(kind="task.landing")) == 2


def test_a_branch_that_never_stands_still_ends_the_landing(
    repository: Repository, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Restless(Interrupted):
        def land(self, *args: object, **more: object) -> object:  # type: ignore[override]
            said = super().land(*args, **more)
            repository.commit("lexer.py", f"{time.monotonic_ns()}\n")
            return said

    monkeypatch.setattr("tenure.agents.land.MOST_TRIES", 2)
    monkeypatch.setattr("tenure.agents.land.MOST_BUSY", 1)
    agent = repository.agent("ann", Restless).claim(task)
    agent.make()
    agent.commit("parser.py", "x\n")
    with pytest.raises(Exception, match="moved 2 times") as caught:
        agent.land()
    assert caught.value.code == "BRANCH_MOVES"  # type: ignore[attr-defined]
    assert "parser.py" not in repository.files()


def test_two_landings_with_one_receipt_land_once(repository: Repository, zombie: Agent) -> None:
    twin = repository.agent("zombie")
    twin.receipt, twin.tree = zombie.receipt, zombie.tree
    answers = []
    after(zombie, "land", lambda: answers.append(twin.land()))
    mine = zombie.land()
    assert [mine.outcome.outcome, answers[0].outcome.outcome] == ["ACCEPTED", "ACCEPTED"]
    assert mine.commit == answers[0].commit == repository.tip()
    assert repository.line() == ["A-001: Write the parser", "first"]


# --- real processes, really killed --------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from tenure import Client
from tenure.agents import checkouts, land
from tenure.testing.clock import FakeClock

at, store, receipt, folder, now = sys.argv[1:]
class Killed(Client):
    def land(self, *args, **more):
        said = super().land(*args, **more)
        if at == "record":
            os.kill(os.getpid(), signal.SIGKILL)
        return said
    def submit(self, *args, **more):
        if at == "submit":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().submit(*args, **more)
forward = checkouts.forward
def killed(*args):
    forward(*args)
    if at == "checkout":
        os.kill(os.getpid(), signal.SIGKILL)
checkouts.forward = killed
land.land(Killed(store, "shop", agent="zombie", session="zombie-s", clock=FakeClock(int(now))), receipt, folder)
"""


@pytest.mark.parametrize("at", ["record", "checkout", "submit"])
def test_a_process_killed_anywhere_leaves_what_the_next_one_finishes(
    repository: Repository, zombie: Agent, at: str
) -> None:
    assert zombie.tree is not None
    before = repository.tip()
    repository.write("readme.txt", "my own change\n")
    words = [at, str(repository.home / "tenure.db"), zombie.receipt, zombie.tree.path, str(repository.clock.now)]
    ended = subprocess.run([sys.executable, "-c", KILLED, *words], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    wait_until(lambda: not list((repository.path / ".git").rglob("*.lock")))
    assert (repository.tip() == before) == (at != "submit")
    staged = repository.git("diff", "--cached", "--name-only")
    assert staged == ("zombie.py" if at == "checkout" else "")
    landed = zombie.land()
    assert (landed.outcome.outcome, landed.commit) == ("ACCEPTED", repository.tip())
    assert repository.line() == ["A-001: Write the parser", "first"]
    assert repository.status() == "M readme.txt"
    assert (repository.path / "zombie.py").read_text() == "x\n"


def test_a_stopped_process_wakes_up_too_late(repository: Repository, zombie: Agent, task: str) -> None:
    """The classic: recorded, stopped for longer than its lease, and it goes on as if nothing had been."""
    script = KILLED.replace("signal.SIGKILL", "signal.SIGSTOP")
    assert zombie.tree is not None
    before = repository.tip()
    words = ["record", str(repository.home / "tenure.db"), zombie.receipt, zombie.tree.path, str(repository.clock.now)]
    process = subprocess.Popen([sys.executable, "-c", script, *words], stderr=subprocess.PIPE)
    try:
        wait_until(lambda: is_stopped(process.pid))
        lapse(repository)
        bo = repository.agent("bo").claim(task)
        bo.make()
        os.kill(process.pid, signal.SIGCONT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert repository.tip() == before
        bo.commit("bo.py", "y\n")
        assert bo.land().outcome.outcome == "ACCEPTED"
        assert "zombie.py" not in repository.files()
    finally:
        process.kill()
        process.communicate()


def is_stopped(pid: int) -> bool:
    return ") T" in Path(f"/proc/{pid}/stat").read_text() if Path("/proc").is_dir() else _ps_stopped(pid)


def _ps_stopped(pid: int) -> bool:
    said = subprocess.run([provided("ps"), "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return said.stdout.startswith("T")


def wait_until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "timed out"
        threading.Event().wait(0.005)


class KilledHere(BaseException):
    pass


def killed(*_: object, **__: object) -> None:
    raise KilledHere


def fence_ref(repository: Repository) -> str:
    return repository.git("for-each-ref", "--format=%(refname)", "refs/tenure/land")


def test_the_fence_does_not_reveal_the_receipt(repository: Repository, ann: Agent) -> None:
    text = repository.git("cat-file", "-p", fence_ref(repository))
    assert text.splitlines()[:2] == [f"task {ann.key}", "generation 1"]
    assert ann.receipt.partition(":")[2] not in text


def test_fences_disturb_no_other_git_command(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    ann.land()
    assert "fence" not in repository.git("log", "--all", "--oneline")
    repository.git("gc", "-q", "--prune=now")
    repository.git("fsck", "--strict")
    assert "generation 1" in repository.git("cat-file", "-p", fence_ref(repository))
    assert checkouts.of_branch(str(repository.path), "main") is not None
