"""`tenure worktree …` and `tenure land`, in process and as a crowd of processes."""

from __future__ import annotations

import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import Said, Tenure
from tests.worktrees.conftest import Repository


@pytest.fixture
def tenure(tmp_path: Path, own_settings: None) -> Tenure:
    """A repository with one commit that `tenure init` has been run in."""
    repository = Repository(tmp_path / "shop")
    repository.commit("readme.txt", "hello\n")
    here = Tenure(repository.path, dict(os.environ))
    assert here("init", "--session", "s").code == 0
    return here


@pytest.fixture
def repository(tenure: Tenure) -> Repository:
    found = Repository.__new__(Repository)
    found.path = tenure.folder
    return found


def speaking(session: str = "s") -> tuple[str, ...]:
    """Receipts are kept for one agent of a session: who claims, and who uses the claim, must be the same."""
    return "--session", session, "--agent", session


def claimed(tenure: Tenure, title: str = "Write the parser", session: str = "s") -> str:
    ref = str(tenure("add", title, "--json").json["ref"])
    assert tenure("claim", ref, *speaking(session)).code == 0
    return ref


def at(folder: str) -> Tenure:
    return Tenure(Path(folder), dict(os.environ))


def worktree(tenure: Tenure, *words: object, session: str = "s") -> dict[str, object]:
    said = tenure("worktree", "add", *words, *speaking(session), "--json")
    assert said.code == 0, said
    value: dict[str, object] = said.json
    return value


def test_from_claim_to_landing(tenure: Tenure, repository: Repository) -> None:
    ref = claimed(tenure)
    made = worktree(tenure)
    assert made["path"] == str(tenure.folder / ".tenure" / "worktrees" / "A-001-gen1")
    assert (made["onto"], made["left_behind"]) == ("main", [])
    assert repository.status() == ""  # init's own files are ignored, and so are worktrees
    inside = at(str(made["path"]))
    repository.commit("parser.py", "x\n", inside.folder)
    said = inside("land", *speaking(), "-s", "a parser", "--result", '{"tests": 3}', "--json")
    assert said.code == 0, said
    assert (said.json["outcome"], said.json["landing"]["branch"]) == ("ACCEPTED", "main")
    shown = tenure("show", ref, "--json").json
    assert (shown["state"], shown["result"]["data"]["tests"]) == ("completed", 3)
    assert shown["result"]["data"]["commit"] == repository.tip()
    assert tenure("whoami", *speaking(), "--json").json["holds"] == []
    gone = tenure("worktree", "remove", "--ended", *speaking(), "--json")
    assert (gone.code, [row["path"] for row in gone.json["removed"]]) == (0, [made["path"]])
    assert tenure("worktree", "list", "--json").json == []


def test_people_get_sentences(tenure: Tenure, repository: Repository) -> None:
    claimed(tenure)
    said = tenure("worktree", "add", *speaking())
    path = said.out.splitlines()[0]
    assert "on tenure/A-001-write-the-parser/gen1, from " in said.out
    assert "`tenure land` puts it on main" in said.out
    repository.commit("parser.py", "x\n", path)
    listed = tenure("worktree", "list", *speaking()).out.splitlines()
    assert listed[0].split() == ["task", "gen", "claim", "held", "by", "unlanded", "changed", "branch", "path"]
    assert listed[1].split()[:6] == ["A-001-write-the-parser", "1", "live", "s", "1", "0"]
    said = tenure("land", *speaking())
    assert f"landed on main as {repository.tip()[:12]}" in said.out
    assert f"{tenure.folder} was updated with it" in said.out
    assert "ACCEPTED" in said.out


def test_inside_a_worktree_its_task_is_meant(tenure: Tenure, repository: Repository) -> None:
    claimed(tenure)
    other = claimed(tenure, "Write the lexer")
    made = worktree(tenure, other)
    repository.commit("lexer.py", "x\n", str(made["path"]))
    assert tenure("land", *speaking()).code == 4  # two are held, and none is named
    said = at(str(made["path"]))("land", *speaking(), "--json")
    assert (said.code, said.json["landing"]["branch"]) == (0, "main")
    assert tenure("show", other, "--json").json["state"] == "completed"


def test_each_obstacle_has_its_own_code_and_exit_code(tenure: Tenure, repository: Repository) -> None:
    claimed(tenure)
    path = str(worktree(tenure)["path"])

    def refused(*words: str) -> tuple[int, str]:
        said = at(path)("land", *words, *speaking(), "--json")
        return said.code, said.json["error"]["code"]

    assert refused() == (7, "NOTHING_TO_LAND")
    repository.write("readme.txt", "mine\n", path)
    assert refused() == (7, "TREE_NOT_CLEAN")
    repository.commit("readme.txt", "mine\n", path)
    assert refused("--onto", "nowhere") == (4, "NOT_FOUND")
    assert refused("--from", "nowhere") == (8, "INVALID_INPUT")
    repository.write("readme.txt", "the user's\n")
    assert refused() == (7, "CHECKOUT_IN_THE_WAY")
    repository.commit("readme.txt", "the user's\n")
    assert refused() == (7, "MERGE_CONFLICT")
    said = at(path)("land", *speaking())
    assert (said.code, said.out) == (7, "")
    assert "conflicts with main in readme.txt" in said.err
    assert tenure("show", "A-001", "--json").json["state"] == "running"


def test_a_stale_holder_is_refused(tenure: Tenure, repository: Repository) -> None:
    ref = claimed(tenure)
    receipt = tenure("whoami", *speaking(), "--receipt", "--json").json["holds"][0]["receipt"]
    path = str(worktree(tenure)["path"])
    repository.commit("parser.py", "x\n", path)
    assert tenure("recover", ref).code == 0
    assert tenure("claim", ref, *speaking("bo")).code == 0
    said = at(path)("land", "--receipt", receipt, *speaking(), "--json")
    assert (said.code, said.json["outcome"], said.json["landing"]["commit"]) == (6, "STALE_GENERATION", None)
    assert said.json["directive"]
    said = tenure("worktree", "add", "--receipt", receipt, "--json")
    assert (said.code, said.json["outcome"]) == (6, "STALE_GENERATION")
    made = worktree(tenure, session="bo")
    assert made["left_behind"] == [{"branch": "tenure/A-001-write-the-parser/gen1", "commits": 1}]
    rows = {row["generation"]: row["claim"] for row in tenure("worktree", "list", "--json").json}
    assert rows == {1: "stale", 2: "live"}


def test_removing_says_what_is_in_the_way_and_advises_nothing_rash(tenure: Tenure, repository: Repository) -> None:
    ref = claimed(tenure)
    path = str(worktree(tenure)["path"])
    said = tenure("worktree", "remove", ref, *speaking())
    assert (said.code, "its claim is live, held by s" in said.out) == (7, True)
    repository.commit("parser.py", "x\n", path)
    repository.write("note.txt", "x\n", path)
    assert tenure("release", ref, *speaking()).code == 0
    said = tenure("worktree", "remove", ref)
    assert said.code == 7
    assert "uncommitted changes: note.txt" in said.out
    assert "commits that are on no other branch: 1" in said.out
    assert "force" not in said.out + said.err
    assert at(path)("worktree", "remove", ref).out.count("you are in it") == 1
    Path(path, "note.txt").unlink()
    repository.git("branch", "kept", "tenure/A-001-write-the-parser/gen1")  # as the answer advised
    assert tenure("worktree", "remove", "--ended").code == 0
    assert not Path(path).exists()
    assert repository.git("log", "-1", "--format=%s", "kept") == "change parser.py"


def test_removing_wants_to_know_what(tenure: Tenure) -> None:
    assert tenure("worktree", "remove").code == 2
    assert tenure("worktree", "remove", "A-001", "--ended").code == 2
    assert tenure("worktree", "remove", "A-001").code == 4
    assert tenure("worktree", "remove", "--ended").out == "nothing to remove\n"
    assert "tenure worktree add" in tenure("worktree", "list").out


def test_a_folder_outside_of_a_repository_is_reported(tmp_path: Path) -> None:
    plain = Tenure(tmp_path, dict(os.environ))
    assert plain("init", "--session", "s").code == 0
    claimed(plain)
    for words in (("worktree", "add"), ("worktree", "list"), ("land", "--onto", "main")):
        said = plain(*words, *speaking(), "--json")
        assert (said.code, said.json["error"]["code"]) == (8, "NO_REPOSITORY"), words


def crowd(tenure: Tenure, commands: list[tuple[str, list[str]]]) -> list[Said]:
    """All at once, each in a process of its own and in its own folder."""
    processes = [
        subprocess.Popen(
            tenure.command("-C", folder, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=tenure.environ,
        )
        for folder, words in commands
    ]  # fmt: skip
    said = [process.communicate(timeout=300) for process in processes]
    return [Said(process.returncode, *words) for process, words in zip(processes, said, strict=True)]


def test_eight_processes_land_at_once_and_nothing_is_lost(tenure: Tenure, repository: Repository) -> None:
    repository.write("untracked.txt", "the user's own\n")
    sessions = [f"agent{number}" for number in range(8)]
    for number, session in enumerate(sessions):
        claimed(tenure, f"Part {number}", session)
    here = str(tenure.folder)
    made = crowd(tenure, [(here, ["worktree", "add", *speaking(session), "--json"]) for session in sessions])
    assert [said.code for said in made] == [0] * 8, [said.out for said in made]
    paths = [said.json["path"] for said in made]
    for number, path in enumerate(paths):
        repository.commit(f"part{number}.py", f"{number}\n", path)
    lands = [["land", *speaking(session), "--json"] for session in sessions]
    answers = crowd(tenure, list(zip(paths, lands, strict=True)))
    assert [said.code for said in answers] == [0] * 8, [said.err for said in answers]
    assert {json.loads(said.out)["outcome"] for said in answers} == {"ACCEPTED"}
    assert {f"part{number}.py" for number in range(8)} < repository.files()
    line = repository.line()
    assert (len(line), sorted(line)) == (
        9,
        sorted([*(f"A-00{n + 1}: Part {n}" for n in range(8)), "change readme.txt"]),
    )
    # each landed on what the one before it had left: a chain without gaps
    commits = {said.json["landing"]["commit"]: said.json["landing"]["base"] for said in answers}
    chain = repository.git("rev-list", "--first-parent", "main").splitlines()
    assert [(new, commits[new]) for new in chain[:-1]] == list(pairwise(chain))
    assert repository.status() == "?? untracked.txt"
    assert all((tenure.folder / f"part{number}.py").read_text() == f"{number}\n" for number in range(8))
    assert len(tenure("worktree", "remove", "--ended", "--json").json["removed"]) == 8


def test_of_eight_that_change_the_same_line_one_lands(tenure: Tenure, repository: Repository) -> None:
    commands = []
    for number in range(8):
        session = f"agent{number}"
        claimed(tenure, f"Part {number}", session)
        path = str(worktree(tenure, session=session)["path"])
        repository.commit("readme.txt", f"{number}\n", path)
        commands.append((path, ["land", *speaking(session), "--json"]))
    answers = crowd(tenure, commands)
    assert sorted(said.code for said in answers) == [0] + [7] * 7
    assert len(repository.line()) == 2
    assert repository.status() == ""
    # the others still hold their tasks, with their commits
    assert len(tenure("list", "-s", "running", "--json").json) == 7


def test_eight_processes_make_the_worktree_of_one_claim(tenure: Tenure, repository: Repository) -> None:
    """One claim, many processes: each gets a worktree, and the task has no more than its names allow."""
    claimed(tenure)
    answers = crowd(tenure, [(str(tenure.folder), ["worktree", "add", *speaking(), "--json"])] * 8)
    paths = {said.json["path"] for said in answers if said.code == 0}
    assert paths
    assert len(paths) <= 2
    assert [said.json["error"] for said in answers if said.code and "may be creating it" not in said.out] == []
    again = crowd(tenure, [(str(tenure.folder), ["worktree", "add", *speaking(), "--json"])] * 4)
    assert {said.json["path"] for said in again} <= paths


def test_work_for_an_older_description_does_not_land_until_the_new_one_was_seen(
    tenure: Tenure, repository: Repository
) -> None:
    ref = claimed(tenure)
    inside = at(str(worktree(tenure)["path"]))
    repository.commit("parser.py", "x\n", inside.folder)
    before = repository.tip()
    assert tenure("edit", ref, "-d", "In another language.").code == 0
    refused = inside("land", *speaking())
    assert (refused.code, "CHANGED" in refused.out, "--seen 2" in refused.out) == (8, True, True)
    assert "+In another language." in refused.out
    assert repository.tip() == before
    landed = inside("land", *speaking(), "--seen", "2", "--json")
    assert (landed.code, landed.json["outcome"]) == (0, "ACCEPTED")
    assert repository.tip() != before


def test_a_worktree_lends_its_claim_to_nobody(tenure: Tenure, repository: Repository) -> None:
    ref = claimed(tenure)
    inside = at(str(worktree(tenure)["path"]))
    repository.commit("parser.py", "x\n", inside.folder)
    for words in (("done",), ("done", ref), ("done", f"{ref}@1"), ("land",), ("release", ref)):
        said = inside(*words, *speaking("other"), "--json")
        assert (said.code, said.json["error"]["code"]) == (6, "NO_RECEIPT"), words
    assert tenure("show", ref, "--json").json["state"] == "running"
    assert inside("land", *speaking(), "--json").json["outcome"] == "ACCEPTED"
