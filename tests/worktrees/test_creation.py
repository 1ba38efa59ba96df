"""Making worktrees: where, on which branch, from what; and what is kept in them."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tenure.agents import fences, git, worktrees
from tenure.core.errors import InvalidInput
from tests.worktrees.conftest import Agent, Repository


def test_a_worktree_carries_task_and_generation_in_its_names(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    assert ann.tree.path == str(repository.home / "worktrees" / "A-001-gen1")
    assert ann.tree.branch == "tenure/A-001-write-the-parser/gen1"
    assert (ann.tree.base, ann.tree.onto) == (repository.tip(), "main")
    assert repository.git("symbolic-ref", "--short", "HEAD", at=ann.tree.path) == ann.tree.branch


def test_the_user_s_checkout_is_not_touched(repository: Repository, task: str) -> None:
    repository.write("readme.txt", "my change\n")
    before = (repository.status(), repository.head(), repository.git("symbolic-ref", "HEAD"))
    repository.agent("ann").claim(task).make()
    assert (repository.status(), repository.head(), repository.git("symbolic-ref", "HEAD")) == before


def test_asked_again_the_same_worktree_is_given(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    first = ann.tree
    assert ann.make() == first
    assert len(git.trees(str(repository.path))) == 2


def test_the_record_of_a_worktree_is_for_the_user_alone_and_has_no_receipt(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    file = Path(repository.git("rev-parse", "--absolute-git-dir", at=ann.tree.path)) / "tenure.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ann.receipt.partition(":")[2] not in file.read_text()
    assert repository.status(ann.tree.path) == ""


def test_the_claim_is_named_anywhere_inside_and_without_a_process(
    repository: Repository, ann: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ann.tree is not None
    deep = Path(ann.tree.path) / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.setattr(subprocess, "Popen", None)  # a call would fail
    assert worktrees.record_here(str(deep)).claim == fences.claim_mark(ann.receipt)
    assert worktrees.record_here(ann.tree.path).claim == fences.claim_mark(ann.receipt)
    assert worktrees.record_here(str(repository.path)) is None
    assert worktrees.record_here("/") is None


def test_a_record_that_is_broken_counts_as_none(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    file = Path(repository.git("rev-parse", "--absolute-git-dir", at=ann.tree.path)) / "tenure.json"
    file.write_bytes(b'{"project": 7')
    assert worktrees.record_here(ann.tree.path) is None


def test_a_git_file_that_points_nowhere_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /does/not/exist\n")
    assert worktrees.record_here(str(tmp_path)) is None
    (tmp_path / ".git").write_bytes(b"\xff\xfe\0")
    assert worktrees.record_here(str(tmp_path)) is None


def test_a_stale_receipt_makes_no_worktree(repository: Repository, task: str) -> None:
    zombie = repository.agent("zombie").claim(task)
    repository.clock.advance(seconds=61)
    repository.agent("bo").claim(task).make()
    with pytest.raises(fences.NotHeld) as caught:
        zombie.make()
    assert caught.value.outcome.outcome == "STALE_GENERATION"
    assert [tree.branch for tree in git.trees(str(repository.path))] == ["main", "tenure/A-001-write-the-parser/gen2"]


def test_the_next_generation_gets_its_own_worktree(repository: Repository, ann: Agent, task: str) -> None:
    work = ann.commit("parser.py", "x\n")
    repository.clock.advance(seconds=61)
    bo = repository.agent("bo").claim(task)
    tree = bo.make()
    assert (tree.branch, tree.base) == ("tenure/A-001-write-the-parser/gen2", repository.tip())
    left = worktrees.left_behind(str(repository.path), bo.key, tree.branch, "main")
    assert left == [("tenure/A-001-write-the-parser/gen1", 1)]
    assert ann.tree is not None
    assert repository.head(ann.tree.path) == work


def test_a_worktree_can_go_on_from_an_earlier_generation_s_branch(
    repository: Repository, ann: Agent, task: str
) -> None:
    work = ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    repository.clock.advance(seconds=61)
    tree = repository.agent("bo").claim(task).make(base=ann.tree.branch)
    assert (tree.base, tree.onto) == (work, "main")


def test_a_base_that_is_a_branch_is_the_target_too(repository: Repository, task: str) -> None:
    repository.git("branch", "develop")
    repository.commit("later.py", "x\n")
    tree = repository.agent("ann").claim(task).make(base="develop")
    assert (tree.base, tree.onto) == (repository.tip("develop"), "develop")


def test_a_base_that_is_a_commit_is_for_the_current_branch(repository: Repository, task: str) -> None:
    first = repository.tip()
    repository.commit("later.py", "x\n")
    tree = repository.agent("ann").claim(task).make(base="HEAD~1")
    assert (tree.base, tree.onto) == (first, "main")


@pytest.mark.parametrize("base", ["nowhere", "--all", "HEAD:readme.txt", "-x", ""])
def test_a_base_that_is_not_a_commit_is_refused(repository: Repository, task: str, base: str) -> None:
    agent = repository.agent("ann").claim(task)
    if base == "":
        assert agent.make(base=base).onto == "main"  # as if not given
        return
    with pytest.raises(InvalidInput, match="no such commit"):
        agent.make(base=base)
    assert len(git.trees(str(repository.path))) == 1


def test_work_begun_inside_a_worktree_is_for_its_target(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    other = ann.client.add("Write the lexer").task
    assert ann.tree is not None
    assert other is not None
    tree = repository.agent("bo").claim(other["ref"]).make(root=ann.tree.path)
    assert (tree.base, tree.onto) == (repository.tip(), "main")
    assert Path(tree.path).parent == Path(ann.tree.path).parent


def test_a_subtask_has_names_that_git_and_every_file_system_allow(repository: Repository, ann: Agent) -> None:
    from tenure.core.commands import NewTask

    spawned = ann.client.spawn(ann.receipt, [NewTask(title="Tokens")])
    assert spawned.tasks is not None
    bo = repository.agent("bo").claim(spawned.tasks[0]["ref"])
    assert bo.key.endswith("::1")
    tree = bo.make()
    assert tree.branch == "tenure/A-001-write-the-parser.1/gen1"
    assert Path(tree.path).name == "A-001.1-gen1"


def test_names_that_another_project_has_taken_get_a_mark(repository: Repository, ann: Agent) -> None:
    twin = repository.client("bo", project="twin")
    twin.init()
    twin.add("Write the parser")
    bo = Agent(repository, twin).claim("A-001")
    tree = bo.make()
    mark = fences.claim_mark(bo.receipt)[:6]
    assert tree.branch == f"tenure/A-001-write-the-parser/gen1-{mark}"
    assert Path(tree.path).name == f"A-001-gen1-{mark}"
    # and each lands its own, behind a fence of its own
    ann.commit("ann.py", "x\n")
    bo.commit("bo.py", "x\n")
    assert [bo.land().outcome.outcome, ann.land().outcome.outcome] == ["ACCEPTED", "ACCEPTED"]
    assert {"ann.py", "bo.py"} <= repository.files()
    assert len(repository.git("for-each-ref", "refs/tenure/land").splitlines()) == 2


def test_a_claim_whose_worktree_was_removed_gets_another(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    first = ann.tree
    assert first is not None
    repository.git("worktree", "remove", first.path)
    second = ann.make()
    assert second.branch != first.branch
    assert repository.git("rev-parse", first.branch)  # the commits are still there
    ann.commit("more.py", "y\n")
    repository.git("worktree", "remove", second.path)
    third = ann.make()  # the marked branch is this claim's alone, so it goes on from it
    assert (third.branch, Path(third.path, "more.py").exists()) == (second.branch, True)


def test_a_key_that_is_none_is_refused(repository: Repository, ann: Agent) -> None:
    for key in ("../../etc", "A-001 x", "-x", "A/B", ".hidden", "a..b", ""):
        with pytest.raises(InvalidInput):
            worktrees.branch_of(key, 1)


def test_a_generation_that_the_receipt_does_not_prove_is_refused(repository: Repository, ann: Agent) -> None:
    ann.generation = 2
    with pytest.raises(InvalidInput, match="not of generation 2"):
        ann.make()


def test_git_s_own_variables_do_not_lead_elsewhere(
    repository: Repository, task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a hook of another repository these are set."""
    other = Repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    agent = repository.agent("ann").claim(task)
    tree = agent.make()
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name)
    assert os.path.commonpath([tree.path, str(repository.path)]) == str(repository.path)
    assert repository.git("rev-parse", tree.branch)
