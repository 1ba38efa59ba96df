"""A repository in which an agent has named programs at every place that git reads: none of them starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.agents import checkouts, git, worktrees
from tenure.agents.landings import Lander
from tenure.agents.merged_trees import merged
from tenure.core.land_request import LandRequest
from tests.worktrees.conftest import Agent, Repository

HOOKS = (
    "applypatch-msg", "commit-msg", "post-checkout", "post-commit", "post-index-change", "post-merge", "post-rewrite",
    "pre-auto-gc", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "reference-transaction",
)  # fmt: skip
PROGRAMS = (
    "core.fsmonitor", "core.sshCommand", "core.askPass", "core.editor", "core.pager", "core.alternateRefsCommand",
    "sequence.editor", "credential.helper", "credential.https://example.org.helper", "diff.external",
    "diff.evil.command", "diff.evil.textconv", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process",
    "filter.Two.Words.clean", "merge.evil.driver", "merge.text.driver", "gpg.program", "gpg.openpgp.program",
    "gpg.x509.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "trailer.Tenure-Task.command",
    "trailer.evil.cmd", "gc.recentObjectsHook", "interactive.diffFilter", "alias.status", "alias.worktree",
    "pager.log", "pager.status", "submodule.lib.update", "hook.evil.command", "uploadpack.packObjectsHook",
)  # fmt: skip
MORE = {"merge.default": "evil", "hook.evil.event": "post-commit", "filter.evil.required": "true"}


class Hostile:
    """Puts programs into the repository; each adds a line to a file when it is started."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self.repository, self.seen = repository, folder / "seen"
        self.program = folder / "evil"
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.seen}\ncat\nexit 0\n')
        self.program.chmod(0o755)

    def settings(self, at: Path, *where: str) -> None:
        for key in PROGRAMS:
            self.repository.git("config", *where, key, f"{self.program} {key}", at=at)
        for key, value in MORE.items():
            self.repository.git("config", *where, key, value, at=at)

    def hooks(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        for name in HOOKS:
            hook = place / name
            hook.unlink(missing_ok=True)
            hook.symlink_to(self.program)

    def started(self) -> list[str]:
        return self.seen.read_text().splitlines() if self.seen.exists() else []


def in_the_configuration(hostile: Hostile) -> None:
    path = hostile.repository.path
    hostile.settings(path)
    hostile.hooks(path / ".git" / "hooks")
    (path / ".git" / "info").mkdir(exist_ok=True)
    (path / ".git" / "info" / "attributes").write_text("* filter=evil merge=evil diff=evil\n")


def in_an_included_file(hostile: Hostile) -> None:
    path = hostile.repository.path
    other = path / ".git" / "more"
    hostile.settings(path, "--file", str(other))
    hostile.repository.git("config", "include.path", str(other))
    hostile.repository.git("config", "core.attributesFile", str(path / ".git" / "attributes"))
    (path / ".git" / "attributes").write_text("* filter=evil merge=evil diff=evil\n")


def in_a_folder_of_hooks_within_the_tree(hostile: Hostile) -> None:
    hostile.hooks(hostile.repository.path / ".githooks")
    hostile.repository.git("config", "core.hooksPath", ".githooks")


def in_a_folder_below_the_users_setting(hostile: Hostile) -> None:
    """The user's own setting may name a folder by a relative path: an agent's in each working tree."""
    hostile.hooks(hostile.repository.path / ".githooks")
    hostile.repository.git("config", "--global", "core.hooksPath", ".githooks")


def in_the_settings_of_a_worktree(hostile: Hostile) -> None:
    hostile.repository.git("config", "extensions.worktreeConfig", "true")
    hostile.settings(hostile.repository.path, "--worktree")


PLACES = [
    in_the_configuration, in_an_included_file, in_a_folder_of_hooks_within_the_tree,
    in_a_folder_below_the_users_setting, in_the_settings_of_a_worktree,
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_no_program_of_a_repository_starts(
    place: Callable[[Hostile], None], repository: Repository, task: str, tmp_path: Path
) -> None:
    """From the creation of a worktree over the check and the landing to its removal, with a merge in both files."""
    repository.commit(".gitattributes", "* filter=evil merge=evil diff=evil\n")
    base = repository.commit("parser.py", "one\ntwo\nthree\nfour\nfive\n")
    repository.commit("other.py", "the target moved on\n")
    hostile = Hostile(repository, tmp_path)
    place(hostile)
    agent = repository.agent("ann").claim(task)
    tree = agent.make(base, onto="main")
    if place is in_the_settings_of_a_worktree:
        hostile.settings(Path(tree.path), "--worktree")
    repository.write("parser.py", "one\ntwo\nthree\nfour\nFIVE\n", tree.path)
    repository.write("new.py", "x\n", tree.path)
    assert git.changes(tree.path)
    assert worktrees.commit_all(tree, "work")
    git.counted_between(tree.path, base, "HEAD")
    assert agent.land().outcome.outcome == "ACCEPTED"
    assert worktrees.release(tree) == ()
    assert hostile.started() == []
    repository.write("parser.py", "by hand\n")
    repository.git("commit", "-q", "-a", "-m", "by hand", ok=False)
    assert hostile.started() != [], "git by hand does start them"


def test_no_program_of_a_repository_starts_when_a_result_that_has_passed_is_landed(
    repository: Repository, ann: Agent, tmp_path: Path
) -> None:
    """Nor for the tree of its check, which has the merge."""
    work = ann.commit("parser.py", "x\n")
    repository.commit(".gitattributes", "* filter=evil merge=evil diff=evil\n")
    assert ann.client.submit(ann.receipt, None, land=LandRequest(commit=work, onto="main")).outcome == "VALIDATING"
    hostile = Hostile(repository, tmp_path)
    in_the_configuration(hostile)
    lander = Lander(repository.client("lee"), str(repository.path))
    with merged(str(repository.path), {"commit": work, "onto": "main"}) as found:
        assert (Path(found.tree) / "parser.py").exists()
    assert [done.what for done in lander.round()] == ["landed"]
    assert hostile.started() == []


def test_a_driver_of_the_repository_is_a_conflict_and_one_of_the_user_runs(
    repository: Repository, ann: Agent, tmp_path: Path
) -> None:
    """What the repository's driver would have done is not known; what the user set for all repositories stays."""
    hostile = Hostile(repository, tmp_path)
    repository.git("config", "merge.evil.driver", str(hostile.program))
    (repository.path / ".git" / "info").mkdir(exist_ok=True)
    (repository.path / ".git" / "info" / "attributes").write_text("both.py merge=evil\n")
    main = repository.commit("both.py", "of main\n")
    work = ann.commit("both.py", "of the agent\n")
    assert git.merge(str(repository.path), main, work).conflicts == ("both.py",)
    assert hostile.started() == []
    repository.git("config", "--global", "merge.evil.driver", f"{hostile.program} %A")
    assert git.merge(str(repository.path), main, work).conflicts == ()
    assert len(hostile.started()) == 1


def test_filters_of_the_user_run_and_their_definition_is_the_users(repository: Repository, tmp_path: Path) -> None:
    """As LFS for all repositories; the repository cannot put another program in its place."""
    hostile = Hostile(repository, tmp_path)
    repository.git("config", "--global", "filter.own.clean", "tr a-z A-Z")
    repository.git("config", "filter.own.clean", str(hostile.program))
    repository.commit(".gitattributes", "")
    repository.write(".gitattributes", "*.big filter=own\n")
    repository.write("a.big", "large\n")
    git.ask(str(repository.path), "add", "--all")
    assert git.ask(str(repository.path), "show", ":a.big") == "LARGE"
    assert hostile.started() == []


@pytest.mark.parametrize("is_known", [True, False], ids=["in .gitmodules", "put into the index by hand"])
def test_a_submodule_is_asked_without_its_own_programs(
    repository: Repository, ann: Agent, tmp_path: Path, is_known: bool
) -> None:
    assert ann.tree is not None
    top = Path(ann.tree.path)
    inside = Repository(top / "lib")
    inside.commit("lib.py", "x\n")
    if is_known:
        repository.write(".gitmodules", '[submodule "lib"]\n\tpath = lib\n\turl = ./lib\n', top)
    repository.git("-c", "advice.addEmbeddedRepo=false", "add", "--all", at=top)
    repository.git("commit", "-q", "-m", "lib", at=top)
    hostile = Hostile(repository, tmp_path)
    hostile.settings(inside.path)
    hostile.hooks(inside.path / ".git" / "hooks")
    repository.write(".gitattributes", "* filter=evil\n", inside.path)
    repository.write("lib.py", "y\n", inside.path)  # of the same size: git has to read it, through its filter
    repository.write("more.py", "x\n", top)
    assert git.changes(str(top)) == (["more.py", "lib"] if is_known else ["more.py"])
    assert worktrees.commit_all(ann.tree, "more")
    head = repository.head(top)
    checkouts.check(checkouts.Checkout(str(top), repository.git("rev-parse", "--absolute-git-dir", at=top)), head, head)
    assert worktrees.release(ann.tree) != ()
    assert "submodules" in git.worktree(str(repository.path), "remove", str(top)).err
    assert hostile.started() == []
    repository.git("status", at=top, ok=False)
    assert hostile.started() != [], "git by hand does start them"


def test_the_commit_of_a_submodule_is_staged(repository: Repository, ann: Agent) -> None:
    assert ann.tree is not None
    inside = Repository(Path(ann.tree.path) / "lib")
    inside.commit("lib.py", "x\n")
    assert worktrees.commit_all(ann.tree, "lib")
    new = inside.commit("lib.py", "y\n")
    assert worktrees.commit_all(ann.tree, "its next commit")
    assert repository.git("rev-parse", "HEAD:lib", at=ann.tree.path) == new


def test_a_working_tree_elsewhere_is_refused(repository: Repository, ann: Agent, tmp_path: Path) -> None:
    """A landing would write the branch's files there."""
    (tmp_path / "elsewhere").mkdir()
    ann.commit("parser.py", "x\n")
    repository.git("config", "core.worktree", str(tmp_path / "elsewhere"))
    with pytest.raises(git.GitFailed, match=r"core\.worktree in the repository's settings names"):
        ann.land()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_hooks_of_the_repository_are_named_as_not_run(repository: Repository, ann: Agent, tmp_path: Path) -> None:
    Hostile(repository, tmp_path).hooks(repository.path / ".git" / "hooks")
    assert ann.tree is not None
    repository.write("parser.py", "x\n", ann.tree.path)
    assert worktrees.commit_all(ann.tree, "work")
    assert set(ann.land().not_run) == {"commit-msg", "reference-transaction", "pre-merge-commit", "post-merge"}
