"""Landing results that have passed: every case that land.py lists of those who take them, one test each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tenure import Client
from tenure.agents import checkouts, git
from tenure.agents.landings import Landed, Lander
from tenure.agents.merged_trees import merged
from tenure.agents.result_checker import ResultChecker, Tools
from tenure.core.errors import NotAllowed, StoreError
from tenure.core.land_request import LandRequest
from tenure.core.outcomes import Outcome
from tenure.core.validation import MOST_TRIES
from tenure.validators.commands import Command
from tests.worktrees.conftest import Agent, Interrupted, Repository
from tests.worktrees.test_fence import KilledHere, killed, wait_until

TESTS = {"validation": "test-pass", "settings": {"command": "unit"}}


class Judged(Interrupted):
    """A client after, or instead of, whose answers something else happens."""

    def renew_validation(self, *args: Any, **more: Any) -> Outcome:
        return self._after("renew_validation", super().renew_validation(*args, **more))

    def judge(self, *args: Any, **more: Any) -> Any:
        if getattr(self, "_verb", None) == "before judge":
            self._happens()
        return super().judge(*args, **more)


class Stage:
    """A task whose result waits to be landed, and those who land it."""

    def __init__(self, repository: Repository, output: dict[str, Any] | None = None) -> None:
        self.repository = repository
        self.client = repository.client("olaf")
        self.output = output
        self.author = self.submitted("parser.py", "x\n")
        self.key = self.author.key

    def submitted(self, name: str, text: str, onto: str = "main") -> Agent:
        task = self.client.add(f"Write {name}", **({"output": self.output} if self.output else {})).task
        assert task is not None
        agent = self.repository.agent("ann").claim(str(task["key"]))
        agent.make()
        commit = agent.commit(name, text)
        done = agent.client.submit(agent.receipt, None, "a parser", land=LandRequest(commit=commit, onto=onto))
        assert done.outcome == "VALIDATING", done
        return agent

    def lander(self, name: str = "lee", kind: type[Client] = Client, tools: Tools | None = None) -> Lander:
        folder = str(self.repository.path)
        return Lander(self.repository.client(name, kind), folder, lambda: tools or Tools())

    def lapse(self) -> None:
        self.repository.clock.advance(seconds=601)

    @property
    def state(self) -> str:
        return str(self.client.show(self.key)["state"])

    def on_main(self) -> bool:
        return "parser.py" in self.repository.files()


@pytest.fixture
def stage(repository: Repository) -> Stage:
    return Stage(repository)


def after(lander: Lander, verb: str, happens: Callable[[], object], call: int = 1) -> None:
    assert isinstance(lander.client, Interrupted)
    lander.client.then(verb, happens, call=call)


def land(stage: Stage, lander: Lander | None = None) -> Landed:
    done = (lander or stage.lander()).land(stage.key)
    assert done is not None
    return done


# --- as it goes -----------------------------------------------------------------------------------------------


def test_a_result_that_has_passed_is_merged_and_accepted(stage: Stage) -> None:
    before = stage.repository.tip()
    (done,) = stage.lander().round()
    assert (done.what, done.outcome.outcome, stage.state) == ("landed", "ACCEPTED", "completed")
    assert done.landing is not None
    assert (done.landing.base, done.landing.commit) == (before, stage.repository.tip())
    assert stage.repository.line() == ["A-001: Write parser.py", "first"]
    assert (stage.repository.path / "parser.py").exists()
    row = stage.client.show(stage.key)["validation"]
    assert row["details"] == {"branch": "main", "commit": done.landing.commit, "base": before}
    assert stage.lander().round() == []


def test_work_that_a_person_merged_by_hand_is_accepted(stage: Stage) -> None:
    assert stage.author.tree is not None
    stage.repository.git("merge", "-q", "--no-ff", "-m", "by hand", stage.author.tree.branch)
    tip = stage.repository.tip()
    assert (land(stage).what, stage.state, stage.repository.tip()) == ("landed", "completed", tip)


def test_only_what_a_worktree_here_was_made_for_is_landed_unasked(stage: Stage) -> None:
    stage.repository.git("branch", "release")
    other = stage.submitted("other.py", "y\n", onto="release")
    assert [done.key for done in stage.lander().round()] == [stage.key]
    assert stage.lander().land(other.key) is None  # nor by a runner that has just seen it submitted
    assert "other.py" not in stage.repository.files("release")
    done = stage.lander().land(other.key, by_name=True)  # a person may
    assert done is not None
    assert done.what == "landed"
    assert "other.py" in stage.repository.files("release")


def test_another_repository_has_nothing_to_land(stage: Stage, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    other.commit("a", "1\n")
    lander = Lander(stage.client, str(other.path))
    assert (lander.waiting(), lander.land(stage.key)) == ([], None)


def test_who_may_not_land_one_result_lands_the_others_and_waits_for_none(stage: Stage) -> None:
    other = stage.submitted("lexer.py", "y\n")

    class Limited(Client):
        def take_landing(self, task: str | None = None, **more: Any) -> Any:
            if task == stage.client.show(stage.key)["id"]:
                raise NotAllowed("to land it needs the capability checker")
            return super().take_landing(task, **more)

    lander = stage.lander(kind=Limited)
    assert [done.key for done in lander.round()] == [other.key]
    assert (lander.waits(), lander.round()) == (False, [])


def test_what_waits_for_its_verdict_is_not_landed(repository: Repository) -> None:
    stage = Stage(repository, TESTS)
    assert (stage.lander().waiting(), stage.lander().land(stage.key), stage.on_main()) == ([], None, False)


def test_a_clone_leaves_a_recorded_landing_to_the_repository_that_has_the_merge(stage: Stage, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    stage.repository.git("clone", "-q", "--mirror", str(stage.repository.path / ".git"), str(clone / ".git"))
    stage.repository.git("config", "core.bare", "false", at=clone)
    first = stage.lander(kind=Judged)
    after(first, "land", killed)
    elsewhere = Lander(stage.client, str(clone))
    assert len(elsewhere.waiting()) == 1
    with pytest.raises(KilledHere):
        land(stage, first)
    stage.lapse()
    assert (elsewhere.waiting(), elsewhere.land(stage.key)) == ([], None)
    assert land(stage).what == "landed"


# --- what is in the way ---------------------------------------------------------------------------------------


def test_a_conflict_gives_the_work_back_and_names_files_and_commit(repository: Repository) -> None:
    stage = Stage(repository)
    other = stage.submitted("readme.txt", "mine\n")
    theirs = repository.commit("readme.txt", "theirs\n")
    done = stage.lander().land(other.key)
    assert done is not None
    assert (done.what, repository.tip()) == ("refused", theirs)
    task = stage.client.show(other.key)
    assert (task["state"], task["attempts"], task["last_error"]["error_class"]) == ("retrying", 0, "merge_conflict")
    assert "readme.txt" in task["last_error"]["message"]
    assert other.tree is not None
    assert repository.head(other.tree.path) in task["last_error"]["message"]


def test_a_checkout_in_the_way_costs_nothing_and_lands_once_it_is_free(stage: Stage) -> None:
    stage.repository.write("parser.py", "my own\n")
    lander = stage.lander()
    for _ in range(5):
        done = land(stage, lander)
        assert (done.what, stage.state) == ("waits", "validating")
        assert "parser.py" in done.message
        assert lander.round() == []  # not due
        stage.repository.clock.advance(seconds=31)
    row = stage.client.show(stage.key)["validation"]
    assert (row["tries"], len(stage.client.history(stage.key))) == (0, 1)
    (stage.repository.path / "parser.py").unlink()
    assert [done.what for done in lander.round()] == ["landed"]


def test_a_branch_that_is_gone_asks_a_person_after_the_last_try(stage: Stage) -> None:
    stage.repository.git("checkout", "-q", "-b", "other")
    stage.repository.git("branch", "-q", "-D", "main")
    for _ in range(MOST_TRIES):
        assert land(stage).what == "waits"
        stage.lapse()
    assert stage.state == "paused"


# --- the interleavings ----------------------------------------------------------------------------------------


def test_a_lander_that_died_after_the_record_is_continued_with_its_commit(stage: Stage) -> None:
    first = stage.lander(kind=Judged)
    after(first, "land", killed)
    with pytest.raises(KilledHere):
        land(stage, first)
    assert (stage.on_main(), stage.state) == (False, "validating")
    assert stage.client.cancel(stage.key).outcome == "DENIED_STATE"  # it may be on the branch
    recorded = stage.client.show(stage.key)["landings"][0]["new"]
    stage.lapse()
    assert (land(stage).what, stage.repository.tip(), stage.state) == ("landed", recorded, "completed")


def test_a_lander_that_died_after_the_swap_is_found_on_the_branch(stage: Stage) -> None:
    first = stage.lander(kind=Judged)
    after(first, "before judge", killed)
    with pytest.raises(KilledHere):
        land(stage, first)
    tip = stage.repository.tip()
    assert (stage.on_main(), stage.state) == (True, "validating")
    stage.lapse()
    stage.repository.commit("later.py", "y\n")
    done = land(stage)
    assert done.landing is not None
    assert (done.what, done.landing.commit, stage.state) == ("landed", tip, "completed")


def test_a_late_lander_is_fenced_off_once_the_next_one_has_landed(stage: Stage) -> None:
    first = stage.lander(kind=Judged)

    def taken_over() -> None:
        stage.lapse()
        assert land(stage).what == "landed"

    after(first, "land", taken_over)
    assert land(stage, first).what == "denied"
    assert stage.repository.line() == ["A-001: Write parser.py", "first"]
    assert stage.state == "completed"


def test_a_late_lander_that_swaps_before_the_next_one_has_the_fence_is_found(stage: Stage) -> None:
    first, second = stage.lander(kind=Judged), stage.lander("mo")
    answers: list[Landed] = []

    def taken_over() -> None:
        stage.lapse()
        taken = second.client.take_landing(stage.key)
        assert taken.outcome == "GRANTED"
        after(first, "before judge", lambda: answers.append(second._land(taken)))

    after(first, "land", taken_over)
    assert land(stage, first).what == "denied"
    assert [done.what for done in answers] == ["landed"]
    assert (stage.repository.line(), stage.state) == (["A-001: Write parser.py", "first"], "completed")


def test_who_gives_up_a_landing_has_fenced_the_earlier_lander_off(stage: Stage) -> None:
    """Else its branch would be moved after the task was cancelled."""
    first = stage.lander(kind=Judged)

    def blocked() -> None:
        stage.lapse()
        stage.repository.write("parser.py", "my own\n")
        assert land(stage).what == "waits"
        assert stage.client.cancel(stage.key).outcome == "UPDATED"
        (stage.repository.path / "parser.py").unlink()

    after(first, "land", blocked)
    assert land(stage, first).what == "denied"
    assert (stage.on_main(), stage.state) == (False, "cancelled")


def test_who_cannot_take_the_fence_does_not_give_a_recorded_landing_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stage.lander(kind=Judged)
    after(first, "land", killed)
    with pytest.raises(KilledHere):
        land(stage, first)
    stage.lapse()

    def failing(*_: object) -> None:
        raise git.GitFailed("the disk is full")

    monkeypatch.setattr("tenure.agents.fences.take", failing)
    assert land(stage).what == "waits"
    assert stage.client.cancel(stage.key).outcome == "DENIED_STATE"
    monkeypatch.undo()
    stage.lapse()
    assert land(stage).what == "landed"


@pytest.mark.parametrize("at", ["land", "before judge"])
def test_after_a_new_epoch_the_next_lander_looks_at_the_branch(stage: Stage, at: str) -> None:
    first = stage.lander(kind=Judged)
    answers: list[Landed] = []

    def restored() -> None:
        stage.client.new_epoch("restored from a backup")
        answers.append(land(stage))

    after(first, at, restored)
    assert land(stage, first).what == "denied"
    assert [done.what for done in answers] == ["landed"]
    assert (stage.repository.line(), stage.state) == (["A-001: Write parser.py", "first"], "completed")


def test_a_task_that_is_cancelled_before_the_record_lands_nothing(stage: Stage) -> None:
    first = stage.lander(kind=Judged)
    after(first, "renew_validation", lambda: stage.client.cancel(stage.key))
    assert land(stage, first).what == "denied"
    assert (stage.on_main(), stage.state) == (False, "cancelled")


def test_a_task_that_a_person_pauses_lands_when_it_goes_on(stage: Stage) -> None:
    first = stage.lander(kind=Judged)
    after(first, "before judge", lambda: stage.client.pause(stage.key))
    assert land(stage, first).what == "denied"
    assert (stage.on_main(), stage.state) == (True, "paused")
    stage.client.resume(stage.key)
    stage.lapse()
    assert (land(stage).what, stage.state) == ("landed", "completed")


def test_a_store_whose_answer_is_lost_leaves_it_to_the_next_lander(stage: Stage) -> None:
    def lost() -> None:
        raise StoreError("the connection was lost")

    first = stage.lander(kind=Judged)
    after(first, "land", lost)
    with pytest.raises(StoreError):
        land(stage, first)
    assert not stage.on_main()
    stage.lapse()
    assert (land(stage).what, stage.state) == ("landed", "completed")


def test_two_landers_land_once(stage: Stage) -> None:
    first = stage.lander(kind=Judged)
    answers: list[Landed] = []
    after(first, "land", lambda: answers.append(land(stage)))
    assert (land(stage, first).what, answers[0].what) == ("landed", "denied")
    assert stage.repository.line() == ["A-001: Write parser.py", "first"]


def test_a_commit_between_record_and_swap_is_merged_with(stage: Stage) -> None:
    first = stage.lander(kind=Judged)
    after(first, "land", lambda: stage.repository.commit("lexer.py", "y\n"))
    assert land(stage, first).what == "landed"
    assert {"lexer.py", "parser.py"} <= stage.repository.files()


KILLED = """
import os, signal, sys
from tenure import Client
from tenure.agents import checkouts
from tenure.agents.landings import Lander
from tenure.testing.clock import FakeClock

at, store, task, folder, now = sys.argv[1:]
def die():
    os.kill(os.getpid(), signal.SIGKILL)
class Killed(Client):
    def land(self, *args, **more):
        said = super().land(*args, **more)
        return die() if at == "record" else said
    def judge(self, *args, **more):
        return die() if at == "judge" else super().judge(*args, **more)
forward = checkouts.forward
def killed(*args):
    forward(*args)
    if at == "checkout":
        die()
checkouts.forward = killed
Lander(Killed(store, "shop", agent="zombie", session="zombie-s", clock=FakeClock(int(now))), folder).land(task)
"""


@pytest.mark.parametrize("at", ["record", "checkout", "judge"])
def test_a_lander_killed_anywhere_leaves_what_the_next_one_settles(stage: Stage, at: str) -> None:
    repository = stage.repository
    repository.write("readme.txt", "my own change\n")
    words = [at, str(repository.home / "tenure.db"), stage.key, str(repository.path), str(repository.clock.now)]
    ended = subprocess.run([sys.executable, "-c", KILLED, *words], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    wait_until(lambda: not list((repository.path / ".git").rglob("*.lock")))
    assert (stage.state, stage.on_main()) == ("validating", at == "judge")
    stage.lapse()
    assert (land(stage).what, stage.state) == ("landed", "completed")
    assert repository.line() == ["A-001: Write parser.py", "first"]
    assert repository.status() == "M readme.txt"


def test_who_refuses_what_a_lander_died_in_puts_the_checkout_back(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the person's next commit would have work that was refused."""
    stage = Stage(repository, TESTS)
    checked(stage, ALONE)
    forward = checkouts.forward

    def dying(*args: Any) -> None:
        forward(*args)
        raise KilledHere

    monkeypatch.setattr(checkouts, "forward", dying)
    with pytest.raises(KilledHere):
        land(stage)
    monkeypatch.undo()
    assert repository.status() == "A  parser.py"
    stage.lapse()
    repository.write("readme.txt", "my own change\n")
    repository.write("lexer.py", "y\n")
    repository.git("add", "lexer.py")
    repository.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "lexer", "--", "lexer.py")
    assert land(stage, stage.lander(tools=tools(repository, ALONE))).what == "refused"
    assert repository.status() == "M readme.txt"


# --- checks of the merge --------------------------------------------------------------------------------------


def tools(repository: Repository, script: str) -> Tools:
    argv = (sys.executable, "-c", script)
    return Tools({"unit": Command(argv=argv, sandbox="never")}, root=str(repository.path))


ALONE = "import os, sys; sys.exit(os.path.exists('parser.py') and os.path.exists('lexer.py'))"


def checked(stage: Stage, script: str) -> Any:
    return ResultChecker(stage.repository.client("vera"), tools(stage.repository, script)).check_task(stage.key)


def test_a_check_runs_in_the_merge_and_its_verdict_names_what_it_saw(repository: Repository) -> None:
    stage = Stage(repository, TESTS)
    theirs = repository.commit("lexer.py", "y\n")
    refused = checked(stage, ALONE)  # red only where both are
    assert refused.outcome.state == "retrying"
    row = stage.client.show(stage.key)["validation"]
    assert stage.author.tree is not None
    assert (row["details"]["base"], row["details"]["commit"]) == (theirs, repository.head(stage.author.tree.path))
    assert not stage.on_main()
    assert not [tree for tree in git.trees(str(repository.path)) if "check-" in tree.path]


def test_a_branch_that_has_moved_is_checked_again_before_it_is_moved(repository: Repository) -> None:
    stage = Stage(repository, TESTS)
    checked(stage, ALONE)
    theirs = repository.commit("lexer.py", "y\n")
    done = land(stage, stage.lander(tools=tools(repository, ALONE)))
    assert (done.what, repository.tip(), stage.state) == ("refused", theirs, "retrying")
    assert stage.client.show(stage.key)["last_error"]["error_class"] == "invalid_output"


def test_a_branch_that_moves_while_it_is_landed_is_checked_again(repository: Repository) -> None:
    stage = Stage(repository, TESTS)
    checked(stage, ALONE)
    lander = stage.lander(kind=Judged, tools=tools(repository, ALONE))
    after(lander, "land", lambda: repository.commit("lexer.py", "y\n"))
    assert (land(stage, lander).what, stage.on_main(), stage.state) == ("refused", False, "retrying")


def test_what_has_not_moved_is_not_checked_again_and_who_cannot_check_leaves_it(repository: Repository) -> None:
    stage = Stage(repository, TESTS)
    checked(stage, ALONE)
    other = stage.submitted("other.py", "y\n")
    assert land(stage).what == "landed"  # without tools: the branch is as the check saw it
    ResultChecker(repository.client("vera"), tools(repository, ALONE)).check_task(other.key)
    repository.commit("lexer.py", "y\n")
    done = stage.lander().land(other.key)
    assert done is not None
    assert (done.what, stage.client.show(other.key)["state"]) == ("waits", "validating")
    assert "main has moved, and the check does not run here" in done.message


def test_a_check_that_is_ended_with_its_runner_is_no_try(repository: Repository) -> None:
    stage = Stage(repository, TESTS)
    checked(stage, ALONE)
    repository.commit("lexer.py", "y\n")
    slow = stage.lander(tools=tools(repository, "import time; time.sleep(60)"))
    done = slow.land(stage.key, lambda: False)
    assert done is not None
    assert (done.what, stage.client.show(stage.key)["validation"]["tries"]) == ("waits", 0)
    assert land(stage, stage.lander(tools=tools(repository, "pass"))).what == "landed"


def test_the_verdict_of_a_person_stands_when_the_branch_has_moved(repository: Repository) -> None:
    stage = Stage(repository, TESTS)
    stage.client.approve(stage.key)
    repository.commit("lexer.py", "y\n")
    assert land(stage).what == "landed"


def test_a_tree_for_a_check_is_the_work_itself_while_the_branch_has_not_moved(stage: Stage) -> None:
    folder, (one,) = str(stage.repository.path), stage.lander().waiting()
    assert stage.author.tree is not None
    with merged(folder, one["land"]) as found:
        assert os.path.realpath(found.tree) == os.path.realpath(stage.author.tree.path)
    stage.repository.commit("lexer.py", "y\n")
    with merged(folder, one["land"]) as found:
        assert {"lexer.py", "parser.py"} <= {file.name for file in Path(found.tree).iterdir()}
        made = found.tree
    assert not Path(made).exists()
