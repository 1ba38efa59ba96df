"""The branch is checked out somewhere, as it mostly is: what a landing does to that tree, and what it never does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.agents import checkouts
from tenure.agents.land import Landing
from tests.worktrees.conftest import Agent, Interrupted, Repository


def test_a_clean_checkout_is_brought_forward(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    landed = ann.land()
    assert landed.checkout == str(repository.path)
    assert (repository.status(), (repository.path / "parser.py").read_text()) == ("", "x\n")
    assert "tenure land A-001 generation 1" in repository.git("reflog", "-1")


def test_files_that_are_deleted_and_renamed_follow(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    repository.git("mv", "readme.txt", "docs.txt", at=ann.tree.path)
    repository.git("commit", "-q", "-m", "rename", at=ann.tree.path)
    ann.land()
    assert sorted(p.name for p in repository.path.glob("*.txt")) == ["docs.txt"]
    assert repository.status() == ""


@pytest.mark.parametrize("is_staged", [False, True])
def test_changes_in_other_files_are_kept_as_they_are(repository: Repository, ann: Agent, is_staged: bool) -> None:
    repository.write("readme.txt", "my change\n")
    repository.write("untracked.txt", "mine\n")
    if is_staged:
        repository.git("add", "readme.txt")
    before = repository.status()
    ann.commit("parser.py", "x\n")
    assert ann.land().outcome.outcome == "ACCEPTED"
    assert repository.status() == before
    assert (repository.path / "readme.txt").read_text() == "my change\n"
    assert (repository.path / "untracked.txt").read_text() == "mine\n"


@pytest.mark.parametrize("how", ["changed", "staged", "deleted", "untracked", "ignored", "untracked folder"])
def test_changes_that_overlap_stop_the_landing_before_anything_moves(
    repository: Repository, ann: Agent, how: str
) -> None:
    name = {"untracked": "parser.py", "ignored": "local.env", "untracked folder": "made/deep/parser.py"}.get(
        how, "readme.txt"
    )
    if how == "ignored":
        (repository.path / ".git" / "info" / "exclude").write_text("*.env\n")
        assert ann.tree is not None
        repository.write(name, "theirs\n", ann.tree.path)
        repository.git("add", "--force", name, at=ann.tree.path)
        repository.git("commit", "-q", "-m", "env", at=ann.tree.path)
    else:
        ann.commit(name, "theirs\n")
    if how == "deleted":
        (repository.path / name).unlink()
    else:
        repository.write(name, "mine\n")
    if how == "staged":
        repository.git("add", name)
    tip, status = repository.tip(), repository.status()
    with pytest.raises(checkouts.InTheWay, match="made/" if how == "untracked folder" else name) as caught:
        ann.land()
    assert caught.value.code == "CHECKOUT_IN_THE_WAY"
    assert (repository.tip(), repository.status()) == (tip, status)
    assert how == "deleted" or (repository.path / name).read_text() == "mine\n"
    shown = ann.client.show(ann.key)
    assert ("landings" in shown, shown["state"]) == (False, "running")
    # The user moves the file, and the landing succeeds.
    if how != "deleted":
        (repository.path / name).rename(repository.path.parent / "kept")
    repository.git("checkout", "-q", "HEAD", "--", name, ok=False)
    assert ann.land().outcome.outcome == "ACCEPTED"


def test_an_ignored_file_or_folder_that_stands_where_a_new_one_shall_be_is_kept(
    repository: Repository, ann: Agent
) -> None:
    (repository.path / ".git" / "info" / "exclude").write_text("secret*\n.tenure\n")
    assert ann.tree is not None
    repository.write("secret/new.py", "theirs\n", ann.tree.path)
    repository.write("secrets", "theirs\n", ann.tree.path)
    repository.git("add", "--force", "secret", "secrets", at=ann.tree.path)
    repository.git("commit", "-q", "-m", "new", at=ann.tree.path)
    repository.write("secret", "mine, a file where a folder shall be\n")
    repository.write("secrets/key", "mine, a folder where a file shall be\n")
    assert repository.status() == ""
    with pytest.raises(checkouts.InTheWay, match=r"writes: secret, secrets/key"):
        ann.land()
    assert (repository.path / "secret").is_file()
    assert (repository.path / "secrets" / "key").is_file()


def test_a_folder_that_becomes_a_file_goes_forward(repository: Repository, ann: Agent) -> None:
    repository.commit("part/one.py", "1\n")
    assert ann.tree is not None
    repository.git("merge", "-q", "main", at=ann.tree.path)
    repository.git("rm", "-r", "-q", "part", at=ann.tree.path)
    ann.commit("part", "a file now\n")
    assert ann.land().outcome.outcome == "ACCEPTED"
    assert (repository.path / "part").read_text() == "a file now\n"
    assert repository.status() == ""


def test_a_change_that_comes_at_the_last_moment_is_not_overwritten(repository: Repository, task: str) -> None:
    agent = repository.agent("ann", Interrupted).claim(task)
    agent.make()
    agent.commit("readme.txt", "theirs\n")
    assert isinstance(agent.client, Interrupted)
    agent.client.then("land", lambda: repository.write("readme.txt", "mine\n"))
    tip = repository.tip()
    with pytest.raises(checkouts.InTheWay):
        agent.land()
    assert (repository.tip(), repository.status()) == (tip, "M readme.txt")
    assert (repository.path / "readme.txt").read_text() == "mine\n"
    assert not list((repository.path / ".git").rglob("*.lock"))


def landing_while(repository: Repository, task: str, happens: Callable[[], object]) -> Landing:
    """Land while this happens between the record and the swap."""
    agent = repository.agent("ann", Interrupted).claim(task)
    agent.make(onto="main")
    agent.commit("parser.py", "x\n")
    assert isinstance(agent.client, Interrupted)
    agent.client.then("land", happens)
    return agent.land(pause=lambda _: None)


def test_a_tree_that_is_switched_to_another_branch_at_the_last_moment_is_left_alone(
    repository: Repository, task: str
) -> None:
    landed = landing_while(repository, task, lambda: repository.git("switch", "-q", "-c", "feature"))
    assert (landed.outcome.outcome, landed.checkout) == ("ACCEPTED", None)
    assert "parser.py" in repository.files("main")
    assert (repository.status(), (repository.path / "parser.py").exists()) == ("", False)


def test_a_tree_that_is_switched_to_the_branch_at_the_last_moment_is_brought_forward(
    repository: Repository, task: str
) -> None:
    repository.git("switch", "-q", "-c", "feature")
    landed = landing_while(repository, task, lambda: repository.git("switch", "-q", "main"))
    assert (landed.outcome.outcome, landed.checkout) == ("ACCEPTED", str(repository.path))
    assert (repository.status(), (repository.path / "parser.py").exists()) == ("", True)


@pytest.mark.parametrize("bit", ["--assume-unchanged", "--skip-worktree"])
def test_a_file_that_the_user_hides_from_git_is_not_overwritten(repository: Repository, ann: Agent, bit: str) -> None:
    repository.git("update-index", bit, "readme.txt")
    repository.write("readme.txt", "my own settings\n")
    assert repository.status() == ""
    ann.commit("readme.txt", "theirs\n")
    with pytest.raises(checkouts.InTheWay, match=r"readme\.txt"):
        ann.land()
    assert (repository.path / "readme.txt").read_text() == "my own settings\n"


def test_a_file_that_was_only_touched_is_not_a_change(repository: Repository, ann: Agent) -> None:
    ann.commit("readme.txt", "theirs\n")
    os.utime(repository.path / "readme.txt", (1, 1))
    assert ann.land().outcome.outcome == "ACCEPTED"
    assert (repository.path / "readme.txt").read_text() == "theirs\n"


def test_a_checkout_in_another_worktree_is_brought_forward_too(repository: Repository, ann: Agent) -> None:
    other = repository.path.parent / "other tree"
    repository.git("switch", "-q", "-c", "elsewhere")
    repository.git("worktree", "add", "-q", str(other), "main")
    ann.commit("parser.py", "x\n")
    landed = ann.land()
    assert landed.checkout == str(other)
    assert ((other / "parser.py").read_text(), repository.status(other)) == ("x\n", "")
    assert not (repository.path / "parser.py").exists()


def test_a_checkout_whose_folder_is_gone_is_nobody_s(repository: Repository, ann: Agent) -> None:
    other = repository.path.parent / "other"
    repository.git("switch", "-q", "-c", "elsewhere")
    repository.git("worktree", "add", "-q", str(other), "main")
    other.rename(repository.path.parent / "moved")
    ann.commit("parser.py", "x\n")
    assert (ann.land().checkout, "parser.py" in repository.files()) == (None, True)


def test_a_merge_that_is_under_way_there_is_not_disturbed(repository: Repository, ann: Agent) -> None:
    repository.git("switch", "-q", "-c", "side")
    repository.commit("readme.txt", "side\n")
    repository.git("switch", "-q", "main")
    repository.commit("readme.txt", "main\n")
    repository.git("merge", "side", ok=False)
    ann.commit("parser.py", "x\n")
    tip, status = repository.tip(), repository.status()
    with pytest.raises(checkouts.InTheWay, match="a merge is in progress"):
        ann.land()
    assert (repository.tip(), repository.status()) == (tip, status)


def test_a_rebase_of_the_branch_is_not_disturbed(repository: Repository, ann: Agent) -> None:
    repository.git("switch", "-q", "-c", "side")
    repository.commit("readme.txt", "side\n")
    repository.git("switch", "-q", "main")
    repository.commit("readme.txt", "main\n")
    repository.git("rebase", "side", ok=False)
    ann.commit("parser.py", "x\n")
    tip = repository.tip()
    with pytest.raises(checkouts.InTheWay, match="main is being rebased"):
        ann.land()
    assert repository.tip() == tip


def test_a_git_command_at_work_there_is_waited_for(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    lock = repository.path / ".git" / "index.lock"
    lock.touch()
    waits = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            lock.unlink()

    assert ann.land(pause=pause).outcome.outcome == "ACCEPTED"
    assert len(waits) == 3
    assert repository.status() == ""
    assert len(ann.client.log(kind="task.landing")) == 1  # the same merge, recorded once


def test_one_that_never_ends_is_named_and_nothing_has_moved(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    tip = repository.tip()
    (repository.path / ".git" / "index.lock").touch()
    with pytest.raises(checkouts.Busy, match="another git command is running") as caught:
        ann.land(pause=lambda _: None)
    assert "remove" not in f"{caught.value.message} {caught.value.hint}"
    assert repository.tip() == tip


def test_a_branch_checked_out_twice_is_not_moved(repository: Repository, ann: Agent) -> None:
    repository.git("worktree", "add", "-q", "--force", str(repository.path.parent / "twin"), "main")
    ann.commit("parser.py", "x\n")
    with pytest.raises(checkouts.InTheWay, match="more than once"):
        ann.land()


def test_a_checkout_that_shows_only_some_folders_stays_so(repository: Repository, ann: Agent) -> None:
    repository.commit("src/main.py", "m\n")
    repository.git("sparse-checkout", "set", "src")
    assert not (repository.path / "docs").exists()
    ann.commit("docs/parser.md", "x\n")
    ann.commit("src/parser.py", "x\n")
    assert ann.land().outcome.outcome == "ACCEPTED"
    assert (repository.path / "src" / "parser.py").exists()
    assert not Path(repository.path / "docs" / "parser.md").exists()
    assert repository.status() == ""
