"""Landing as it goes when nothing comes in between; and what stops it before anything moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.agents import land, worktrees
from tenure.core.errors import InvalidInput, NotFound
from tests.worktrees.conftest import Agent, Repository


def test_the_work_is_merged_into_the_branch_and_the_result_accepted(repository: Repository, ann: Agent) -> None:
    first, work = repository.tip(), ann.commit("parser.py", "def parse(): ...\n")
    landed = ann.land(summary="a parser")
    assert landed.outcome.outcome == "ACCEPTED"
    assert landed.commit == repository.tip()
    assert repository.git("rev-parse", "main^1", "main^2").split() == [first, work]
    assert landed.base == first
    shown = ann.client.show(ann.key)
    assert shown["state"] == "completed"
    assert shown["result"]["data"] == {"branch": "main", "commit": landed.commit, "base": first}
    assert shown["landings"][0]["new"] == landed.commit


def test_the_merge_names_task_and_generation(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    ann.land(summary="a parser")
    said = repository.git("log", "-1", "--format=%B", "main")
    assert said == f"A-001: Write the parser\n\na parser\n\nTenure-Task: {ann.key}\nTenure-Generation: 1"
    assert repository.git("log", "-1", "--format=%an <%ae> %cn", "main") == "Ann Example <ann@example.org> Ann Example"


def test_a_message_with_trailers_keeps_them(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    ann.land(message="Parse\n\nReviewed-by: Bo <bo@example.org>\n")
    said = repository.git("log", "-1", "--format=%(trailers)", "main")
    assert said.splitlines() == ["Reviewed-by: Bo <bo@example.org>", f"Tenure-Task: {ann.key}", "Tenure-Generation: 1"]


def test_a_result_stands_beside_what_landing_says(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    landed = ann.land(result={"tests": 12, "commit": "forged"})
    data = ann.client.show(ann.key)["result"]["data"]
    assert data == {"tests": 12, "branch": "main", "commit": landed.commit, "base": landed.base}


def test_commits_that_came_to_the_branch_meanwhile_stay(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    theirs = repository.commit("lexer.py", "y\n")
    landed = ann.land()
    assert landed.base == theirs
    assert {"parser.py", "lexer.py", "readme.txt"} <= repository.files()
    assert repository.line() == ["A-001: Write the parser", "change lexer.py", "first"]


def test_a_conflict_names_the_files_and_moves_nothing(repository: Repository, ann: Agent) -> None:
    ann.commit("readme.txt", "mine\n")
    theirs = repository.commit("readme.txt", "theirs\n")
    with pytest.raises(land.MergeConflict, match=r"conflicts with main in readme\.txt") as caught:
        ann.land()
    assert caught.value.files == ("readme.txt",)
    assert (repository.tip(), repository.status()) == (theirs, "")
    assert "landings" not in ann.client.show(ann.key)
    assert ann.client.show(ann.key)["state"] == "running"
    # the way on that the hint names
    assert ann.tree is not None
    repository.git("merge", "main", at=ann.tree.path, ok=False)
    ann.commit("readme.txt", "both\n")
    assert ann.land().outcome.outcome == "ACCEPTED"


def test_what_is_not_committed_is_not_left_behind_in_silence(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    repository.write("new file.py", "y\n", ann.tree.path)
    before = repository.tip()
    with pytest.raises(worktrees.NotClean, match=r"new file\.py"):
        ann.land()
    assert repository.tip() == before


def test_a_worktree_without_a_commit_has_nothing_to_land(repository: Repository, ann: Agent) -> None:
    with pytest.raises(land.NothingToLand):
        ann.land()
    repository.commit("lexer.py", "y\n")
    with pytest.raises(land.NothingToLand):
        ann.land()
    assert ann.client.show(ann.key)["state"] == "running"


def test_a_branch_that_is_not_there_is_not_made(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    with pytest.raises(NotFound, match="mian"):
        ann.land(onto="mian")
    with pytest.raises(InvalidInput):
        ann.land(onto="refs/heads/main")
    with pytest.raises(InvalidInput, match="nowhere"):
        ann.land(source="nowhere")


def test_another_branch_can_be_named(repository: Repository, ann: Agent) -> None:
    repository.git("branch", "team/next")
    before = repository.tip()
    ann.commit("parser.py", "x\n")
    landed = ann.land(onto="team/next")
    assert (landed.branch, landed.commit) == ("team/next", repository.tip("team/next"))
    assert (landed.checkout, repository.tip()) == (None, before)


def test_landing_again_gives_the_same_answer_and_lands_nothing(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    first = ann.land()
    repository.commit("later.py", "y\n")
    tip = repository.tip()
    again = ann.land()
    assert (again.outcome.outcome, again.outcome.again) == ("ACCEPTED", True)
    assert (again.commit, again.base, repository.tip()) == (first.commit, first.base, tip)


def test_landing_again_works_when_the_worktree_was_removed(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    first = ann.land()
    assert ann.tree is not None
    assert worktrees.release(ann.tree) == ()
    again = ann.land(repository.path)
    assert (again.outcome.outcome, again.outcome.again, again.commit) == ("ACCEPTED", True, first.commit)


def test_work_that_was_merged_by_hand_is_submitted(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    repository.git("merge", "-q", "--no-ff", "-m", "by hand", ann.tree.branch)
    tip = repository.tip()
    landed = ann.land()
    assert (landed.outcome.outcome, landed.commit, repository.tip()) == ("ACCEPTED", tip, tip)


def test_a_worktree_that_only_followed_the_branch_has_nothing_to_land(repository: Repository, ann: Agent) -> None:
    repository.commit("lexer.py", "y\n")
    assert ann.tree is not None
    repository.git("merge", "-q", "--ff-only", "main", at=ann.tree.path)
    with pytest.raises(land.NothingToLand) as caught:
        ann.land()
    assert "tenure done --commit" in str(caught.value.hint)


def test_somebody_else_s_merge_is_not_taken_for_the_holder_s(repository: Repository, task: str) -> None:
    repository.git("switch", "-q", "-c", "feature")
    repository.commit("other.py", "x\n")
    repository.git("switch", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "another's", "feature")
    bo = repository.agent("bo").claim(task)
    with pytest.raises(land.NothingToLand):
        bo.land(source="feature", onto="main")
    assert bo.client.show(task)["state"] != "completed"


def test_a_holder_without_a_worktree_lands_the_branch_it_names(repository: Repository, task: str) -> None:
    bo = repository.agent("bo").claim(task)
    repository.git("switch", "-q", "-c", "feature")
    work = repository.commit("parser.py", "x\n")
    with pytest.raises(InvalidInput, match="unknown target branch"):
        bo.land()
    landed = bo.land(onto="main")
    assert (landed.outcome.outcome, repository.git("rev-parse", "main^2")) == ("ACCEPTED", work)


def test_the_worktree_of_a_lapsed_claim_lands_under_the_next_one(repository: Repository, ann: Agent, task: str) -> None:
    ann.commit("parser.py", "x\n")
    repository.clock.advance(seconds=61)
    assert ann.land().outcome.outcome == "ALREADY_EXPIRED"
    assert "parser.py" not in repository.files()
    assert ann.client.results(task) == []  # it would be accepted, as late, and is not on the branch
    ann.claim(task)
    assert ann.generation == 2
    assert ann.land().outcome.outcome == "ACCEPTED"
    assert "Tenure-Generation: 2" in repository.git("log", "-1", "--format=%B", "main")


def test_the_worktree_of_another_task_is_not_landed_by_mistake(repository: Repository, ann: Agent) -> None:
    other = ann.client.add("Write the lexer").task
    assert other is not None
    bo = repository.agent("bo").claim(other["ref"])
    ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    with pytest.raises(InvalidInput, match="is for A-001"):
        bo.land(ann.tree.path)
    bo.make()
    with pytest.raises(land.NothingToLand):  # its own worktree is what is landed, wherever it is asked from
        bo.land(ann.tree.path)


def test_a_worktree_whose_folder_was_deleted_can_still_be_landed(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    assert ann.tree is not None
    Path(ann.tree.path).rename(repository.path.parent / "elsewhere")
    assert ann.land(repository.path).outcome.outcome == "ACCEPTED"
    assert "parser.py" in repository.files()


def test_a_forged_receipt_lands_nothing(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    bo = repository.agent("bo")
    head, _, token = ann.receipt.partition(":")
    bo.receipt = f"{head}:{token[:-2]}{'00' if token[-2:] != '00' else '08'}"
    assert ann.tree is not None
    landed = bo.land(ann.tree.path)
    assert (landed.outcome.outcome, landed.commit) == ("SESSION_MISMATCH", None)
    assert "parser.py" not in repository.files()


def test_work_that_a_budget_has_paused_is_landed(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    ann.client.set_budget("project", usd="1", default_estimate="1")
    ann.client.usage(ann.receipt, "x", cost_usd="1.04")
    assert ann.client.show(ann.key)["state"] == "paused"
    assert ann.land().outcome.outcome == "ACCEPTED"
    assert "parser.py" in repository.files()
