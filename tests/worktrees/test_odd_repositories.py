"""Repositories as they also come: strange paths, no commit, bare, submodules, other hashes, hooks, no identity."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.agents import fences, git, land, worktrees
from tenure.core.errors import InvalidInput
from tests.servers.fixtures import provided
from tests.worktrees.conftest import Agent, Repository


def begin(repository: Repository) -> Agent:
    added = repository.client("ann").add("Write the parser").task
    assert added is not None
    agent = repository.agent("ann").claim(added["ref"])
    agent.make()
    return agent


# --- paths --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["with space", "new\nline", "ünïcödé 🎉", "quote'\"$(x)", "-dash", "tab\there"])
def test_any_path_will_do(tmp_path: Path, name: str) -> None:
    repository = Repository(tmp_path / name / "shop").start()
    agent = begin(repository)
    for file in (name, f"{name}/in a folder.txt"):
        agent.commit(f"sub/{file}.py" if file == name else file, "x\n")
    landed = agent.land()
    assert (landed.outcome.outcome, landed.checkout) == ("ACCEPTED", str(repository.path))
    assert f"sub/{name}.py" in repository.files()
    assert repository.status() == ""
    assert agent.tree is not None
    assert worktrees.record_here(agent.tree.path).claim == fences.claim_mark(agent.receipt)
    assert worktrees.release(agent.tree) == ()


@pytest.mark.parametrize("name", ["with space.py", "new\nline.py", "ünïcödé.py", '"quoted".py', " leading.py"])
def test_a_conflict_in_any_file_is_named(repository: Repository, ann: Agent, name: str) -> None:
    repository.commit(name, "theirs\n")
    ann.commit(name, "mine\n")
    with pytest.raises(land.MergeConflict) as caught:
        ann.land()
    assert caught.value.files == (name,)
    assert "\n" not in caught.value.message


def test_file_names_that_are_not_utf_8_can_be_shown(repository: Repository) -> None:
    (repository.path / "caf\udce9.py").write_text("x\n")
    with pytest.raises(worktrees.NotClean, match=r"caf\\xe9\.py") as caught:
        worktrees.check_clean(str(repository.path))
    assert caught.value.message.encode()


def test_a_store_in_a_part_of_the_repository_serves_its_worktrees(tmp_path: Path) -> None:
    from tenure.locations import find_folder

    repository = Repository(tmp_path / "mono")
    repository.commit("shop/app.py", "x\n")
    part = Repository.__new__(Repository)
    part.path, part.clock = repository.path / "shop", repository.clock
    part.store()
    agent = begin(part)
    assert agent.tree is not None
    inside = Path(agent.tree.path) / "shop"
    assert find_folder(str(inside)) == str(part.home)
    repository.commit("shop/parser.py", "y\n", agent.tree.path)
    assert agent.land(inside).outcome.outcome == "ACCEPTED"
    assert repository.status() == ""


# --- states of a repository ---------------------------------------------------------------------------------


def test_a_folder_outside_of_a_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(git.NoRepository, match="is not in a git repository") as caught:
        git.find(str(tmp_path))
    assert caught.value.code == "NO_REPOSITORY"
    with pytest.raises(git.NoRepository):
        worktrees.check_done(str(tmp_path), True, None)


def test_a_bare_repository_is_refused(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare")], check=True)
    with pytest.raises(git.NoRepository, match="bare repository"):
        git.find(str(tmp_path / "bare"))


def test_a_worktree_of_a_bare_repository_will_do(repository: Repository, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(repository.path), str(bare)], check=True)
    tree = Repository.__new__(Repository)
    tree.path, tree.clock = tmp_path / "tree", repository.clock
    subprocess.run(["git", "-C", str(bare), "worktree", "add", "-q", str(tree.path), "main"], check=True)
    tree.store()
    agent = begin(tree)
    agent.commit("parser.py", "x\n")
    landed = agent.land()
    assert (landed.outcome.outcome, landed.checkout) == ("ACCEPTED", str(tree.path))
    assert tree.status() == ""


def test_a_repository_without_a_commit_says_what_is_missing(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "empty").store()
    with pytest.raises(InvalidInput, match="no commit yet"):
        begin(repository)
    assert repository.client("ann").show("A-001")["state"] == "running"  # the claim is as good as before


def test_a_detached_head_is_a_base_but_no_target(repository: Repository, task: str) -> None:
    repository.git("switch", "-q", "--detach")
    agent = repository.agent("ann").claim(task)
    tree = agent.make()
    assert (tree.base, tree.onto) == (repository.head(), None)
    agent.commit("parser.py", "x\n")
    with pytest.raises(InvalidInput, match="unknown target branch"):
        agent.land()
    landed = agent.land(onto="main")
    assert (landed.outcome.outcome, landed.checkout) == ("ACCEPTED", None)
    assert not (repository.path / "parser.py").exists()  # the user looks at a commit, not at main


def test_a_worktree_whose_head_is_detached_lands_what_it_has(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    repository.git("switch", "-q", "--detach", at=ann.tree.path)
    work = ann.commit("parser.py", "x\n")
    ann.land()
    assert repository.git("rev-parse", "main^2") == work


def test_histories_without_a_common_commit_are_not_merged(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    repository.git("checkout", "-q", "--orphan", "alone", at=ann.tree.path)
    ann.commit("parser.py", "x\n")
    with pytest.raises(git.GitFailed, match="unrelated histories"):
        ann.land()
    assert "parser.py" not in repository.files()


def test_ids_of_sha_256_will_do(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop", "--object-format=sha256").start()
    agent = begin(repository)
    agent.commit("parser.py", "x\n")
    landed = agent.land()
    assert (landed.outcome.outcome, len(landed.commit or "")) == ("ACCEPTED", 64)
    assert agent.client.show(agent.key)["landings"][0]["new"] == landed.commit


def test_branches_with_slashes_and_letters_of_any_alphabet_will_do(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "shop", branch="team/größe").start()
    agent = begin(repository)
    agent.commit("parser.py", "x\n")
    assert agent.land().branch == "team/größe"
    assert repository.status() == ""


def test_refs_that_are_packed_are_found(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    repository.git("pack-refs", "--all")
    assert ann.land().outcome.outcome == "ACCEPTED"


def test_submodules_are_no_hindrance(repository: Repository, tmp_path: Path) -> None:
    library = Repository(tmp_path / "library")
    library.commit("lib.py", "x\n")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib")
    repository.git("commit", "-q", "-m", "lib")
    agent = begin(repository)
    agent.commit("parser.py", "x\n")
    assert agent.land().outcome.outcome == "ACCEPTED"
    assert repository.status() == ""
    assert (repository.path / "lib" / "lib.py").exists()
    assert agent.tree is not None
    assert worktrees.release(agent.tree) == ()


def test_a_worktree_with_a_submodule_checked_out_stays(repository: Repository, tmp_path: Path) -> None:
    """Commits in there would be lost with it, and no branch of this repository contains them."""
    library = Repository(tmp_path / "library")
    library.commit("lib.py", "x\n")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.path), "lib")
    repository.git("commit", "-q", "-m", "lib")
    agent = begin(repository)
    assert agent.tree is not None
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", at=agent.tree.path)
    inside = Path(agent.tree.path) / "lib"
    assert worktrees.record_here(str(inside)).claim == fences.claim_mark(agent.receipt)
    (reason,) = worktrees.release(agent.tree)
    assert "submodules" in reason
    assert "force" not in reason
    assert (inside / "lib.py").exists()


def test_a_worktree_that_another_command_is_just_making_is_waited_for(
    repository: Repository, ann: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For some milliseconds git itself cannot list worktrees then."""
    half = repository.path / ".git" / "worktrees" / "half"
    half.mkdir()
    (half / "gitdir").write_text(str(repository.path.parent / "half" / ".git"))
    (half / "commondir").touch()
    waits = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            shutil.rmtree(half)

    monkeypatch.setattr("tenure.agents.git.time.sleep", pause)
    assert [tree.branch for tree in git.trees(str(repository.path))] == ["main", "tenure/A-001-write-the-parser/gen1"]
    assert len(waits) == 3


def test_one_that_stays_half_made_is_named(repository: Repository, ann: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    half = repository.path / ".git" / "worktrees" / "half"
    half.mkdir()
    (half / "gitdir").write_text(str(repository.path.parent / "half" / ".git"))
    (half / "commondir").touch()
    monkeypatch.setattr("tenure.agents.git.MOST_LOOKS", 2)
    with pytest.raises(git.GitFailed, match="worktrees/half"):
        git.trees(str(repository.path))


# --- hooks and identity -------------------------------------------------------------------------------------


def hook(repository: Repository, name: str, script: str) -> None:
    """One that the user has for all repositories; those of a repository do not run."""
    file = Path.home() / "hooks" / name
    file.parent.mkdir(exist_ok=True)
    repository.git("config", "--global", "core.hooksPath", "~/hooks")
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_a_failing_pre_commit_hook_stops_no_plumbing_but_every_commit(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    hook(repository, "pre-commit", "echo lint: parser.py is ugly >&2; exit 1")
    assert ann.tree is not None
    repository.write("more.py", "y\n", ann.tree.path)
    with pytest.raises(worktrees.CommitRefused, match=r"lint: parser\.py is ugly") as caught:
        worktrees.commit_all(ann.tree, "more")
    assert caught.value.code == "COMMIT_REFUSED"
    assert repository.status(ann.tree.path) == "A  more.py"
    with pytest.raises(worktrees.NotClean):
        ann.land()
    hook(repository, "pre-commit", "exit 0")
    assert worktrees.commit_all(ann.tree, "more")
    hook(repository, "pre-commit", "exit 1")
    assert ann.land().outcome.outcome == "ACCEPTED"  # every commit of it has passed the hook


def test_a_hook_is_told_the_folder_of_its_worktree(
    repository: Repository, ann: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by a shell, which corrects PWD itself."""
    told = tmp_path / "told"
    text = f"#!{sys.executable}\nimport os\nopen({str(told)!r}, 'w').write(os.environ['PWD'])\n"
    hook(repository, "pre-commit", "")
    (Path.home() / "hooks" / "pre-commit").write_text(text)
    monkeypatch.setenv("PWD", str(repository.path))
    tree = ann.make()
    (Path(tree.path) / "new.py").write_text("x\n")
    worktrees.commit_all(tree, "work")
    assert told.read_text() == tree.path


def test_hooks_that_want_a_checkout_of_the_merge_are_named(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    hook(repository, "pre-merge-commit", "exit 1")
    hook(repository, "post-merge", "exit 1")
    landed = ann.land()
    assert (landed.outcome.outcome, landed.not_run) == ("ACCEPTED", ("pre-merge-commit", "post-merge"))


def test_the_commit_msg_hook_has_its_say(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    hook(
        repository, "commit-msg", 'grep -q "^PROJ-" "$1" || { echo "no ticket" >&2; exit 1; }; echo "Seen: yes" >> "$1"'
    )
    tip = repository.tip()
    with pytest.raises(land.HookRefused, match="no ticket"):
        ann.land()
    assert (repository.tip(), "landings" in ann.client.show(ann.key)) == (tip, False)
    ann.land(message="PROJ-7 the parser")
    said = repository.git("log", "-1", "--format=%B", "main").splitlines()
    assert (said[0], said[-1]) == ("PROJ-7 the parser", "Seen: yes")


def test_a_hook_that_guards_the_branch_is_obeyed(repository: Repository, ann: Agent) -> None:
    ann.commit("parser.py", "x\n")
    hook(repository, "reference-transaction", 'test "$1" != prepared || ! grep -q refs/heads/main')
    tip = repository.tip()
    with pytest.raises(git.GitFailed, match="git will not move main"):
        ann.land()
    assert (repository.tip(), repository.status()) == (tip, "")


def test_a_failing_post_checkout_hook_is_reported(repository: Repository, task: str) -> None:
    hook(repository, "post-checkout", "echo no network >&2; exit 1")
    tree = repository.agent("ann").claim(task).make()
    assert tree.note is not None
    assert "post-checkout" in tree.note
    assert Path(tree.path, "readme.txt").exists()


def test_a_name_is_put_in_where_git_knows_none(
    repository: Repository, ann: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.commit("parser.py", "x\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    assert ann.tree is not None
    repository.write("more.py", "y\n", ann.tree.path)
    assert worktrees.commit_all(ann.tree, "more")
    assert ann.land().outcome.outcome == "ACCEPTED"
    said = repository.git("log", "-1", "--format=%an <%ae>, %cn <%ce>", "main")
    assert said == "tenure <tenure@localhost>, tenure <tenure@localhost>"


def test_an_author_from_the_environment_is_kept(
    repository: Repository, ann: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.commit("parser.py", "x\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Bo")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "bo@example.org")
    ann.land()
    assert repository.git("log", "-1", "--format=%an <%ae>, %cn", "main") == "Bo <bo@example.org>, tenure"


def test_the_merge_is_signed_where_the_user_signs(repository: Repository, ann: Agent, tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run([provided("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    ann.commit("parser.py", "x\n")
    for name, value in {"gpg.format": "ssh", "user.signingKey": str(key), "commit.gpgSign": "true"}.items():
        repository.git("config", name, value)
    landed = ann.land()
    assert "gpgsig -----BEGIN SSH SIGNATURE" in repository.git("cat-file", "-p", str(landed.commit))


def test_a_git_that_is_missing_is_named(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(git.NoRepository, match="git is not installed"):
        git.find(str(repository.path))


def test_a_git_that_is_too_old_is_named(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A stand-in for a program that cannot be had here: git 2.25, whose merge-tree knows no --write-tree."""
    old = tmp_path / "git"
    old.write_text('#!/bin/sh\n[ "$3" = version ] && echo "git version 2.25.1" || { echo usage: >&2; exit 129; }\n')
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(git.GitFailed, match=r"git 2\.25 is too old") as caught:
        git.merge(str(repository.path), "a", "b")
    assert caught.value.hint == "git 2.38 or newer is needed"
