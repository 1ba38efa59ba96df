"""Which files of settings count: `.tenure/config.toml` with and without a store beside it, and TENURE_CONFIG."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenure.client import Client
from tenure.config import BadConfig, artifacts_of, find_home, read_settings
from tenure.sinks.settings import read_messaging
from tenure.spawners.settings import read_spawners
from tenure.trust import operator_file
from tenure.trust.grants import Trusted, Untrusted
from tests.cli.conftest import Tenure
from tests.servers.store_servers import SERVERS, told
from tests.servers.tenure import TenureServer


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


@contextmanager
def store_at(kind: str, folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a store of this kind; only the server's is there already."""
    if kind == "sqlite":
        yield str(folder / "elsewhere.db")
    elif kind == "server":
        Client(str(folder / "served.db"), create=True).close()
        with TenureServer(str(folder / "served.db")) as server:
            yield server.url
    else:
        server = request.getfixturevalue(kind)
        with told(kind, server), SERVERS[kind].placed("settings_files") as url:
            yield url


@pytest.mark.sampled
@pytest.mark.parametrize("by", ["local", "named"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mariadb", "valkey", "server"])
def test_a_file_of_settings_counts_on_every_store(
    bare: Tenure, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, kind: str, by: str
) -> None:
    """Its URL is that of every verb, `init` too; its notices are sent; what it says about access is obeyed."""
    notice = bare.folder / "notice.json"
    with store_at(kind, tmp_path_factory.mktemp("store"), request) as url:
        text = (
            f'url = "{url}"\nlease = 77\n[serve]\nauth = "required"\n[notify.me]\ncommand = ["tee", "{notice}"]\n'
            '[tasks]\npriority = "high"\n'
        )
        if by == "local":
            path = write(bare.folder / ".tenure" / "config.toml", text)
        else:
            path = write(Path(os.environ["HOME"]) / ".config" / "tenure" / "config.toml", text)
            bare.environ["TENURE_CONFIG"] = str(path)
        assert bare.process("init", "--project", "p").code == 0
        assert not (bare.folder / ".tenure" / "tenure.db").exists()
        (bare.folder / "deep").mkdir()
        assert bare.process("add", "One", "--project", "p", cwd=bare.folder / "deep").code == 0
        claimed = bare.process("claim", "--project", "p", "--json").json
        assert claimed["lease"] == 77
        if kind != "server":
            assert claimed["task"]["priority"] == 20  # a server's own setting counts for its tasks
        shown = bare.process("config", "--json").json
        assert {shown[key]["origin"] for key in ("url", "lease", "serve.auth", "notify.me.command")} == {str(path)}
        assert bare.process("notify", "test", "--project", "p").code == 0
        assert json.loads(notice.read_text())["kind"] == "test"
        found = {one["check"]: one for one in bare.process("doctor", "--json", "--project", "p").json}
        assert str(path) in found["repository"]["message"]


def test_every_reader_of_settings_reads_a_file_without_a_store(tmp_path: Path) -> None:
    write(
        tmp_path / ".tenure" / "config.toml",
        'url = "memory://x"\nartifacts = "kept"\nprices = "prices.toml"\n[sinks.main]\nurl = "nats://127.0.0.1:1"\n'
        '[hooks]\non_task_completed = ["true"]\n[webhooks]\nallow_http = true\n[programs.mine]\nagent = "true"\n'
        '[spawners.far]\nkind = "local"\n'
        '[agents]\ntype = "bot"\n',
    )
    settings = read_settings(str(tmp_path), {"TENURE_STATE": str(tmp_path / "state"), "HOME": str(tmp_path)})
    home = find_home(str(tmp_path), settings)
    assert home.url == "memory://x"
    assert artifacts_of(settings, home) == str(tmp_path / "kept")
    messaging = read_messaging(settings)
    assert [one.name for one in messaging.sinks] == ["main"]
    assert settings["webhooks.allow_http"].value is True
    assert settings["agents.type"].value == "bot"
    assert "far" in read_spawners(settings, str(tmp_path))


def test_a_nearer_file_adds_to_the_stores_own_and_does_not_hide_it(tenure: Tenure) -> None:
    write(tenure.folder / ".tenure" / "config.toml", 'lease = 60\n[serve]\nauth = "required"\n')
    inner = tenure.folder / "clone"
    write(inner / ".tenure" / "config.toml", "lease = 70\n")
    (inner / "deep").mkdir()
    shown = tenure.process("config", "--json", cwd=inner / "deep").json
    assert (shown["lease"]["value"], shown["serve.auth"]["value"]) == (70, "required")
    assert tenure.process("add", "One", cwd=inner / "deep").code == 0
    assert len(tenure("list", "--json").json) == 1


def test_a_setting_can_be_written_where_the_store_is_elsewhere(bare: Tenure, tmp_path: Path) -> None:
    url = str(tmp_path / "elsewhere.db")
    assert bare.process("config", "serve.auth", "required", TENURE_URL=url).code == 0
    file = bare.folder / ".tenure" / "config.toml"
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert bare.process("config", "serve.auth").out == "required\n"
    assert bare.process("config", "url", url).code == 0
    assert bare.process("init").code == 0
    assert Path(url).exists()
    said = bare.process("notify", "test")
    assert f"[notify.NAME] of {file}" in said.err


def test_a_path_in_a_file_is_the_same_wherever_the_command_runs(bare: Tenure) -> None:
    write(bare.folder / ".tenure" / "config.toml", 'url = "data/store.db"\n')
    (bare.folder / "data").mkdir()
    deep = bare.folder / "deep"
    deep.mkdir()
    assert bare.process("init", cwd=deep).code == 0
    assert (bare.folder / "data" / "store.db").exists()
    assert bare.process("list").code == 0


@pytest.mark.parametrize("where", ["kept", "/absolute", "s3://bucket/prefix"])
def test_a_store_is_made_where_artifacts_have_a_place_of_their_own(bare: Tenure, where: str) -> None:
    place = str(bare.folder) + where if where == "/absolute" else where
    assert bare.process("init", TENURE_ARTIFACTS=place).code == 0
    if "s3" not in where:
        (bare.folder / "log.txt").write_text("bytes")
        bare.process("add", "One")
        bare.process("claim")
        said = bare.process("artifact", "put", "log.txt", TENURE_ARTIFACTS=place)
        assert said.code == 0, said
        assert any((bare.folder / place).rglob("*"))


# --- TENURE_CONFIG ------------------------------------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose home is the test's folder."""
    return {"HOME": str(tmp_path), "TENURE_STATE": str(tmp_path / "state")}


def named(path: Path, environ: dict[str, str]) -> object:
    return read_settings(str(path.parent), environ | {"TENURE_CONFIG": str(path)})["serve.auth"].value


RISKY = '[serve]\nauth = "required"\n'


def test_a_file_below_ones_own_configuration_folder_counts_with_mode_0600(tmp_path: Path, own: dict[str, str]) -> None:
    path = write(tmp_path / ".config" / "any" / "settings.toml", RISKY)
    assert named(path, own) == "required"
    moved = {**own, "XDG_CONFIG_HOME": str(tmp_path / "elsewhere")}
    assert named(write(tmp_path / "elsewhere" / "a.toml", RISKY), moved) == "required"
    path.chmod(0o640)
    with pytest.raises(Untrusted, match="0640, and only 0600 is closed to others"):
        named(path, own)


def test_roots_file_counts_unless_others_may_write_it(
    tmp_path: Path, own: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "etc" / "config.toml", RISKY, 0o644)
    monkeypatch.setattr(operator_file, "ROOT", os.geteuid())  # so that these tests need not be root's
    assert named(path, own) == "required"
    path.chmod(0o664)
    with pytest.raises(Untrusted, match="others may write it"):
        named(path, own)
    monkeypatch.setattr(operator_file, "ROOT", os.geteuid() + 1)
    path.chmod(0o600)
    with pytest.raises(Untrusted, match="not root's and does not lie below"):
        named(path, own)


@pytest.mark.parametrize("marker", ["folder", "file"])
def test_no_file_of_a_git_work_tree_counts_whoever_owns_it(
    tmp_path: Path, own: dict[str, str], monkeypatch: pytest.MonkeyPatch, marker: str
) -> None:
    monkeypatch.setattr(operator_file, "ROOT", os.geteuid())
    clone = tmp_path / ".config" / "clone"
    inside = write(clone / "deep" / "config.toml", RISKY)
    if marker == "folder":
        (clone / ".git").mkdir()
    else:
        write(clone / ".git", "gitdir: elsewhere\n")
    link = tmp_path / "link.toml"
    link.symlink_to(inside)
    outside = write(tmp_path / "config.toml", RISKY)
    back = clone / "back.toml"
    back.symlink_to(outside)
    for path in (inside, link, back):
        with pytest.raises(Untrusted, match="lies in the git work tree"):
            named(path, own)
    # Allowing it word for word does not help: this is not a file that one allows.
    Trusted(tmp_path / "state").trust(inside, {"serve": {"auth": "required"}})
    with pytest.raises(Untrusted, match="work tree"):
        named(inside, own)


def test_a_file_named_tenure_toml_is_the_operators_too(tmp_path: Path, own: dict[str, str]) -> None:
    path = write(tmp_path / ".config" / "tenure.toml", 'key = "tnr_a_b"\n' + RISKY)
    settings = read_settings("/", own | {"TENURE_CONFIG": str(path)})
    assert settings["key"].value == "tnr_a_b"
    assert not settings.is_shared("serve.auth")


def test_it_beats_the_files_of_the_tree_and_not_the_environment(tmp_path: Path, own: dict[str, str]) -> None:
    write(tmp_path / "tree" / ".tenure" / "config.toml", "lease = 10\n")
    own |= {"TENURE_CONFIG": str(write(tmp_path / ".config" / "a.toml", "lease = 20\n"))}
    lease = read_settings(str(tmp_path / "tree"), own)["lease"]
    assert (lease.value, lease.origin) == (20, own["TENURE_CONFIG"])
    assert read_settings(str(tmp_path / "tree"), own | {"TENURE_LEASE": "30"})["lease"].value == 30


def test_its_key_goes_to_no_server_that_the_tree_names(tmp_path: Path, own: dict[str, str]) -> None:
    tree = write(tmp_path / "tree" / "tenure.toml", 'url = "https://evil.example"\n')
    Trusted(tmp_path / "state").trust(tree, {"url": "https://evil.example"})
    path = write(tmp_path / ".config" / "a.toml", 'key = "tnr_a_b"\n')
    with pytest.raises(BadConfig, match="your key is not sent"):
        read_settings(str(tree.parent), own | {"TENURE_CONFIG": str(path)})["key"]
    write(path, 'key = "tnr_a_b"\nurl = "https://ours.example"\n')
    settings = read_settings(str(tree.parent), own | {"TENURE_CONFIG": str(path)})
    assert (settings["url"].value, settings["key"].value) == ("https://ours.example", "tnr_a_b")


def test_a_file_that_does_not_count_is_an_error_of_every_verb(tenure: Tenure, tmp_path: Path) -> None:
    path = write(tmp_path / "config.toml", "lease = 5\n", 0o666)
    for verb in ("list", "config", "doctor", "claim"):
        said = tenure.process(verb, TENURE_CONFIG=str(path))
        assert said.code == 11, said
        assert f"TENURE_CONFIG names {path}, which does not count" in said.err + said.out
    assert tenure.process("list", "--json", TENURE_CONFIG=str(path)).json["error"]["code"] == "UNTRUSTED"
    gone = tenure.process("list", TENURE_CONFIG=str(tmp_path / "gone.toml"))
    assert (gone.code, "there is no such file" in gone.err) == (11, True)
    assert tenure.process("list", TENURE_CONFIG="").code == 0


def test_children_do_not_inherit_it(tenure: Tenure, add: Callable[..., str]) -> None:
    path = write(Path(os.environ["HOME"]) / ".config" / "a.toml", '[hooks]\non_task_completed = ["env"]\n')
    add("One")
    said = tenure.folder / "said"
    agent = f"sh -c 'env > {said}'"
    assert tenure.process("run", "--once", "--agent", agent, TENURE_CONFIG=str(path)).code == 0
    assert "TENURE_TASK=" in said.read_text()
    assert "TENURE_CONFIG" not in said.read_text()
