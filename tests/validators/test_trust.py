"""A cloned repository runs nothing until its commands are allowed, and nothing else once they are."""

import os
import stat
import threading
from pathlib import Path

import pytest

from tenure.core.errors import InvalidInput
from tenure.trust.grants import FILE, Trusted, Untrusted, read_section
from tenure.validators.commands import read_commands

CONFIG = """
lease = 60
[commands.unit]
argv = ["pytest", "-q"]
timeout = 600
[judges.default]
kind = "anthropic"
model = "m"
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "repository" / "tenure.toml"
    path.parent.mkdir()
    path.write_text(CONFIG)
    return path


@pytest.fixture
def trusted(tmp_path: Path) -> Trusted:
    return Trusted(tmp_path / "state" / "tenure")


def test_nothing_runs_before_it_is_allowed(config: Path, trusted: Trusted) -> None:
    with pytest.raises(Untrusted, match="not allowed it yet") as raised:
        trusted.checked(config)
    assert '+ commands.unit.argv = ["pytest", "-q"]' in raised.value.changes
    assert not trusted.path.exists()


def test_what_was_allowed_runs_as_it_was_read(config: Path, trusted: Trusted) -> None:
    trusted.trust(config, read_section(config))
    section = trusted.checked(config)
    assert read_commands(section["commands"])["unit"].argv == ("pytest", "-q")
    assert set(section) == {"commands", "judges"}
    assert list(trusted.listed()) == [str(config)]


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ('"-q"', '"-q", "-x"', '~ commands.unit.argv = ["pytest", "-q"] → ["pytest", "-q", "-x"]'),
        ("timeout = 600", "timeout = 600.0", "~ commands.unit.timeout = 600 → 600.0"),
        ("timeout = 600\n", "", "- commands.unit.timeout = 600"),
        ("timeout = 600", "timeout = 600\nnetwork = true", "+ commands.unit.network = true"),
        ("[judges", '[commands.other]\nargv = ["sh"]\n[judges', '+ commands.other.argv = ["sh"]'),
        ('"m"', '"\u043c"', '~ judges.default.model = "m" → "\\u043c"'),
        ("lease = 60", 'lease = 60\nhooks.on_task_completed = ["sh"]', '+ hooks.on_task_completed = ["sh"]'),
        ("lease = 60", 'lease = 60\nrun.agent = "sh -c x"', '+ run.agent = "sh -c x"'),
        ("lease = 60", 'lease = 60\nspawners.x.argv = ["a\\u001b[2K"]', '+ spawners.x.argv = ["a\\u001b[2K"]'),
    ],
)
def test_any_change_of_a_command_is_refused_and_shown(
    config: Path, trusted: Trusted, old: str, new: str, change: str
) -> None:
    trusted.trust(config, read_section(config))
    config.write_text(CONFIG.replace(old, new))
    with pytest.raises(Untrusted, match="not what you allowed") as raised:
        trusted.checked(config)
    assert raised.value.changes == (change,)
    assert "\x1b" not in raised.value.message
    trusted.trust(config, read_section(config))
    trusted.checked(config)


@pytest.mark.parametrize(
    "new", ["lease = 61", "# a remark\nlease = 60", "lease = 60\nhooks.guard_edits = true", "lease = 60\nproject = 'x'"]
)
def test_a_change_of_anything_else_is_none(config: Path, trusted: Trusted, new: str) -> None:
    trusted.trust(config, read_section(config))
    config.write_text(CONFIG.replace("lease = 60", new))
    trusted.checked(config)


def test_the_order_of_the_keys_is_not_a_change(config: Path, trusted: Trusted) -> None:
    trusted.trust(config, read_section(config))
    config.write_text(
        CONFIG.replace('argv = ["pytest", "-q"]\ntimeout = 600', 'timeout = 600\nargv = ["pytest", "-q"]')
    )
    trusted.checked(config)


def test_a_file_that_starts_nothing_needs_no_trust(config: Path, trusted: Trusted) -> None:
    config.write_text("lease = 60\n[commands]\n")
    assert trusted.checked(config) == {}


def test_the_same_commands_elsewhere_are_not_allowed(config: Path, trusted: Trusted, tmp_path: Path) -> None:
    trusted.trust(config, read_section(config))
    clone = tmp_path / "clone.toml"
    clone.write_text(CONFIG)
    with pytest.raises(Untrusted):
        trusted.checked(clone)
    (tmp_path / "link.toml").symlink_to(config)
    trusted.checked(tmp_path / "link.toml")  # the same file


def test_trust_can_be_taken_back(config: Path, trusted: Trusted) -> None:
    trusted.trust(config, read_section(config))
    assert trusted.forget(config)
    assert not trusted.forget(config)
    with pytest.raises(Untrusted):
        trusted.checked(config)


def test_the_memory_is_the_users_alone(config: Path, trusted: Trusted) -> None:
    before = os.umask(0)
    try:
        trusted.trust(config, read_section(config))
    finally:
        os.umask(before)
    assert stat.S_IMODE(trusted.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(trusted.path.parent.stat().st_mode) == 0o700
    assert sorted(path.name for path in trusted.path.parent.iterdir()) == [FILE, "trusted.lock"]


@pytest.mark.parametrize("mode", [0o622, 0o606, 0o640])
def test_a_memory_that_others_can_get_at_proves_nothing(config: Path, trusted: Trusted, mode: int) -> None:
    trusted.trust(config, read_section(config))
    trusted.path.chmod(mode)
    with pytest.raises(Untrusted, match="is not trusted"):
        trusted.checked(config)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}', "[" * 100_000])
def test_a_memory_that_cannot_be_read_proves_nothing(config: Path, trusted: Trusted, content: str) -> None:
    trusted.trust(config, read_section(config))
    trusted.path.write_text(content)
    with pytest.raises(Untrusted, match="cannot be read"):
        trusted.checked(config)


def test_a_link_in_the_place_of_the_memory_is_not_followed(config: Path, trusted: Trusted, tmp_path: Path) -> None:
    trusted.trust(config, read_section(config))
    trusted.path.rename(tmp_path / "planted.json")
    trusted.path.symlink_to(tmp_path / "planted.json")
    with pytest.raises(Untrusted):
        trusted.checked(config)


def test_two_that_allow_at_once_are_both_remembered(trusted: Trusted, tmp_path: Path) -> None:
    start = threading.Barrier(8)

    def allow(n: int) -> None:
        start.wait()
        trusted.trust(tmp_path / f"{n}.toml", {"commands": {"it": {"argv": [str(n)]}}})

    threads = [threading.Thread(target=allow, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(trusted.listed()) == {str(tmp_path / f"{n}.toml") for n in range(8)}


@pytest.mark.parametrize("content", [b"\xff", b"a = ", b"x" * (1 << 20) + b"xx"])
def test_an_unreadable_configuration_is_reported(config: Path, trusted: Trusted, content: bytes) -> None:
    config.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"tenure\.toml"):
        trusted.checked(config)
