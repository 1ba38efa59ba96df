"""Removing worktrees: nothing is removed that exists nowhere else."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tenure.agents import worktrees
from tenure.core.errors import InvalidInput
from tests.worktrees.conftest import Agent, Repository


def test_a_landed_worktree_goes_and_its_branch_too(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    ann.land()
    assert ann.tree is not None
    assert worktrees.release(ann.tree) == ()
    assert not Path(ann.tree.path).exists()
    assert repository.git("branch", "--list", "tenure/*") == ""


def test_one_with_changes_stays(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    ann.land()
    assert ann.tree is not None
    repository.write("note.txt", "x\n", ann.tree.path)
    reasons = worktrees.release(ann.tree)
    assert reasons == ("uncommitted changes: note.txt",)
    assert Path(ann.tree.path, "note.txt").exists()


def test_a_worktree_with_unique_commits_stays(repository: Repository, ann: Agent) -> None:
    work = ann.commit("parser.py", "x\n")
    ann.commit("more.py", "x\n")
    assert ann.tree is not None
    (reason,) = worktrees.release(ann.tree)
    assert reason.startswith("commits that are on no other branch: 2, up to ")
    assert repository.git("rev-parse", f"{ann.tree.branch}~1") == work


def test_one_with_commits_on_a_detached_head_stays(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    repository.git("switch", "-q", "--detach", at=ann.tree.path)
    ann.commit("parser.py", "x\n")
    (reason,) = worktrees.release(ann.tree)
    assert reason.startswith("commits that are on no other branch: 1, up to ")


def test_commits_that_another_branch_has_are_safe(repository: Repository, ann: Agent) -> None:
    work = ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    repository.git("branch", "keep", ann.tree.branch)
    assert worktrees.release(ann.tree) == ()
    assert repository.tip("keep") == work


def test_of_two_branches_with_the_same_commit_one_stays(repository: Repository, ann: Agent, task: str) -> None:
    work = ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    repository.clock.advance(seconds=61)
    second = repository.agent("bo").claim(task).make(base=ann.tree.branch)
    assert worktrees.release(ann.tree) == ()
    assert worktrees.release(second) != ()
    assert repository.tip(second.branch) == work


def test_of_many_branches_with_the_same_commit_one_stays_under_concurrent_removal(
    repository: Repository, ann: Agent, task: str
) -> None:
    work = ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    trees = [ann.tree]
    for _ in range(3):
        repository.clock.advance(seconds=61)
        trees.append(repository.agent("bo").claim(task).make(base=ann.tree.branch))
    start = threading.Barrier(len(trees))

    def removed(tree: worktrees.Worktree) -> None:
        start.wait()
        worktrees.release(tree)

    threads = [threading.Thread(target=removed, args=(tree,)) for tree in trees]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert work in repository.git("for-each-ref", "--format=%(objectname)", "refs/heads/tenure")


def test_a_locked_one_stays(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    repository.git("worktree", "lock", "--reason", "on a stick", ann.tree.path)
    assert worktrees.release(ann.tree) == ("git has it locked: on a stick",)


def test_one_whose_folder_is_gone_is_forgotten_once_its_commits_are_safe(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    Path(ann.tree.path).rename(repository.path.parent / "moved")
    (found,) = worktrees.ours(str(repository.path))
    assert found.record is not None
    assert worktrees.remove(str(repository.path), found) != []
    repository.git("merge", "-q", ann.tree.branch)
    (found,) = worktrees.ours(str(repository.path))
    assert worktrees.remove(str(repository.path), found) == []
    assert list(worktrees.ours(str(repository.path))) == []


def test_a_worktree_of_the_user_s_is_none_of_ours(repository: Repository) -> None:
    own = repository.path.parent / "own"
    repository.git("worktree", "add", "-q", str(own))
    assert list(worktrees.ours(str(repository.path))) == []
    (reason,) = worktrees.release(str(own))
    assert "not a worktree of a claim" in reason
    assert own.exists()


# --- what a claim leaves in it ------------------------------------------------------------------------------


def test_everything_left_over_can_be_committed(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    assert worktrees.commit_all(ann.tree, "left over") is None
    repository.write("deep/new.py", "x\n", ann.tree.path)
    Path(ann.tree.path, "readme.txt").unlink()
    made = worktrees.commit_all(ann.tree, "Left over")
    assert made == repository.head(ann.tree.path)
    assert repository.status(ann.tree.path) == ""
    said = repository.git("log", "-1", "--format=%B", ann.tree.branch)
    assert said == f"Left over\n\nTenure-Task: {ann.key}\nTenure-Generation: 1"
    assert ann.land().outcome.outcome == "ACCEPTED"


def test_done_can_want_a_clean_tree(repository: Repository, ann: Agent) -> None:
    assert worktrees.check_done(str(repository.path), True, None) is None
    repository.write("one.py", "x\n")
    repository.write("two two.py", "x\n")
    with pytest.raises(worktrees.NotClean, match=r"one\.py, two two\.py") as caught:
        worktrees.check_done(str(repository.path), True, None)
    assert caught.value.code == "TREE_NOT_CLEAN"
    assert worktrees.check_done(str(repository.path), False, None) is None


def test_many_files_are_counted_not_listed(repository: Repository) -> None:
    for number in range(25):
        repository.write(f"file{number:02}.py", "x\n")
    with pytest.raises(worktrees.NotClean, match=r"file09\.py and 15 more"):
        worktrees.check_done(str(repository.path), True, None)


def test_a_store_that_git_does_not_ignore_makes_no_tree_dirty(repository: Repository) -> None:
    (repository.home / ".gitignore").unlink()
    assert repository.status() != ""
    worktrees.check_done(str(repository.path), True, None)


def test_done_can_want_a_commit_that_exists(repository: Repository) -> None:
    assert worktrees.check_done(str(repository.path), False, "HEAD") == repository.head()
    assert worktrees.check_done(str(repository.path), False, repository.head()[:10]) == repository.head()
    for name in ("0" * 40, "nowhere", "HEAD:readme.txt", "--help"):
        with pytest.raises(InvalidInput, match="no such commit"):
            worktrees.check_done(str(repository.path), False, name)
