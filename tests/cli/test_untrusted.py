"""A cloned repository runs nothing and is sent nothing: real clones, real processes, a real socket that would hear."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenure.config import read_settings
from tenure.trust.git_index import is_tracked
from tenure.trust.grants import Untrusted
from tests.cli.conftest import Said, Tenure

HOOK = json.dumps({"hook_event_name": "SessionStart", "session_id": "s", "source": "startup"})
VERBS = ("status", "claim", "list", "ready", "prime", "add x", "run --once", "serve", "doctor", "hook --from claude")


def git(folder: Path, *words: str, umask: int = 0o022) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, umask=umask)


class Ear:
    """Listens on loopback and keeps what it is sent; every caller is turned away."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self._socket.accept()
            except OSError:
                return
            with caller:
                caller.settimeout(5)
                self.heard.append(caller.recv(65536))
                caller.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture
def ear() -> Iterator[Ear]:
    ear = Ear()
    yield ear
    ear.close()


@pytest.fixture
def clone(bare: Tenure, tmp_path: Path) -> Callable[..., Tenure]:
    """Makes a repository with a committed store and these files, and gives a clone of it."""

    def make(files: dict[str, str], *, umask: int = 0o022, has_store: bool = True) -> Tenure:
        upstream = tmp_path / "upstream"
        upstream.mkdir()
        git(upstream, "init", "-q")
        assert bare.process("init", "--project", "default", cwd=upstream).code == 0
        assert bare.process("add", "Theirs", cwd=upstream).code == 0
        if not has_store:
            (upstream / ".tenure" / "tenure.db").unlink()
        for name, content in files.items():
            path = upstream / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if content.startswith("-> "):
                path.unlink(missing_ok=True)
                path.symlink_to(content.removeprefix("-> "))
            else:
                path.write_text(content)
        git(upstream, "add", "-f", "-A")
        git(upstream, "commit", "-q", "-m", "theirs")
        git(tmp_path, "clone", "-q", str(upstream), "cloned", umask=umask)
        return Tenure(tmp_path / "cloned", bare.environ)

    return make


def refused(said: Said) -> bool:
    return said.code == 11 and "Traceback" not in said.err


def every_verb(cloned: Tenure, **environ: str) -> dict[str, Said]:
    return {verb: cloned.process(*verb.split(), stdin=HOOK, **environ) for verb in VERBS}


@pytest.mark.parametrize(
    ("name", "umask", "key"),
    [
        ("tenure.toml", 0o022, "tnr_secret_key"),
        (".tenure/config.toml", 0o022, ""),
        (".tenure/config.toml", 0o077, "tnr_secret_key"),
    ],
)
def test_a_server_that_a_cloned_file_names_is_never_asked(
    clone: Callable[..., Tenure], ear: Ear, name: str, umask: int, key: str
) -> None:
    cloned = clone({name: f'url = "{ear.url}"\n'}, umask=umask)
    said = every_verb(cloned, TENURE_KEY=key, TENURE_RUN_AGENT="true")
    assert said.pop("hook --from claude") == (0, "", "")  # an agent does not fail because of its hook
    assert {verb for verb, one in said.items() if not refused(one)} == set()
    assert all(ear.url in one.err + one.out and "`tenure trust`" in one.err + one.out for one in said.values())
    assert cloned.process("status", "--json", TENURE_KEY=key).json["error"]["code"] == "UNTRUSTED"
    assert ear.heard == []


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_cloned_file_counts_no_more_without_a_database_beside_it(
    clone: Callable[..., Tenure], bare: Tenure, ear: Ear, tmp_path: Path, umask: int
) -> None:
    """Neither where there is no store at all, nor in a clone below the user's own store, which it cannot hide."""
    marker = tmp_path / "marker"
    programs = f'[run]\nagent = "touch {marker}"\n[serve]\nport = 0\nauth = "open"\n'
    text = f'url = "{ear.url}"\nkey = "tnr_theirs_key"\n{programs}'
    cloned = clone({".tenure/config.toml": text}, umask=umask, has_store=False)
    said = every_verb(cloned, TENURE_KEY="tnr_secret_key") | {"init": cloned.process("init")}
    assert said.pop("hook --from claude") == (0, "", "")
    assert {verb for verb, one in said.items() if not refused(one)} == set()
    assert ear.heard == []
    assert bare.process("init", "--project", "default").code == 0  # above the clone
    (bare.folder / ".tenure" / "config.toml").write_text('[run]\nagent = "true"\n[serve]\nauth = "required"\n')
    (bare.folder / ".tenure" / "config.toml").chmod(0o600)
    (cloned.folder / ".tenure" / "config.toml").write_text(programs)
    git(cloned.folder, "add", "-f", "-A")
    said = {verb: cloned.process(*verb.split()) for verb in ("run --once", "serve")}
    assert {verb for verb, one in said.items() if not refused(one)} == set()
    (cloned.folder / ".tenure" / "config.toml").write_text("lease = 60\n")
    shown = cloned.process("config", "--json").json
    assert (shown["serve.auth"]["value"], shown["lease"]["value"]) == ("required", 60)
    assert cloned.process("run", "--once").code == 3  # nothing is ready
    assert not marker.exists()
    assert ear.heard == []


@pytest.mark.parametrize("key", ["", "tnr_secret_key"])
def test_the_sdk_follows_no_cloned_file(clone: Callable[..., Tenure], ear: Ear, key: str) -> None:
    cloned = clone({".tenure/config.toml": f'url = "{ear.url}"\n'})
    for program in ("tenure.Client().status()", "__import__('asyncio').run(tenure.AsyncClient().status())"):
        done = subprocess.run(
            [sys.executable, "-P", "-c", f"import tenure; {program}"], cwd=cloned.folder, text=True,
            env=cloned.environ | {"TENURE_KEY": key}, capture_output=True, check=False,
        )  # fmt: skip
        assert "Untrusted" in done.stderr, done.stderr
    assert ear.heard == []


@pytest.mark.parametrize(("name", "umask"), [("tenure.toml", 0o022), (".tenure/config.toml", 0o077)])
def test_nothing_that_a_cloned_file_names_is_started_or_written(
    clone: Callable[..., Tenure], tmp_path: Path, name: str, umask: int
) -> None:
    marker = tmp_path / "marker"
    content = f'[run]\nagent = "touch {marker}"\n[serve]\nport = 0\nlog_file = "{marker}"\n'
    cloned = clone({name: content}, umask=umask)
    said = every_verb(cloned)
    assert refused(said["run --once"])
    assert refused(said["serve"])
    assert str(marker) in said["run --once"].err
    assert said["list"].code == 0  # rows are data, and nothing here was asked for what is risky
    assert said["doctor"].code == 7
    assert "log_file" in said["doctor"].out
    assert not marker.exists()


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_cloned_store_is_neither_served_nor_given_to_agents(
    clone: Callable[..., Tenure], tmp_path: Path, umask: int
) -> None:
    cloned = clone({}, umask=umask)
    marker = tmp_path / "marker"
    for words in (("run", "--once", "--agent", f"touch {marker}"), ("serve", "--port", "0")):
        said = cloned.process(*words)
        assert refused(said), said
        assert "git tracks it" in said.err
    assert not marker.exists()
    found = {one["check"]: one for one in cloned.process("doctor", "--json").json if one["level"] == "error"}
    assert "git tracks it" in found["repository"]["message"]
    assert cloned.process("trust").code == 0
    assert cloned.process("run", "--once", "--agent", f"touch {marker}").code == 0
    assert marker.exists()


LINKS = ("config.toml", "tenure.db", "tenure.db-wal", "tenure.db-shm", "project", "outbox", "receipts", "worktrees")


@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_the_stores_folder_is_not_followed(clone: Callable[..., Tenure], tmp_path: Path, name: str) -> None:
    target = tmp_path / "target"
    (target / "inside").mkdir(parents=True)
    Tenure(target, os.environ | {"HOME": str(tmp_path)}).process("init")  # so that each link leads to something
    aim = target / ".tenure" / name if name.startswith("tenure.db") else target / "inside"
    before = sorted(path.name for path in target.rglob("*"))
    cloned = clone({f".tenure/{name}": f"-> {aim}"})
    for verb in ("claim", "run --once --agent true", "doctor", "init"):
        said = cloned.process(*verb.split())
        if name.startswith("tenure.db") and not aim.exists() and said.code == 1:
            continue  # it leads nowhere, so that there is no store
        assert refused(said), (verb, said)
        assert "symbolic link" in said.err + said.out
    assert sorted(path.name for path in target.rglob("*")) == before


def test_a_folder_that_is_a_link_is_not_followed(bare: Tenure, tmp_path: Path) -> None:
    other, here = tmp_path / "other", tmp_path / "here"
    other.mkdir()
    here.mkdir()
    assert bare.process("init", cwd=other).code == 0
    (here / ".tenure").symlink_to(other / ".tenure")
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / ".tenure").symlink_to(empty)
    assert refused(bare.process("list", cwd=here))
    assert refused(bare.process("init", cwd=here))
    assert refused(bare.process("init", cwd=tmp_path / "there"))
    assert list(empty.iterdir()) == []


def test_trust_shows_what_it_allows_and_a_change_is_refused_again(clone: Callable[..., Tenure], ear: Ear) -> None:
    cloned = clone({"tenure.toml": f'url = "{ear.url}"\n'})
    shown = cloned.process("trust", "--show")
    assert f'url = "{ear.url}"' in shown.out
    assert ear.heard == []
    allowed = cloned.process("trust")
    assert (allowed.code, f'+ url = "{ear.url}"' in allowed.out) == (0, True)
    cloned.process("list")  # the server answers nothing; it was asked
    assert len(ear.heard) >= 1
    assert not any(b"uthorization" in heard for heard in ear.heard)
    count = len(ear.heard)
    # Even then a key of the environment does not go where a file in the tree says.
    said = cloned.process("list", "--json", TENURE_KEY="tnr_secret_key")
    assert (said.code, said.json["error"]["code"]) == (11, "BAD_CONFIG")
    assert "your key is not sent to a server" in said.json["error"]["message"]
    assert len(ear.heard) == count
    (cloned.folder / "tenure.toml").write_text('url = "http://127.0.0.1:9"\n')
    changed = cloned.process("list")
    assert refused(changed)
    assert "~ url" in changed.err


def test_no_secret_is_shown_where_trust_is_asked(tenure: Tenure) -> None:
    local = tenure.folder / ".tenure" / "config.toml"
    local.write_text('key = "tnr_secret_key"\n[serve]\njwt_secret = "tnr_secret_key"\n')
    for words in (("trust", "--show"), ("trust", "--show", "--json"), ("trust",), ("trust", "--json"), ("doctor",)):
        said = tenure(*words)
        assert "tnr_secret" not in said.out + said.err
    local.write_text('key = "tnr_secret_other"\n')
    assert "tnr_secret" not in tenure("list").err
    assert tenure("list").code == 11


def test_a_quoted_key_is_no_way_around(tenure: Tenure, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    tenure("add", "One")
    (tenure.folder / "tenure.toml").write_text(f'"run.agent" = "touch {marker}"\n')
    assert tenure.process("run", "--once").code == 11
    assert not marker.exists()


def test_ones_own_settings_count_without_a_word(tenure: Tenure, tmp_path: Path) -> None:
    """Git's index is looked at once for each state of the file: the answer is remembered."""
    git(tenure.folder, "init", "-q")
    git(tenure.folder, "commit", "-q", "--allow-empty", "-m", "first")
    assert (tenure.folder / ".tenure").stat().st_mode & 0o777 == 0o700
    local = tenure.folder / ".tenure" / "config.toml"
    local.write_text('[run]\nagent = "true"\n')
    local.chmod(0o600)
    assert tenure.process("run", "--until-empty").code == 0
    (tenure.folder / ".git" / "index").write_bytes(b"not an index")
    environ = {"HOME": tenure.environ["HOME"]}
    assert read_settings(str(tenure.folder), environ)["run.agent"].value == "true"
    local.write_text('[run]\nagent = "false"\n')
    with pytest.raises(Untrusted, match="index could not be read"):
        read_settings(str(tenure.folder), environ)["run.agent"]


@pytest.mark.parametrize("how", ["2", "4", "split", "sha256", "sparse", "case"])
def test_the_index_is_read_as_git_writes_it(tmp_path: Path, how: str) -> None:
    git(tmp_path, "init", "-q", *(["--object-format=sha256"] if how == "sha256" else []))
    for name in ("a/b.txt", ".tea", ".tenure/a", ".tenure/config.toml", "sub/.tenure/config.toml", "z" * 200):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    tracked = ["a", ".tea", ".tenure/a", "sub", "z" * 200]
    git(tmp_path, "add", *tracked)
    git(tmp_path, "commit", "-q", "-m", "first")
    if how in ("2", "4"):
        git(tmp_path, "update-index", "--index-version", how)
    if how == "split":
        git(tmp_path, "update-index", "--split-index")
    if how == "sparse":
        git(tmp_path, "sparse-checkout", "set", "--cone", "--sparse-index", "a")
        assert is_tracked(str(tmp_path / "sub" / ".tenure" / "config.toml"))
        assert is_tracked(str(tmp_path / ".tenure" / "anything"))
        assert not is_tracked(str(tmp_path / ".ten" / "config.toml"))
        return
    if how == "case":
        assert is_tracked(str(tmp_path / ".Tenure" / "A"))
    assert is_tracked(str(tmp_path / "sub" / ".tenure" / "config.toml"))
    assert is_tracked(str(tmp_path / ".tenure"))
    assert is_tracked(str(tmp_path / ("z" * 200)))
    assert not is_tracked(str(tmp_path / ".tenure" / "config.toml"))
    git(tmp_path, "add", "-f", ".tenure/config.toml")
    assert is_tracked(str(tmp_path / ".tenure" / "config.toml"))
    git(tmp_path, "worktree", "add", "-q", str(tmp_path / "linked"))
    assert is_tracked(str(tmp_path / "linked" / ".tenure" / "a"))
    assert not is_tracked(str(tmp_path / "linked" / ".tenure" / "config.toml"))
