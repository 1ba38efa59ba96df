"""What git may run for us: the programs of the user, and none of a repository.

An agent can write everything inside the repository that it works in: hooks, `.git/config`, the configuration of a
worktree and of a submodule, attributes. Each of them can name a program, and git of the runner would start it outside
of the agent's sandbox. So each call of `git.py` gets settings here that count more than all files:

* `ALWAYS` and `_programs` for keys whose names are known: no hooks, no monitor of files, no upkeep, no protocol but
  https and ssh, and the user's own programs for signing and for passwords;
* `overridden` for keys with a name of anybody's choice (filters, merge drivers, …): those that the repository's files
  set now get the user's value, else one that does nothing.

What the user's and the system's files say stays: an identity, LFS for all repositories, hooks in a folder that the user
names. A setting with a free name that a process writes between the reading and the start of git is not seen.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tenure.core.child_environments import ChildKind, for_child

# Verbs that only read objects, refs and settings: no setting makes them start a program.
_PLAIN = frozenset({
    "cat-file", "check-ignore", "config", "for-each-ref", "hash-object", "ls-files", "ls-tree", "merge-base",
    "rev-list", "rev-parse", "show-ref", "symbolic-ref", "var", "version",
})  # fmt: skip
# Others of git's own variables name programs, files of settings, or one repository for all calls.
_KEPT = re.compile(
    r"GIT_((AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|CEILING_DIRECTORIES"
    r"|DISCOVERY_ACROSS_FILESYSTEM)"
)
VARIABLES = {
    "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": ":", "GIT_PAGER": "cat",
    "GIT_ALLOW_PROTOCOL": "https:ssh",  # for the objects that a partial clone lacks
}  # fmt: skip
ALWAYS = {
    "core.fsmonitor": "false", "core.askPass": "", "core.gitProxy": "", "maintenance.auto": "false", "gc.auto": "0",
    "submodule.recurse": "false", "log.showSignature": "false", "diff.ignoreSubmodules": "dirty",
}  # fmt: skip
_NO_HOOKS = "/dev/null"
# Keys whose value git starts, and what it is where the user sets none.
_PROGRAMS = {
    "core.sshcommand": "ssh", "gpg.program": "gpg", "gpg.openpgp.program": "gpg", "gpg.x509.program": "gpgsm",
    "gpg.ssh.program": "ssh-keygen", "gpg.ssh.defaultkeycommand": "",
}  # fmt: skip
_NAMED = tuple(
    (re.compile(pattern, re.DOTALL), value)
    for pattern, value in (
        (r"filter\..*\.(clean|smudge|process)", ""),
        (r"filter\..*\.required", "false"),
        (r"merge\..*\.driver", "false"),  # a conflict: nobody knows what the driver would have done
        (r"diff\.(.*\.)?(command|textconv|external)", "true"),
        (r"trailer\..*\.(command|cmd)", ""),
        (r"hook\..*\.command", "true"),
        (r"gc\.recentobjectshook|core\.alternaterefscommand", "true"),
        (r"remote\..*\.uploadpack", "git-upload-pack"),
        (r"submodule\..*\.update", "none"),
        (r"lfs\.(.*\.)?standalonetransferagent|lfs\.customtransfer\..*\.path|lfs\.extension\..*\.(clean|smudge)", ""),
    )
)
_HELPER = re.compile(r"credential\.(.*\.)?helper", re.DOTALL)
_THEIRS = ("local", "worktree")  # scopes of files that an agent can write


class Setting(NamedTuple):
    scope: str
    origin: str
    key: str  # section and name in lower case, as git prints it
    value: str


class ForeignTree(Exception):
    """The repository's settings name another folder as its working tree."""


def environment(
    folder: str, words: Sequence[str], environ: Mapping[str, str], more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The whole environment of `git -C folder WORDS`. Raises ForeignTree."""
    from tenure.processes.supervisor_script import environment_at  # only where git is started

    machines = for_child(ChildKind.PROGRAM, environ)
    kept = {name: value for name, value in machines.items() if not name.startswith("GIT_") or _KEPT.fullmatch(name)}
    own = environment_at(folder, kept) | VARIABLES
    settings = [*ALWAYS.items(), ("core.hooksPath", _NO_HOOKS)]
    if verb_of(words) not in _PLAIN:
        read = _read(folder, own | _as_variables(settings))
        _check_tree(folder, read)
        settings += [("core.hooksPath", own_hooks(folder, read) or _NO_HOOKS), *_programs(read), *overridden(read)]
    return own | _as_variables(settings) | dict(more or {})


def verb_of(words: Sequence[str]) -> str:
    """The verb after git's own options."""
    rest = iter(words)
    for word in rest:
        if word == "-c":
            next(rest, None)
        elif not word.startswith("-"):
            return word
    return ""


def _as_variables(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Submodules and git's helpers inherit these, unlike the words of a command line."""
    found = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _read(folder: str, environ: Mapping[str, str]) -> list[Setting]:
    """The settings of this folder's repository. None where git cannot read them: the call itself will say why."""
    words = ("config", "--list", "--includes", "--show-scope", "--show-origin", "-z")
    done = subprocess.run(["git", "-C", folder, *words], capture_output=True, check=False, env=dict(environ))
    fields = iter(done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1])
    found = []
    for scope, origin, line in zip(fields, fields, fields, strict=False):
        key, _, value = line.partition("\n")
        found.append(Setting(scope, origin, key, value))
    return found


def overridden(read: Iterable[Setting]) -> Iterator[tuple[str, str]]:
    """The programs with a free name that the repository sets: with the user's value, or one that does nothing."""
    settings = list(read)
    users = {one.key: one.value for one in settings if one.scope in ("system", "global")}
    for key in dict.fromkeys(one.key for one in settings if one.scope in _THEIRS):
        harmless = next((value for pattern, value in _NAMED if pattern.fullmatch(key)), None)
        if harmless is not None:
            yield key, users.get(key, harmless)


def _programs(read: Iterable[Setting]) -> Iterator[tuple[str, str]]:
    settings = [one for one in read if one.scope in ("system", "global")]
    users = {one.key: one.value for one in settings}
    yield from ((key, users.get(key, value)) for key, value in _PROGRAMS.items())
    # An empty helper forgets those before it; the list is the user's again after that.
    yield "credential.helper", ""
    yield from ((one.key, one.value) for one in settings if _HELPER.fullmatch(one.key))


def own_hooks(folder: str, read: Iterable[Setting]) -> str | None:
    """The folder of hooks that the user set for all repositories; None for one below the working tree."""
    named = [one.value for one in read if one.key == "core.hookspath" and one.scope in ("system", "global")]
    place = os.path.expanduser(named[-1]) if named else ""
    within = os.path.join(os.path.realpath(top(folder)), "")
    if not os.path.isabs(place) or os.path.realpath(place).startswith(within):
        return None
    return place


def repositorys_hooks(folder: str, common: str, read: Iterable[Setting]) -> str:
    """The folder of hooks that git would use without us."""
    named = [one.value for one in read if one.key == "core.hookspath" and one.scope != "command"]
    return os.path.join(top(folder), os.path.expanduser(named[-1])) if named else os.path.join(common, "hooks")


def read_settings(folder: str, environ: Mapping[str, str]) -> list[Setting]:
    return _read(folder, environment(folder, ("config",), environ))


def _check_tree(folder: str, read: Iterable[Setting]) -> None:
    """A landing writes files into the working tree: its folder must lead back to the repository."""
    for one in read:
        if one.key == "core.worktree" and one.scope in _THEIRS:
            holder = os.path.dirname(os.path.join(folder, one.origin.removeprefix("file:")))
            tree = os.path.join(holder, one.value)
            marker = os.path.join(tree, ".git")
            if os.path.isfile(marker):
                with open(marker, encoding="utf-8", errors="surrogateescape") as file:
                    marker = os.path.join(tree, file.read(4096).removeprefix("gitdir:").strip())
            if os.path.realpath(marker) != os.path.realpath(holder):
                raise ForeignTree(one.value)


def top(folder: str) -> str:
    """The nearest folder with a `.git`, from `folder` upwards."""
    place = os.path.abspath(folder)
    while not os.path.lexists(os.path.join(place, ".git")):
        if place == os.path.dirname(place):
            return os.path.abspath(folder)
        place = os.path.dirname(place)
    return place
