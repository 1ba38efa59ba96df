"""`join --key` and `done` from a shell."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Tenure


def test_a_session_with_a_key_signs_what_it_submits(tenure: Tenure, add: Callable[..., str], tmp_path: Path) -> None:
    key = add("first")
    file = tmp_path / "my.key"
    assert tenure("join", "-n", "ann", "--session", "s1", "--key", str(file)).code == 0
    assert file.stat().st_mode & 0o777 == 0o600
    who = ("--agent", "ann", "--session", "s1")
    assert tenure("claim", key, *who).code == 0
    kept = file.read_text()
    file.write_text("01" * 32 + "\n")  # another key
    refused = tenure("done", "--summary", "x", *who)
    assert (refused.code, "BAD_SIGNATURE" in refused.out + refused.err) == (8, True)
    file.write_text(kept)
    assert tenure("done", "--summary", "x", *who).code == 0
    (entry,) = tenure("history", key, "--json").json
    (signature,) = entry["signatures"]
    assert f"└ signed by the key {signature['fingerprint']}" in tenure("history", key).out
    assert kept.strip() not in str(entry)


def test_join_says_that_it_created_the_key(tenure: Tenure, tmp_path: Path) -> None:
    file = tmp_path / "keys" / "my.key"
    asked = ("join", "-n", "ann", "--session", "s1", "--key", str(file))
    assert f"# created {file}: a new key" in tenure(*asked).out
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert "created" not in tenure(*asked).out
    assert tenure(*asked, "--json").json.items() >= {"key_file": str(file), "key_created": False}.items()


def test_a_key_that_is_missing_later_is_not_replaced(tenure: Tenure, add: Callable[..., str], tmp_path: Path) -> None:
    key, file = add("first"), tmp_path / "my.key"
    who = ("--agent", "ann", "--session", "s1")
    tenure("join", "-n", "ann", "--session", "s1", "--key", str(file))
    tenure("claim", key, *who)
    file.unlink()
    refused = tenure("done", "--summary", "x", *who)
    assert (refused.code, "there is no such file" in refused.err) == (8, True)
    assert not file.exists()


def test_a_key_that_the_session_may_not_have_changes_nothing(
    tenure: Tenure, add: Callable[..., str], tmp_path: Path
) -> None:
    key, file, other = add("first"), tmp_path / "my.key", tmp_path / "other.key"
    who = ("--agent", "ann", "--session", "s1")
    assert tenure("join", *who, "--key", str(file)).code == 0
    for _ in "a new file", "a file that is there":
        refused = tenure("join", *who, "--key", str(other))
        assert (refused.code, "a new key is a new session" in refused.err) == (8, True)
        assert not other.exists() or other.read_text() == "01" * 32
        other.write_text("01" * 32)
        other.chmod(0o600)
    kept = file.read_text()
    file.unlink()
    assert tenure("join", *who, "--key", str(file)).code == 8
    assert not file.exists()  # else `done` would sign with a key that nobody knows
    file.write_text(kept)
    file.chmod(0o600)
    assert tenure("claim", key, *who).code == 0
    assert tenure("done", "--summary", "x", *who).code == 0  # with the first key still


def test_what_is_no_file_is_no_key(tenure: Tenure, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for wrong in (tmp_path, tmp_path / "pipe", "/dev/null"):
        refused = tenure("join", "-n", "ann", "--session", "s1", "--key", str(wrong))
        assert (refused.code, "is not a file" in refused.err) == (8, True), refused
