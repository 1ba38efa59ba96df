"""Settings of sinks, hooks and channels: read from both files, refused with the name of the setting, never printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenure.config import BadConfig, Settings, read_settings
from tenure.sinks.settings import Messaging, read_messaging
from tenure.trust.grants import Trusted, Untrusted


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"TENURE_STATE": str(tmp_path / "state"), "HOME": str(tmp_path)}


def settings_of(folder: Path, environ: dict[str, str], text: str, *, shared: bool = False) -> Settings:
    (folder / ".tenure").mkdir(mode=0o700, exist_ok=True)
    (folder / ".tenure" / "tenure.db").touch()
    path = folder / "tenure.toml" if shared else folder / ".tenure" / "config.toml"
    path.write_text(text)
    path.chmod(0o600)
    return read_settings(str(folder), environ)


def read(folder: Path, environ: dict[str, str], text: str) -> Messaging:
    return read_messaging(settings_of(folder, environ, text))


def test_a_sink_is_read_with_its_defaults(tmp_path: Path, environ: dict[str, str]) -> None:
    (sink,) = read(tmp_path, environ, '[sinks.main]\nurl = "nats://u:p@host:4222/?prefix=x"\n').sinks
    assert (sink.name, sink.url, sink.shown) == ("main", "nats://u:p@host:4222/?prefix=x", "nats://host:4222")
    assert (sink.kinds, sink.projects, sink.max_lag, sink.keys) == (frozenset(), (), 7 * 86_400_000_000, False)


def test_kinds_may_be_patterns_and_a_sink_may_be_off(tmp_path: Path, environ: dict[str, str]) -> None:
    text = '[sinks.a]\nurl = "nats://h"\nkinds = ["dag.*", "task.completed"]\n'
    text += '[sinks.b]\nurl = "nats://h"\nenabled = false\n'
    (sink,) = read(tmp_path, environ, text).sinks
    assert {"dag.completed", "dag.failed", "task.completed"} <= sink.kinds
    assert "task.created" not in sink.kinds


def test_a_url_comes_from_the_environment_or_a_file(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / ".tenure").mkdir(mode=0o700)
    (tmp_path / ".tenure" / "secret").write_text("amqp://u:p@host\n")
    environ["BROKER"] = "nats://host"
    text = '[sinks.a]\nurl_env = "BROKER"\n[sinks.b]\nurl_file = "secret"\n'
    assert [sink.url for sink in read(tmp_path, environ, text).sinks] == ["nats://host", "amqp://u:p@host"]


def test_addresses_of_mail_go_into_its_url(tmp_path: Path, environ: dict[str, str]) -> None:
    text = '[notify.mail]\nurl = "smtps://u:p@host"\nfrom = "a@b.org"\nto = ["c@d.org", "e@f.org"]\n'
    (channel,) = read(tmp_path, environ, text).channels
    assert channel.url == "smtps://u:p@host/?from=a%40b.org&to=c%40d.org,e%40f.org"
    assert channel.is_mail


def test_hooks_are_commands_of_a_kind(tmp_path: Path, environ: dict[str, str]) -> None:
    text = '[hooks]\non_task_completed = ["a", "b"]\non_agent_died = [["c"], ["d"]]\nguard_edits = true\n'
    assert read(tmp_path, environ, text).hooks == {
        "task.completed": [("a", "b")],
        "agent.died": [("c",), ("d",)],
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[sinks.a]\nprefix = "x"\n', "sinks.a has no url"),
        ('[sinks.a]\nurl = "nats://h"\nurl_env = "X"\n', "sinks.a has url and url_env"),
        ('[sinks.a]\nurl_env = "NOT_SET"\n', "sinks.a.url_env: the environment variable NOT_SET is not set"),
        ('[sinks.a]\nurl_file = "none"\n', "sinks.a.url_file"),
        ('[sinks.a]\nurl = "nats://h"\nkinds = ["task.complete"]\n', "sinks.a.kinds: 'task.complete'"),
        ('[sinks.a]\nurl = "nats://h"\nmax_lag = 0\n', "sinks.a.max_lag must be greater than 0"),
        ('[sinks.a]\nurl = "nats://h"\nkeys = true\n', "sinks.a.keys is for Redis alone"),
        ('[sinks.hooks]\nurl = "nats://h"\n', "may not have the name 'hooks'"),
        ("[sinks.a]\nurl = 7\n", "sinks.a.url is 7; it must be a text"),
        ("[sinks.a]\nlag = 7\n", "there is no setting 'sinks.a.lag'"),
        ('[notify.a]\nurl = "https://h/x"\ncommand = ["x"]\n', "notify.a must have either a url or a command"),
        ('[notify.a]\nurl = "ftp://h/x"\n', "notify.a.url has another scheme"),
        ('[notify.a]\ncommand = ["x"]\nkinds = ["death"]\n', "notify.a.kinds: 'death'"),
        ('[notify.a]\ncommand = ["x"]\nfrom = "a@b"\n', "from and to are for mail alone"),
        ('[hooks]\non_task_complete = ["x"]\n', "hooks.on_task_complete names no kind of event"),
        ('[hooks]\non_task_completed = ["x", 7]\n', "hooks.on_task_completed must be a command"),
        ('[webhooks]\nnetworks = "10.0.0.1/8"\n', "webhooks.networks"),
    ],
)
def test_a_bad_value_is_named(tmp_path: Path, environ: dict[str, str], text: str, said: str) -> None:
    with pytest.raises(BadConfig) as found:
        read(tmp_path, environ, text)
    assert said in found.value.message


@pytest.mark.parametrize(
    "text", ['[sinks.a]\nurl = "nats://u:p4ss@h"\n', '[notify.a]\nurl = "https://h/services/p4ss"\n']
)
def test_a_shared_file_has_no_secret(tmp_path: Path, environ: dict[str, str], text: str) -> None:
    settings = settings_of(tmp_path, environ, text, shared=True)
    path = tmp_path / "tenure.toml"
    Trusted(environ["TENURE_STATE"]).trust(path, settings.sources[str(path)].risky)
    with pytest.raises(BadConfig) as found:
        read_messaging(settings)
    assert "a shared file must not contain a secret" in found.value.message
    assert "p4ss" not in f"{found.value.message} {found.value.hint}"


@pytest.mark.parametrize(
    "text",
    [
        '[sinks.a]\nurl = "nats://u:p4ss@evil"\n',
        '[notify.a]\nurl = "https://evil/services/p4ss"\n',
        '[notify.a]\ncommand = ["evil"]\n',
        '[hooks]\non_task_completed = ["evil"]\n',
        '[webhooks]\nnetworks = "0.0.0.0/0"\n',
        "[webhooks]\nallow_http = true\n",
    ],
)
def test_nothing_of_a_repository_counts_before_it_is_trusted(
    tmp_path: Path, environ: dict[str, str], text: str
) -> None:
    settings = settings_of(tmp_path, environ, text, shared=True)
    with pytest.raises(Untrusted) as found:
        read_messaging(settings)
    assert "p4ss" not in found.value.message
