"""`join --key` and `done` from a shell."""

from __future__ import annotations

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
    assert len(entry["signatures"]) == 1
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
