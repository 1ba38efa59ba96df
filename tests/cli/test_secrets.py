"""Secrets from a shell: `add --secret`, who sees them, and the rotation of their keys."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tenure.core.task_secrets import SHOWN
from tests.cli.conftest import Tenure

PLAIN = "correct horse battery"


@pytest.mark.parametrize("how", ["value", "file", "variable", "stdin"])
def test_a_secret_is_given_as_a_value_a_file_a_variable_or_stdin(
    tenure: Tenure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    file = tmp_path / "secret.txt"
    file.write_text(f"{PLAIN}\n")
    monkeypatch.setenv("MY_SECRET", PLAIN)
    given = {"value": PLAIN, "file": f"@{file}", "variable": "env:MY_SECRET", "stdin": "-"}[how]
    added = tenure("add", "deploy", "--secret", f"DB={given}", "--context", "be careful", "--json", stdin=f"{PLAIN}\n")
    assert added.code == 0, added.err
    assert added.json["spec"] == {"context": {"text": "be careful", "DB": SHOWN}}
    assert PLAIN not in added.out + added.err + tenure("show", added.json["key"]).out
    granted = tenure("claim", "--json").json
    assert granted["secrets"] == {"DB": PLAIN}


def test_only_the_receipt_shows_it_and_the_text_of_a_claim_names_it(tenure: Tenure, add: Callable[..., str]) -> None:
    key = add("deploy", "--secret", f"DB={PLAIN}")
    said = tenure("claim")
    assert "secrets  DB; `tenure show" in said.out
    assert PLAIN not in said.out + said.err
    receipt = said.out.partition("receipt  ")[2].split()[0]
    assert f"DB  {PLAIN}" in tenure("show", key, "--receipt", receipt).out
    assert tenure("show", key, "--receipt", receipt, "--json").json["secrets"] == {"DB": PLAIN}
    assert tenure("done", "-s", f"used {PLAIN}").code == 0
    late = tenure("show", key, "--receipt", receipt)
    assert late.code == 6
    shown = tenure("show", key, "--json")
    assert PLAIN not in late.out + late.err + shown.out
    assert shown.json["result"]["summary"] == f"used {SHOWN}"


def test_a_receipt_shows_the_secrets_of_its_own_task(tenure: Tenure, add: Callable[..., str]) -> None:
    key, other = add("deploy", "--secret", f"DB={PLAIN}"), add("other")
    receipt = tenure("claim", key, "--json").json["receipt"]
    said = tenure("show", other, "--receipt", receipt)
    assert (said.code, f"a receipt of {key[:5]}, not of {other}" in said.err) == (8, True)
    forged = tenure("show", key, "--receipt", f"{receipt[:-4]}0000")
    assert (forged.code, PLAIN in forged.out + forged.err + said.out) == (6, False)


def test_a_name_that_is_given_twice_is_refused(tenure: Tenure, add: Callable[..., str]) -> None:
    key = add("deploy")
    for words in (["add", "deploy"], ["edit", key]):
        said = tenure(*words, "--secret", f"DB={PLAIN}", "--secret", "DB=another")
        assert (said.code, "DB is given twice" in said.err, PLAIN in said.err) == (8, True, False)


def test_edit_changes_one_secret_and_keeps_the_others(tenure: Tenure, add: Callable[..., str]) -> None:
    key = add("deploy", "--secret", f"DB={PLAIN}", "--secret", "TOKEN=of the first day")
    assert tenure("edit", key, "--secret", "TOKEN=of the second day").code == 0
    assert tenure("claim", "--json").json["secrets"] == {"DB": PLAIN, "TOKEN": "of the second day"}


def test_an_error_about_a_secret_does_not_repeat_it(tenure: Tenure) -> None:
    for words in (["--secret", PLAIN], ["--secret", "A=env:NOT_SET_AT_ALL"], ["--secret", "A=@no-such-file"]):
        said = tenure("add", "deploy", *words)
        assert said.code != 0
        assert PLAIN not in said.out + said.err
    assert tenure("list", "--json").json == []


def test_without_a_key_a_marked_secret_is_refused_and_a_name_warns(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENURE_MASTER_KEY_FILE", str(tmp_path / "missing.key"))
    refused = tenure("add", "deploy", "--secret", f"DB={PLAIN}", "--json")
    assert "SECRETS_OFF" in refused.out + refused.err
    warned = tenure("add", "deploy", "--metadata", '{"db_password": "x y z"}', "--json")
    assert warned.code == 0
    assert "stored as given" in warned.err
    assert any("metadata.db_password" in text for text in warned.json["warnings"])


def test_keys_are_rotated_and_everything_stays_readable(
    tenure: Tenure, add: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENURE_STATE", str(tmp_path / "state"))
    key = add("deploy", "--secret", f"DB={PLAIN}")
    file = tmp_path / "state" / "master.key"
    first = file.read_text()
    assert tenure("secret", "rotate").code == 0
    said = tenure("secret", "rotate", "--master", "--reseal")
    assert (said.code, "back it up" in said.out, "secrets sealed again: 1" in said.out) == (0, True, True)
    assert file.read_text().split()[1:] == first.split()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text(file.read_text().split()[0])  # the first key is no longer needed
    assert tenure("claim", key, "--json").json["secrets"] == {"DB": PLAIN}
    assert tenure("secret", "rotate", "--agent", "ann", "--role", "agent").code != 0


def test_what_a_lost_master_key_sealed_is_given_up_by_a_person(
    tenure: Tenure, add: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENURE_STATE", str(tmp_path / "state"))
    key = add("deploy", "--secret", f"DB={PLAIN}")
    assert "nothing is lost" in tenure("secret", "rotate", "--lost").out
    (tmp_path / "state" / "master.key").unlink()
    for words in (["secret", "rotate"], ["edit", key, "--secret", "DB=another"], ["secret", "rotate", "--master"]):
        said = tenure(*words)
        assert (said.code, "is missing" in said.err) == (11, True), words
    assert tenure("secret", "rotate", "--lost", "--master").code == 2
    lost = tenure("secret", "rotate", "--lost")
    assert (lost.code, "data keys given up: 2" in lost.out, "made the master key" in lost.err) == (0, True, True)
    assert "set the secret again" in tenure("claim", key).err
    assert tenure("edit", key, "--secret", "DB=another one").code == 0
    assert tenure("claim", key, "--json").json["secrets"] == {"DB": "another one"}


def test_a_backup_says_that_it_has_no_key(
    tenure: Tenure, add: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENURE_STATE", str(tmp_path / "state"))
    assert "master key" not in tenure("db", "backup", str(tmp_path / "one.db")).out
    add("deploy", "--secret", f"DB={PLAIN}")
    assert "the master key is not in it" in tenure("db", "backup", str(tmp_path / "two.db")).out
    assert PLAIN.encode() not in (tmp_path / "two.db").read_bytes()
    key = (tmp_path / "state" / "master.key").read_text().strip()
    assert not any(one in (tmp_path / "two.db").read_bytes() for one in (key.encode(), bytes.fromhex(key)))


def test_doctor_says_whether_the_key_is_there(
    tenure: Tenure, add: Callable[..., str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TENURE_STATE", str(tmp_path / "state"))
    assert "secrets" not in tenure("doctor").out
    add("deploy", "--secret", f"DB={PLAIN}")
    assert "the master key opens those of 1 project" in tenure("doctor").out
    monkeypatch.setenv("TENURE_MASTER_KEY", "a5" * 32)
    assert "are sealed under the master key" in tenure("doctor").out


def test_what_was_stored_without_a_key_is_named_by_doctor_and_sealed_by_a_command(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as without:
        without.setenv("TENURE_MASTER_KEY_FILE", str(tmp_path / "missing.key"))
        tenure("add", "deploy", "--metadata", f'{{"db_password": "{PLAIN}"}}')
        warned = tenure("doctor").out
        assert "A-001-deploy metadata.db_password" in warned
        assert "tenure secret seal" in warned
        refused = tenure("secret", "seal")
        assert (refused.code, PLAIN in warned + refused.err) == (11, False)
    said = tenure("secret", "seal")
    assert (said.code, "texts sealed: 1" in said.out, "the log" in said.out) == (0, True, True)
    assert tenure("show", "A-001", "--json").json["metadata"] == {"db_password": SHOWN}
    assert "stored as given" not in tenure("doctor").out
    assert tenure("secret", "seal", "--json").json["sealed"] == 0
    assert tenure("secret", "seal", "--agent", "ann", "--role", "agent").code != 0


def test_serve_names_what_was_stored_as_given(tenure: Tenure, tmp_path: Path) -> None:
    tenure.environ["TENURE_MASTER_KEY_FILE"] = str(tmp_path / "missing.key")
    assert tenure.process("add", "deploy", "--metadata", f'{{"db_password": "{PLAIN}"}}').code == 0
    with tenure.start("serve", "--port", 0) as serving:
        assert serving.stdout is not None
        assert serving.stdout.readline().startswith("serving ")
        serving.send_signal(signal.SIGTERM)
        _, said = serving.communicate(timeout=60)
    assert serving.returncode == 0
    assert "A-001-deploy metadata.db_password" in said
    assert "tenure secret seal" in said
    assert PLAIN not in said
