"""`tenure audit …` from a shell."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tenure import Client
from tenure.server.access_log import AccessLog
from tests.cli.conftest import Tenure
from tests.servers.tenure import TenureServer

STORE = ".tenure/tenure.db"


def test_an_access_log_is_checked_without_a_store(bare: Tenure, tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    log = AccessLog(str(path), "local", size=0.001)
    for n in range(8):
        log.write({"route": "/x", "n": n})
    log.close()
    files = [*map(str, sorted(tmp_path.glob("access.jsonl.*"))), str(path)]
    said = bare("audit", "verify-access", *files)
    assert (said.code, "9 lines, each in its place; head 9:" in said.out) == (0, True)
    value = bare("audit", "verify-access", *files, "--json").json
    assert (value["ok"], value["lines"], value["first"], value["findings"]) == (True, 9, 1, [])
    assert bare("audit", "verify-access", *files, "--head", value["head"]).code == 0
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    assert bare("audit", "verify-access", *files).code == 0  # a cut end shows only with a head
    cut = bare("audit", "verify-access", *files, "--head", value["head"])
    assert (cut.code, cut.out) == (8, "the chain ends before line 9 of the given head\n")
    first = Path(files[0])
    first.write_bytes(first.read_bytes().replace(b"/x", b"/y", 1))
    assert "was changed" in bare("audit", "verify-access", *files).out


def test_a_torn_end_is_named(bare: Tenure, tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    AccessLog(str(path), "local").close()
    path.write_bytes(path.read_bytes() + b'{"number":2,')
    said = bare("audit", "verify-access", str(path))
    assert (said.code, "the last line is torn" in said.out) == (0, True)


def test_bad_arguments_are_refused(bare: Tenure, tmp_path: Path) -> None:
    path = tmp_path / "access.jsonl"
    AccessLog(str(path), "local").close()
    assert bare("audit", "verify-access", str(tmp_path / "missing")).code == 2
    assert bare("audit", "verify-access", str(path), "--head", "x").code == 2
    assert bare("audit", "verify", "missing.jsonl").code == 2


# --- the sealed log -------------------------------------------------------------------------------------------


def test_an_auditors_day(tenure: Tenure, add: Callable[..., str], tmp_path: Path) -> None:
    add("first")
    assert "no project is sealed" in tenure("audit", "verify").err
    assert tenure("audit", "on").code == 0
    assert tenure("audit", "on").out.startswith("the log is sealed already")
    assert tenure("audit", "on", "--json").json["outcome"] == "UNCHANGED"
    add("second")
    head = tenure("audit", "head", "--json").json
    assert (head["unsealed"], head["project"]) == (0, "default")
    good = tenure("audit", "verify", "--head", head["head"])
    assert (good.code, "unchanged; head " in good.out) == (0, True)
    for wrong in ("7:abc", "missing.json"):  # it says nothing about the log
        assert tenure("audit", "verify", "--head", wrong).code == 2
    both = tenure("audit", "verify", "--json").json
    assert [one["project"] for one in both["projects"]] == ["default", ""]
    assert len(tenure("audit", "head", "--all", "--json").json) == 2
    digest = tenure("audit", "export", "log.jsonl", "--json").json["digest"]
    assert (tmp_path / "log.jsonl").stat().st_mode & 0o777 == 0o600
    assert tenure("audit", "export", "log.jsonl").code != 0  # it is there
    checked = tenure("audit", "verify", "log.jsonl", "--head", head["head"])
    assert (checked.code, f"digest of the file: {digest}" in checked.out) == (0, True)
    with sqlite3.connect(tmp_path / STORE) as db:
        db.execute("UPDATE event SET user = 'mallory' WHERE sequence = 3")
    found = tenure("audit", "verify")
    assert (found.code, "default: event 3: changed" in found.out) == (8, True)
    with sqlite3.connect(tmp_path / STORE) as db:
        (patch,) = db.execute("SELECT patch FROM event WHERE sequence = 4").fetchone()
        db.execute("UPDATE event SET patch = '{' WHERE sequence = 4")
    found = tenure("audit", "verify")
    assert (found.code, "row 4, " in found.err) == (10, True), found
    with sqlite3.connect(tmp_path / STORE) as db:
        db.execute("UPDATE event SET patch = ? WHERE sequence = 4", [patch])
        db.execute("UPDATE project SET audited_at = 0")
    found = tenure("audit", "verify")
    assert (found.code, "default: it has seals" in found.out) == (8, True)
    with sqlite3.connect(tmp_path / STORE) as db:
        db.execute("UPDATE project SET audited_at = 1")
        db.execute("DELETE FROM event")
        db.execute("DELETE FROM seal")
    assert tenure("audit", "verify", "--project", "default").code == 0  # all of it is gone: only a head shows it
    assert tenure("audit", "verify", "--head", head["head"]).code == 8


def test_an_export_is_checked_without_a_store(bare: Tenure, tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "core" / "sealed_1.jsonl"
    text = golden.read_text("utf-8")
    (tmp_path / "log.jsonl").write_text(text, "utf-8")
    good = bare("audit", "verify", "log.jsonl", "--json").json
    assert (good["ok"], good["projects"][0]["signatures"]) == (True, 3)
    assert "An older version wrote this file" in bare("audit", "verify", "log.jsonl").out
    head = json.loads(text.splitlines()[0])["head"]
    (tmp_path / "log.jsonl").write_text(text.replace(head, f"9:{'0' * 64}"), "utf-8")
    found = bare("audit", "verify", "log.jsonl")
    assert (found.code, "the file names the head 9:" in found.out) == (8, True)
    other = bare("audit", "verify", "log.jsonl", "--project", "other")
    assert (other.code, "not of other" in other.err) == (2, True)
    (tmp_path / "log.jsonl").write_text("{}\n")
    assert "is not an export" in bare("audit", "verify", "log.jsonl").err


def test_an_attestation_is_a_head_that_the_server_has_signed(tenure: Tenure, add: Callable[..., str]) -> None:
    assert tenure("audit", "on").code == 0
    add("first")
    file = tenure.folder / "head.json"
    file.write_text(tenure("audit", "attest").out)
    assert tenure("audit", "verify", "--head", "head.json").code == 0
    said = json.loads(file.read_text())
    for changes in (
        {"project": "other"},
        {"head": f"1:{'0' * 64}"},
        {"timestamp": "2020-01-01T00:00:00Z"},
        {"form": "x"},
    ):
        file.write_text(json.dumps({**said, **changes}))
        refused = tenure("audit", "verify", "--head", "head.json")
        assert "attestation" in refused.err, changes
    file.write_text("[]")
    assert "not an attestation" in tenure("audit", "verify", "--head", "head.json").err


def test_the_same_over_http(tmp_path: Path, tenure: Tenure, add: Callable[..., str]) -> None:
    add("first")
    with TenureServer(str(tmp_path / STORE)) as server, Client(server.url, "default", agent="mia") as client:
        assert client.audit_on().outcome == "UPDATED"
        head = client.audit_head()["head"]
        assert client.verify_audit(head=head)["ok"]
        assert client.export_audit(tmp_path / "log.jsonl")["lines"] > 3
        attested = client.attest()
        assert attested["head"] == head
    assert tenure("audit", "verify", "log.jsonl", "--head", head).code == 0
    (tmp_path / "head.json").write_text(json.dumps(attested))
    assert tenure("audit", "verify", "--head", "head.json").code == 0
    assert tenure("audit", "verify", "log.jsonl", "--head", "head.json").code == 0
    of_another = (tmp_path / "log.jsonl").read_text().replace('"tenant":"local"', '"tenant":"other"', 1)
    (tmp_path / "other.jsonl").write_text(of_another)
    assert "of the tenant local, not of other" in tenure("audit", "verify", "other.jsonl", "--head", "head.json").err


def test_a_preset_is_set_with_the_limits(tenure: Tenure) -> None:
    assert tenure("limits", "set").code == 2
    assert "preset" not in tenure("limits").out
    assert tenure("limits", "set", "history_retention=30", "--compliance", "soc2").code == 0
    assert "preset soc2: history is kept for 365 days; the access log for at least 365 days" in tenure("limits").out
    assert tenure("limits", "set", "history_retention=10").code == 0
    below = "preset soc2: history is kept for 10 days, below the 365 days of the preset, by an owner's decision"
    assert below in tenure("limits").out
    assert tenure("limits", "set", "history_retention=365").code == 0
    shown = tenure("project", "show", "--json").json
    assert (shown["compliance"], shown["limits"]) == ("soc2", {"history_retention": 365})
    refused = tenure("limits", "set", "history_retention=30", "--role", "admin")
    assert refused.code != 0


def test_the_archive_seals_what_it_moves(tenure: Tenure, add: Callable[..., str]) -> None:
    tenure("audit", "on")
    key = add("first")
    tenure("claim", key)
    tenure("done", "--summary", "x")
    moved = tenure("db", "archive", "--older-than", "0", "--json").json
    assert (moved["moved"], moved["held_back"]) == (1, 0)
    (report, _) = tenure("audit", "verify", "--json").json["projects"]
    assert (report["ok"], report["present"]) == (True, report["sealed"])
