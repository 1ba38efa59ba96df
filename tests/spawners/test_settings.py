"""`[spawners]`, `[programs]` and `[gateway]` as they are read: from trusted files alone, refused with the setting."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tenure.config import BadConfig, Settings, read_settings
from tenure.spawners.command import CommandSpawner
from tenure.spawners.gateway import GatewaySpawner
from tenure.spawners.local import LocalSpawner
from tenure.spawners.port import SpawnFailed
from tenure.spawners.settings import read_gateway, read_programs, read_spawners, spawners_here
from tenure.trust.grants import Trusted, Untrusted
from tests.servers.gateway import SECRET
from tests.spawners.requests import REQUEST

GATEWAY = '[programs.claude]\nagent = "claude"\n[gateway]\n'


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"TENURE_STATE": str(tmp_path / "state"), "HOME": str(tmp_path), "SECRET": SECRET}


def settings_of(folder: Path, environ: dict[str, str], text: str, *, trusted: bool = True) -> Settings:
    path = folder / "tenure.toml"
    path.write_text(text)
    settings = read_settings(str(folder), environ)
    if trusted:
        Trusted(environ["TENURE_STATE"]).trust(path, settings.sources[str(path)].risky)
    return settings


def test_each_kind_is_opened_and_local_is_there_without_a_setting(tmp_path: Path, environ: dict[str, str]) -> None:
    text = '[spawners.gateway]\nurl = "https://host:7430"\nsecret_env = "SECRET"\n'
    text += '[spawners.docker]\nkind = "command"\nstart = ["docker", "run", "--detach", "{label}"]\n'
    text += 'status = ["in-docker", "{handle}"]\nend = ["docker", "stop", "{handle}"]\n'
    text += '[spawners.here]\nkind = "local"\nlog = "agents.log"\n'
    found = read_spawners(settings_of(tmp_path, environ, text), str(tmp_path))
    assert {name: type(spawner) for name, spawner in found.items()} == {
        "local": LocalSpawner, "gateway": GatewaySpawner, "docker": CommandSpawner, "here": LocalSpawner,
    }  # fmt: skip
    assert set(read_spawners(settings_of(tmp_path, environ, ""), str(tmp_path))) == {"local"}


def test_programs_have_words_a_folder_and_options(tmp_path: Path, environ: dict[str, str]) -> None:
    text = '[programs.coder]\nagent = "claude --effort high"\nfolder = "repo"\noptions = ["--land"]\n'
    programs = read_programs(settings_of(tmp_path, environ, text), str(tmp_path), ())
    assert programs.find("coder") == ("claude --effort high", str(tmp_path / "repo"), ("--land",))
    with pytest.raises(SpawnFailed, match="no program 'codr' is configured here"):
        programs.find("codr")


@pytest.mark.parametrize(
    "text",
    [
        '[programs.x]\nagent = "rm -rf x"\n',
        '[spawners.x]\nkind = "command"\nstart = ["rm"]\n',
        '[gateway]\nlisten = "0.0.0.0:1"\n',
    ],
)
def test_a_file_of_a_clone_starts_nothing_until_it_is_allowed(
    tmp_path: Path, environ: dict[str, str], text: str
) -> None:
    settings = settings_of(tmp_path, environ, text, trusted=False)
    with pytest.raises(Untrusted):
        read_gateway(settings, str(tmp_path)) if "gateway" in text else read_spawners(settings, str(tmp_path))


def test_without_trust_the_local_spawner_starts_known_agents_alone(tmp_path: Path, environ: dict[str, str]) -> None:
    said: list[str] = []
    settings = settings_of(tmp_path, environ, '[programs.x]\nagent = "rm"\n', trusted=False)
    found = spawners_here(settings, str(tmp_path), said.append)
    assert set(found) == {"local"}
    assert len(said) == 1
    with pytest.raises(SpawnFailed, match="no program 'x'"):
        found["local"]().spawn(replace(REQUEST, program="x"), 5.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[spawners.x]\nurl = "https://h"\n', "spawners.x.kind must be one of local, gateway, command"),
        ('[spawners.x]\nkind = "dokcer"\n', "must be one of local, gateway, command (got 'dokcer')"),
        ('[spawners.x]\nkind = "local"\nurl = "https://h"\n', "spawners.x.url is not a setting of the kind local"),
        ('[spawners.x]\nkind = "gateway"\nsecret_env = "SECRET"\n', "spawners.x.url is missing"),
        ('[spawners.gateway]\nurl = "https://h"\n', "spawners.gateway.secret_env or secret_file must be set"),
        ('[spawners.gateway]\nurl = "https://h"\nsecret_env = "NO"\n', "environment variable NO, which is not set"),
        ('[spawners.gateway]\nurl = "https://h"\nsecret_env = "HOME"\n', "secret must be whsec_"),
        ('[spawners.gateway]\nurl = "https://h"\nsecret_file = "no"\n', "No such file"),
        ('[spawners.gateway]\nurl = "http://10.0.0.7"\nsecret_env = "SECRET"\n', "must begin with https://"),
        ('[spawners.gateway]\nurl = "ssh://h"\nsecret_env = "SECRET"\n', "spawners.gateway: url is not a valid URL"),
        ('[spawners.command]\nkind = "command"\n', "spawners.command.start is missing"),
        ('[spawners.command]\nstart = ["a", 1]\n', "spawners.command.start must be a list of texts"),
        ('[spawners.command]\nstart = ["a"]\nend = ["b"]\n', "and end must be set together"),
        ('[spawners.command]\nstart = ["a", "{tok}"]\n', "spawners.command: start: there is no placeholder {tok}"),
        ('[programs.x]\nfolder = "y"\n', "programs.x.agent is missing"),
        ('[spawners.x]\nsecret = "y"\n', "there is no setting 'spawners.x.secret'"),
    ],
)
def test_a_wrong_setting_is_named(tmp_path: Path, environ: dict[str, str], text: str, said: str) -> None:
    with pytest.raises(BadConfig) as error:
        read_spawners(settings_of(tmp_path, environ, text), str(tmp_path))
    assert said in error.value.message


@pytest.mark.parametrize("url", ["http://127.0.0.1:7430", "http://localhost:7430", "http://[::1]:7430"])
def test_a_gateway_on_loopback_needs_no_tls(tmp_path: Path, environ: dict[str, str], url: str) -> None:
    text = f'[spawners.gateway]\nurl = "{url}"\nsecret_env = "SECRET"\n'
    assert "gateway" in read_spawners(settings_of(tmp_path, environ, text), str(tmp_path))


# --- the gateway's own settings ---


def test_the_gateway_reads_its_settings(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "key").write_text(SECRET + "\n")
    (tmp_path / "key").chmod(0o600)
    text = GATEWAY + 'listen = "[::1]:0"\nsecret_file = "key"\nsize = 3\n'
    found = read_gateway(settings_of(tmp_path, environ, text), str(tmp_path))
    assert (found.host, found.port, found.key, found.size) == ("::1", 0, b"k" * 32, 3)
    assert found.programs.find("claude").agent == "claude"
    with pytest.raises(SpawnFailed):
        found.programs.find("codex")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o602])
def test_a_secret_that_others_can_read_or_write_is_refused(tmp_path: Path, environ: dict[str, str], mode: int) -> None:
    """By the gateway, and by the server that sends to one."""
    path = tmp_path / "a key"
    path.write_text(SECRET)
    path.chmod(mode)
    sending = '[spawners.far]\nkind = "gateway"\nurl = "https://h"\nsecret_file = "a key"\n'
    for read in (
        lambda: read_gateway(settings_of(tmp_path, environ, GATEWAY + 'secret_file = "a key"\n'), str(tmp_path)),
        lambda: read_spawners(settings_of(tmp_path, environ, sending), str(tmp_path)),
    ):
        with pytest.raises(BadConfig, match=f"can be read or written by others .mode {mode:04o}.") as caught:
            read()
        assert caught.value.hint is not None
        assert f"chmod 600 '{path}'" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the gateway needs a secret"),
        ('listen = "7430"', "gateway.listen must be HOST:PORT (got '7430')"),
        ('listen = "host:99999"', "gateway.listen must be HOST:PORT"),
        ('listen = "0.0.0.0:7430"', "which others could read without TLS"),
        ('listen = "127.example.com:7430"', "which others could read without TLS"),
        ('tls_cert = "x"', "gateway.tls_cert and gateway.tls_key must be set together"),
        ("size = 0", "gateway.size must be from 1 to 1000 (got 0)"),
    ],
)
def test_a_wrong_setting_of_the_gateway_is_named(tmp_path: Path, environ: dict[str, str], text: str, said: str) -> None:
    with pytest.raises(BadConfig) as error:
        read_gateway(settings_of(tmp_path, environ, GATEWAY + text + "\n"), str(tmp_path))
    assert said in error.value.message


def test_a_gateway_without_a_program_does_not_start(tmp_path: Path, environ: dict[str, str]) -> None:
    environ["TENURE_GATEWAY_SECRET"] = SECRET
    with pytest.raises(BadConfig, match="no program is configured"):
        read_gateway(settings_of(tmp_path, environ, ""), str(tmp_path))


def test_the_secret_is_not_in_a_shared_file(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(BadConfig) as error:
        settings_of(tmp_path, environ, f'[gateway]\nsecret = "{SECRET}"\n')
    assert error.value.message.endswith("a shared file must not contain a secret")
    assert error.value.hint == "put it into TENURE_GATEWAY_SECRET, or .tenure/config.toml"
