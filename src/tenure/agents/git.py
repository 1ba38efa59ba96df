"""Typed calls of the git program. Knows nothing about tasks.

Every call names its folder, and git starts no program that the repository names: `git_settings.py` makes its
environment. Output has NUL between names wherever git offers that, since paths may contain any other character.
Messages are git's first line only: the following lines may advise to remove or to force something.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from tenure.agents import git_settings
from tenure.core.errors import TenureError

OLDEST = (2, 38)  # the first version whose merge-tree writes a tree
LOCK_WAIT = 5000  # milliseconds that git waits for a locked ref; a landing holds one for less
MOST_LOOKS, LOOK_PAUSE = 200, 0.02
_HALF_THERE = re.compile(r"failed to read .*worktrees/")

_OF_A_LANDING = ("commit-msg", "reference-transaction")
_OF_A_CHECKOUT = ("pre-merge-commit", "post-merge")  # of the merge: there is none
_FALLBACK_NAME, _FALLBACK_EMAIL = "tenure", "tenure@localhost"


class NoRepository(TenureError):
    code = "NO_REPOSITORY"


class GitFailed(TenureError):
    code = "GIT_FAILED"


class RefsMoved(GitFailed):
    """A ref is not where the transaction expects it, is locked, or a hook refused; nothing was changed."""


class GitResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """git's error message, in one line."""
        lines = [line for line in self.err.splitlines() if line.strip() and not line.startswith("hint:")]
        fatal = [line for line in lines if line.startswith(("fatal:", "error:"))]
        return (fatal or lines or [f"exit {self.code}"])[0].removeprefix("fatal: ").removeprefix("error: ")


class Repository(NamedTuple):
    top: str  # of the working tree
    common: str  # the git folder that all its worktrees share


class Tree(NamedTuple):
    """One working tree of a repository, as git lists it."""

    path: str
    head: str | None
    branch: str | None  # its short name; None when detached
    locked: str | None  # the reason, which may be empty
    is_bare: bool
    is_missing: bool  # git lists it, but the folder does not exist
    git_folder: str  # its own git folder: with its index, its HEAD and our record


def _environ(folder: str, words: Sequence[str], more: Mapping[str, str] | None = None) -> dict[str, str]:
    try:
        return git_settings.environment(folder, words, os.environ, more)
    except git_settings.ForeignTree as error:
        raise GitFailed(
            f"{shown(folder)}: core.worktree in the repository's settings names {shown(str(error))[:200]!r}, which is "
            "not a working tree of it",
            "`git config --show-origin core.worktree` shows the file that sets it",
        ) from None


def call(folder: str, *words: str, input: str | None = None, environ: Mapping[str, str] | None = None) -> GitResult:
    """git's output, for any exit code."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *words],
            capture_output=True,
            check=False,
            env=_environ(folder, words, environ),
            input=b"" if input is None else input.encode("utf-8", "surrogateescape"),
        )
    except FileNotFoundError:
        raise NoRepository("git is not installed, or not on the PATH", "worktrees and landing need it") from None
    return GitResult(done.returncode, _text(done.stdout), _text(done.stderr))


def worktree(folder: str, *words: str) -> GitResult:
    """The output of `git worktree …`. Retries while another process adds or removes one."""
    result = call(folder, "worktree", *words)
    for _ in range(MOST_LOOKS):
        if result.code == 0 or not _HALF_THERE.search(result.err):
            break
        time.sleep(LOOK_PAUSE)
        result = call(folder, "worktree", *words)
    return result


def ask(folder: str, *words: str, input: str | None = None, environ: Mapping[str, str] | None = None) -> str:
    """git's output without the final newline; GitFailed where it fails."""
    result = call(folder, *words, input=input, environ=environ)
    if result.code != 0:
        raise _failed(folder, words, result)
    return result.out.removesuffix("\n")


def _failed(folder: str, words: Sequence[str], result: GitResult) -> GitFailed:
    version = _version(folder)
    if version < OLDEST:
        numbers = ".".join(map(str, version))
        return GitFailed(f"git {numbers} is too old", f"git {OLDEST[0]}.{OLDEST[1]} or newer is needed")
    verb = next((word for word in words if not word.startswith("-") and "=" not in word), "")
    return GitFailed(f"git {verb} in {shown(folder)}: {result.line}")


def _version(folder: str) -> tuple[int, ...]:
    words = call(folder, "version").out.split()  # git version 2.39.5 (Apple Git-154)
    numbers = words[2].split(".")[:2] if len(words) > 2 else []
    return tuple(int(n) for n in numbers if n.isdigit())


def _text(output: bytes) -> str:
    # surrogateescape keeps the bytes of a path
    return output.decode("utf-8", "surrogateescape")


def shown(path: str) -> str:
    """A path that is safe for any terminal and for JSON."""
    plain = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return plain.replace("\n", "\\n")


# --- repositories --------------------------------------------------------------------------------------------------


def find(folder: str) -> Repository:
    """The repository whose working tree contains `folder`."""
    result = call(folder, "rev-parse", "--show-toplevel")
    if result.code != 0:
        if call(folder, "rev-parse", "--is-bare-repository").out.strip() == "true":
            raise NoRepository(f"{shown(folder)} is a bare repository", "start in one of its working trees")
        if "not a git repository" in result.err:
            raise NoRepository(f"{shown(folder)} is not in a git repository", "start in one, or make it one: git init")
        raise NoRepository(f"{shown(folder)}: {result.line}")
    common = ask(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    return Repository(result.out.removesuffix("\n"), common)


def private_folder(path: str) -> str | None:
    """The own git folder of a linked worktree; None for a main worktree. Starts no process."""
    try:
        with open(os.path.join(path, ".git"), encoding="utf-8", errors="surrogateescape") as file:
            kind, _, where = file.read().removesuffix("\n").partition(": ")
    except OSError:
        return None
    return os.path.join(path, where) if kind == "gitdir" else None


def trees(folder: str) -> list[Tree]:
    """Every working tree of the repository, the main one first."""
    listed: list[Tree] = []
    lost: dict[str, str] | None = None
    result = worktree(folder, "list", "--porcelain", "-z")
    if result.code != 0:
        raise _failed(folder, ("worktree",), result)
    for block in result.out.split("\0\0"):
        fields = dict(line.partition(" ")[::2] for line in block.split("\0") if line)
        if "worktree" not in fields:
            continue
        path, branch = fields["worktree"], fields.get("branch")
        is_missing = not os.path.isdir(path)
        if is_missing and lost is None:
            lost = _private_folders(folder)
        own = (lost or {}).get(path) if is_missing else private_folder(path)
        listed.append(
            Tree(
                path,
                fields.get("HEAD"),
                branch.removeprefix("refs/heads/") if branch else None,
                fields.get("locked"),
                "bare" in fields,
                is_missing,
                own or os.path.join(path, ".git"),
            )
        )
    return listed


def _private_folders(folder: str) -> dict[str, str]:
    """Path → git folder of the linked worktrees, also of those without a `.git` file."""
    place = os.path.join(ask(folder, "rev-parse", "--path-format=absolute", "--git-common-dir"), "worktrees")
    found = {}
    names = os.listdir(place) if os.path.isdir(place) else ()
    for name in names:
        private = os.path.join(place, name)
        try:
            with open(os.path.join(private, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
                path = os.path.join(private, file.read().removesuffix("\n"))
        except OSError:
            continue
        found[os.path.dirname(os.path.normpath(path))] = private
    return found


# --- commits and files ------------------------------------------------------------------------------------------


def commit_id(folder: str, name: str) -> str | None:
    """The full id of the commit that `name` names."""
    return ref_value(folder, name + "^{commit}")


def ref_value(folder: str, ref: str) -> str | None:
    """The target of a ref (by its full name)."""
    result = call(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", ref)
    return result.out.strip() if result.code == 0 else None


def branch_here(folder: str) -> str | None:
    """The branch that is checked out in `folder`; None when detached."""
    result = call(folder, "symbolic-ref", "--quiet", "--short", "HEAD")
    return result.out.removesuffix("\n") if result.code == 0 else None


def is_branch(folder: str, name: str) -> bool:
    return call(folder, "show-ref", "--verify", "--quiet", f"refs/heads/{name}").code == 0


def is_ancestor(folder: str, commit: str, of: str) -> bool:
    result = call(folder, "merge-base", "--is-ancestor", commit, of)
    if result.code > 1:
        raise _failed(folder, ("merge-base",), result)
    return result.code == 0


def changes(folder: str) -> list[str]:
    """Paths that are not committed: changed, staged or untracked. Ignored ones, and `.tenure`, do not count."""
    options = ("--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=dirty")
    out = ask(folder, "--no-optional-locks", "status", *options, "--", ":/", ":(exclude,top,glob)**/.tenure/**")
    found, entries = [], iter(out.split("\0"))
    for entry in entries:
        if entry:
            found.append(entry[3:])
            if entry[0] in "RC":  # the path it was renamed from follows
                next(entries, None)
    # One call for each: git would ask a submodule with the settings that an agent can write in there.
    top = git_settings.top(folder)
    for path in _submodules(folder) if os.path.exists(os.path.join(top, ".gitmodules")) else ():
        if path not in found and os.path.lexists(os.path.join(top, path, ".git")) and changes(os.path.join(top, path)):
            found.append(path)
    return found


def _submodules(folder: str) -> list[str]:
    entries = paths(folder, "ls-files", "--stage", "--full-name", "--", ":/")
    return [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]


def add_all(top: str) -> None:
    """Stage everything in a working tree; of a submodule its commit."""
    within = _submodules(top)
    ask(top, "add", "--all", "--", ":/", *(f":(exclude,top,literal){path}" for path in within))
    if within:  # `add` would ask each whether it is changed, and git there the programs of its settings
        ask(top, "update-index", "--remove", "--", *within)


def paths(folder: str, verb: str, *words: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """The paths that a verb with -z prints."""
    return [path for path in ask(folder, verb, "-z", *words, environ=environ).split("\0") if path]


def changed_between(folder: str, old: str, new: str) -> set[str]:
    return set(paths(folder, "diff-tree", "-r", "--name-only", "--no-renames", old, new))


class Counted(NamedTuple):
    lines: int  # added and removed; binary files count as zero
    test_files: int


_TEST = re.compile(r"(^|/)tests?/|(^|/)test_[^/]*$|[._-](test|spec)s?\.[^/]*$")


def counted_between(folder: str, old: str, new: str) -> Counted:
    lines = tests = 0
    for entry in paths(folder, "diff-tree", "-r", "--numstat", "--no-renames", old, new):
        added, taken, path = entry.split("\t", 2)
        lines += sum(int(n) for n in (added, taken) if n.isdecimal())
        tests += _TEST.search(path) is not None
    return Counted(lines, tests)


# --- commits without a checkout ----------------------------------------------------------------------


class Merge(NamedTuple):
    tree: str
    conflicts: tuple[str, ...]


def merge(folder: str, ours: str, theirs: str) -> Merge:
    """The tree of a merge. No checkout, index or ref is touched."""
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    result = call(folder, *words)
    if result.code > 1:
        raise _failed(folder, words, result)
    tree, *paths = result.out.split("\0")
    return Merge(tree, tuple(dict.fromkeys(path for path in paths if path)))


def commit_tree(folder: str, tree: str, parents: Sequence[str], message: str) -> str:
    """A commit that no ref points at yet; signed where the user has git sign commits."""
    signed = call(folder, "config", "--type=bool", "--get", "commit.gpgSign").out.strip() == "true"
    lines = [word for parent in parents for word in ("-p", parent)]
    words = ["commit-tree", tree, *lines, *(["-S"] if signed else []), "-F", "-"]
    return ask(folder, *words, input=message, environ=identity(folder))


def identity(folder: str) -> dict[str, str]:
    """Options that give git an author name where none is configured: it refuses a guess from host and login."""
    more: dict[str, str] = {}
    for who in ("AUTHOR", "COMMITTER"):
        if call(folder, "-c", "user.useConfigOnly=true", "var", f"GIT_{who}_IDENT").code != 0:
            more |= {f"GIT_{who}_NAME": _FALLBACK_NAME, f"GIT_{who}_EMAIL": _FALLBACK_EMAIL}
    return more


def with_trailers(folder: str, message: str, trailers: Mapping[str, str]) -> str:
    words = [word for name, value in trailers.items() for word in ("--trailer", f"{name}: {value}")]
    text = message.strip() + "\n"  # without the final newline the trailers would be part of the title
    return ask(folder, "interpret-trailers", "--no-divider", "--if-exists", "replace", *words, input=text) + "\n"


def hooks(folder: str, *names: str) -> list[str]:
    """Those of these hooks that the user has for all repositories: git runs them for us."""
    place = git_settings.own_hooks(folder, git_settings.read_settings(folder, os.environ))
    return _present(place, names) if place else []


def hooks_not_run(folder: str) -> list[str]:
    """The hooks that git would have run for a landing: the repository's own, and those that need a checkout."""
    read = git_settings.read_settings(folder, os.environ)
    common = ask(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    place = git_settings.repositorys_hooks(folder, common, read)
    is_own = place == git_settings.own_hooks(folder, read)
    return _present(place, _OF_A_CHECKOUT if is_own else (*_OF_A_LANDING, *_OF_A_CHECKOUT))


def _present(place: str, names: Sequence[str]) -> list[str]:
    return [name for name in names if os.access(os.path.join(place, name), os.X_OK)]


# --- refs ---------------------------------------------------------------------------------------------------


@contextmanager
def prepared(folder: str, changes: Sequence[str], why: str) -> Iterator[None]:
    """All these changes of refs or none: locked and compared at the start, committed at the end.

    The refs cannot move meanwhile. An error inside, or the end of this process, leaves them unchanged.
    """
    waits = ("-c", f"core.filesRefLockTimeout={LOCK_WAIT}", "-c", f"reftable.lockTimeout={LOCK_WAIT}")
    # A file for stderr: a user's hook may write more than a pipe holds.
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            ["git", "-C", folder, *waits, "update-ref", "-m", why, "--stdin"],
            env=_environ(folder, ("update-ref",)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        answered = False
        try:
            if answered := _answers_ok(process, *changes, "prepare"):
                yield
                answered = _answers_ok(process, "commit")
        finally:
            with suppress(BrokenPipeError):
                process.communicate()  # the end of its input rolls back uncommitted changes
        if not answered:
            errors.seek(0)
            raise RefsMoved(GitResult(process.returncode, "", _text(errors.read())).line)


def _answers_ok(process: subprocess.Popen[bytes], *lines: str) -> bool:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(BrokenPipeError):  # it has ended; the file has its message
        process.stdin.write("".join(line + "\n" for line in lines).encode())
        process.stdin.flush()
    return process.stdout.readline() == f"{lines[-1]}: ok\n".encode()


def change_refs(folder: str, changes: Sequence[str], why: str) -> None:
    """All these changes of refs, or RefsMoved and none."""
    with prepared(folder, changes, why):
        pass
