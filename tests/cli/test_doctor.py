"""`doctor`: each trouble is found and gets a fix that works; nothing is changed by looking."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tenure import process_table
from tenure.agents.runner.outbox import Finished, Outbox
from tenure.client import Client
from tenure.core import commands as c
from tenure.core.commands import Process
from tenure.core.records import Reservation, Session, replace
from tenure.sealing.signing import SigningKey
from tenure.stores.port import Change
from tenure.stores.sqlite import schema, store_file
from tests.cli.conftest import Tenure
from tests.cli.shop import LEASE, Shop, busy_shop, just_now
from tests.cli.terminal import Terminal
from tests.servers.valkey import ValkeyServer

Findings = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def on_a_disk(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests may run in memory, of which doctor warns."""
    mounts = tmp_path_factory.mktemp("mounts") / "mounts"
    mounts.write_text("/dev/sda / ext4 rw 0 0\n")
    monkeypatch.setattr(store_file, "MOUNTS", str(mounts))


@pytest.fixture
def shop(bare: Tenure) -> Iterator[Shop]:
    shop = Shop(bare.folder / ".tenure" / "tenure.db", just_now(0), "default")
    yield shop
    shop.close()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No agent is installed here, whoever runs the tests."""
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.fixture
def examine(bare: Tenure) -> Callable[..., Findings]:
    def findings(*words: object, code: int = 0) -> Findings:
        said = bare("doctor", *words, "--json")
        assert said.code == code, said.out
        return list(said.json)

    return findings


def told(findings: Findings, check: str) -> list[tuple[str, str]]:
    return [(one["level"], one["message"]) for one in findings if one["check"] == check]


def the(findings: Findings, text: str) -> dict[str, Any]:
    found = [one for one in findings if text in one["message"]]
    assert len(found) == 1, findings
    return found[0]


# --- the store ---


def test_a_new_store_is_well(tenure: Tenure, alone: None) -> None:
    said = tenure("doctor")
    assert said.code == 0
    assert "no problems found" in said.out
    assert "SQLite 3." in said.out
    assert f"schema {len(schema.migrations())}" in said.out


def test_no_store_is_a_finding_and_the_exit_code_says_so(examine: Callable[..., Findings]) -> None:
    (finding,) = examine(code=1)
    assert finding["level"] == "error"
    assert "tenure init" in finding["fix"]


def test_a_store_that_cannot_be_opened_does_not_hide_what_else_is_wrong(
    tenure: Tenure, examine: Callable[..., Findings]
) -> None:
    path = tenure.folder / ".tenure" / "tenure.db"
    path.write_bytes(b"no database at all" * 100)
    (tenure.folder / ".tenure").chmod(0o755)
    findings = examine("--verify", code=10)
    assert "not a database" in told(findings, "store")[0][1]
    assert told(findings, "permissions")[0][0] == "error"


def test_bad_settings_are_a_finding(tenure: Tenure, examine: Callable[..., Findings]) -> None:
    (tenure.folder / "tenure.toml").write_text("leese = 3\n")
    (finding,) = examine(code=11)
    assert "did you mean lease?" in finding["message"]


def test_a_project_that_is_not_there_is_an_error(tenure: Tenure, examine: Callable[..., Findings]) -> None:
    findings = examine("--project", "attic", code=7)
    assert "there are default" in the(findings, "project attic is not in this store")["message"]


def test_a_check_that_fails_is_a_finding_and_the_rest_is_made(
    tenure: Tenure, examine: Callable[..., Findings], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: object) -> None:
        raise PermissionError("not for you")

    monkeypatch.setattr(os, "statvfs", broken)
    findings = examine()
    assert told(findings, "disk") == [("warning", "could not be checked: not for you")]
    assert told(findings, "outbox")[0][0] == "ok"


# --- the place ---


def test_a_folder_that_others_may_read_is_an_error_and_the_fix_mends_it(
    tenure: Tenure, examine: Callable[..., Findings]
) -> None:
    folder = tenure.folder / ".tenure"
    folder.chmod(0o755)
    (folder / "tenure.db").chmod(0o644)
    finding = the(examine(code=7), "others may read .tenure")
    assert ".tenure/tenure.db" in finding["message"]
    subprocess.run(finding["fix"], shell=True, check=True)
    assert told(examine(), "permissions")[0][0] == "ok"


def test_a_readable_receipt_is_a_warning(tenure: Tenure, examine: Callable[..., Findings]) -> None:
    tenure("add", "x")
    tenure("claim", "--session", "s1")
    (receipt,) = Path(tenure.environ["HOME"]).rglob("A-001@1")
    receipt.chmod(0o644)
    assert "receipts/s1/" in the(examine(), "others may read")["message"]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def test_git_must_ignore_the_store_and_the_fix_makes_it(bare: Tenure, examine: Callable[..., Findings]) -> None:
    git(bare.folder, "init", "-q")
    assert bare("init").code == 0
    assert told(examine(), "git") == [("ok", "git ignores the store")]
    (bare.folder / ".tenure" / ".gitignore").unlink()
    finding = the(examine(code=7), "git does not ignore")
    subprocess.run(finding["fix"], shell=True, check=True)
    assert told(examine(), "git")[0][0] == "ok"
    git(bare.folder, "add", "-f", ".tenure/tenure.db")
    assert the(examine(code=7), "git tracks .tenure/tenure.db")["level"] == "error"


@pytest.mark.parametrize(
    ("kind", "level", "code"), [("nfs4", "error", 10), ("fuse.sshfs", "error", 10), ("tmpfs", "warning", 0)]
)
def test_a_file_system_that_does_not_keep_is_found(
    tenure: Tenure, examine: Callable[..., Findings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    kind: str, level: str, code: int,
) -> None:  # fmt: skip
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver {tenure.folder} {kind} rw 0 0\n")
    monkeypatch.setattr(store_file, "MOUNTS", str(mounts))
    ((found, message),) = told(examine(code=code), "file system")
    assert found == level
    assert kind in message


@pytest.mark.parametrize(("megabytes", "level", "code"), [(10, "error", 7), (500, "warning", 0), (50_000, "ok", 0)])
def test_a_full_disk_is_found_before_it_is_full(
    tenure: Tenure, examine: Callable[..., Findings], monkeypatch: pytest.MonkeyPatch, megabytes: int, level: str,
    code: int,
) -> None:  # fmt: skip
    real = os.statvfs(tenure.folder)

    class Space:
        f_bavail, f_frsize, f_files, f_favail = megabytes * 256, 4096, real.f_files, real.f_favail

    monkeypatch.setattr(os, "statvfs", lambda _: Space)
    ((found, message),) = told(examine(code=code), "disk")
    assert (found, f"{megabytes} MB free" in message) == (level, True)


def test_a_clock_that_went_back_is_found(shop: Shop, examine: Callable[..., Findings]) -> None:
    assert told(examine(), "clock")[0][0] == "ok"
    shop.clock.advance(seconds=3600)
    shop.mia.add("from the future")
    ((level, message),) = told(examine(), "clock")
    assert level == "warning"
    assert re.search(r"59 min|1 h", message)


# --- the team and the work ---


def test_agents_that_went_silent_while_they_hold_something_are_named(
    bare: Tenure, examine: Callable[..., Findings]
) -> None:
    busy_shop(bare.folder / ".tenure" / "tenure.db", just_now()).close()
    findings = examine("--project", "shop")
    finding = the(findings, "cy holds C-001-write-the-api")
    assert finding["level"] == "warning"
    assert "lease ends in" in finding["fix"]
    assert ("ok", "0 seen recently, 4 not") in told(findings, "agents")
    assert the(findings, "stopped for track:F")["fix"] == "`tenure go --track F` allows it again"


def test_a_lease_that_ran_out_unnoticed_is_a_note(bare: Tenure, examine: Callable[..., Findings]) -> None:
    shop = Shop(bare.folder / ".tenure" / "tenure.db", just_now(600), "default")
    shop.mia.add("x")
    shop.client("bo").claim(lease=60)
    shop.close()
    finding = the(examine(), "1 claim ran out, the first 9 min ago")
    assert finding["level"] == "note"
    assert "A-001-x" in finding["message"]
    assert bare("add", "another").code == 0  # any command that writes
    assert told(examine(), "leases") == [("ok", "none that ran out is left unsettled")]


def test_a_claim_whose_process_has_ended_is_found(shop: Shop, examine: Callable[..., Findings]) -> None:
    shop.mia.add("x")
    held = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = process_table.look_up(held.pid)
    assert found is not None
    mine = Process(host=process_table.host(), boot=process_table.boot_id(), pid=held.pid, start=found.start)
    shop.client("bo").claim(lease=LEASE, process=mine)
    assert told(examine(), "orphans")[0][0] == "ok"
    held.kill()
    held.communicate()
    finding = the(examine(), f"A-001-x is held by process {held.pid}, which has ended")
    assert finding["level"] == "warning"


def test_the_process_of_an_agent_that_ended_holding_nothing_is_no_finding(
    shop: Shop, examine: Callable[..., Findings]
) -> None:
    """A runner that has ended leaves its agents known for a while."""
    run = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = process_table.look_up(run.pid)
    assert found is not None
    shop.client("bo").register(
        host=process_table.host(), boot=process_table.boot_id(), pid=run.pid, pid_start=found.start, managed=True
    )
    run.kill()
    run.communicate()
    assert told(examine(), "orphans") == [("ok", "no claim of a process that has ended")]


def test_a_process_of_another_host_proves_nothing(shop: Shop, examine: Callable[..., Findings]) -> None:
    shop.mia.add("x")
    shop.client("bo").claim(lease=LEASE, process=Process(host="elsewhere", boot="b", pid=2**22 + 1, start=1))
    assert told(examine(), "orphans")[0][0] == "ok"


def test_a_task_that_nobody_here_can_take_is_found(shop: Shop, examine: Callable[..., Findings]) -> None:
    for n in range(3):
        shop.mia.add(f"Draw {n}", constraints={"required_capabilities": ["pencil"]})
    assert told(examine(), "stuck")[0][0] == "ok"  # nobody is here at all yet
    shop.client("ann").register(capabilities=("python",))
    finding = the(examine(), "no agent here can take A-001-draw-0 and 2 like it")
    assert "ann lacks pencil" in finding["message"]
    shop.client("bo").register(capabilities=("pencil",))
    assert told(examine(), "stuck")[0][0] == "ok"


def test_a_task_for_a_type_of_agent_that_is_not_here_is_found(shop: Shop, examine: Callable[..., Findings]) -> None:
    shop.mia.add("Review", constraints={"agent_type": "reviewer"})
    shop.client("ann").register(type="coder")
    finding = the(examine(), "no agent here can take A-001-review")
    assert "ann has the type coder" in finding["message"]
    assert "of type reviewer" in str(finding)
    shop.client("bo").register(type="reviewer")
    assert told(examine(), "stuck")[0][0] == "ok"


def test_what_waits_for_a_person_is_named_with_the_command_that_helps(
    bare: Tenure, examine: Callable[..., Findings]
) -> None:
    shop = busy_shop(bare.folder / ".tenure" / "tenure.db", just_now())
    shop.mia.pause("B-002", "not before Monday")
    shop.mia.cancel("G-001", "nobody reads it")
    shop.close()
    findings = examine("--project", "shop")
    letter = the(findings, "C-002-send-a-mail is a dead letter: after 1 of 1 attempts: the mail server says no")
    assert "1 task behind it: G-002-tell-everybody" in letter["message"]
    assert "`tenure retry C-002`" in letter["fix"]
    assert the(findings, "Which region do you mean?")["fix"] == "`tenure answer B-003 TEXT`"
    assert "`tenure resume B-002`" in the(findings, "B-002-import-old-accounts (not before Monday)")["fix"]
    behind = the(findings, "E-001-ship-it waits for G-001-write-the-guide, which is cancelled")
    assert "`tenure unlink E-001-ship-it G-001`" in behind["fix"]
    for command in re.findall(r"`tenure ([^`]+)`", " ".join(one["fix"] or "" for one in findings)):
        words = command.replace("TEXT", "eu").split()
        assert bare(*words, "--project", "shop").code == 0, command
    left = told(examine("--project", "shop"), "stuck")
    assert [message for level, message in left if level == "warning"] == []


def test_a_stored_key_that_signs_nothing_is_found(shop: Shop, examine: Callable[..., Findings]) -> None:
    ann = shop.client("ann")
    ann.signing_key = SigningKey(b"\x01" * 32)
    ann.register()
    assert told(examine(), "keys") == []
    with ann.store.begin("local", write=True) as tx:
        (session,) = [row for row in tx.find(Session, {}) if row.public_key]
        tx.save([Change(session, replace(session, public_key="01" + "00" * 31))])
    ((level, message),) = told(examine(code=7), "keys")
    assert (level, "small order" in message, session.id in message) == ("error", True, True)


def test_many_of_a_kind_are_counted(shop: Shop, examine: Callable[..., Findings]) -> None:
    for n in range(8):
        shop.mia.add(f"Fail {n}", max_attempts=1)
        claim = shop.client("ann").claim(lease=LEASE)
        shop.client("ann").fail(str(claim.receipt), "no", "task")
    stuck = told(examine(), "stuck")
    assert len(stuck) == 6
    assert stuck[-1] == ("warning", "3 more dead letters")


# --- beside the store ---


def test_finished_work_that_was_not_handed_in_is_found(tenure: Tenure, examine: Callable[..., Findings]) -> None:
    box = Outbox(str(tenure.folder / ".tenure"), str(tenure.folder / ".tenure" / "tenure.db"), tenure.environ)
    path = box.put(Finished(what="submit", project="default", key="A-001-x", receipt="A-001@1:X"))
    assert the(examine(), "was not submitted yet: A-001-x")["level"] == "warning"
    box.refused(path)
    assert the(examine(), "the store refused")["fix"].startswith("look at ")


def test_receipts_of_sessions_that_are_over_are_noted(tenure: Tenure, examine: Callable[..., Findings]) -> None:
    tenure("add", "x")
    tenure("claim", "--session", "s1")
    assert told(examine(), "receipts")[0][0] == "ok"
    with Client(str(tenure.folder / ".tenure" / "tenure.db")) as client:  # another hand than the session's own
        client.leave("s1")
    assert the(examine(), "1 session that is over left receipts: s1")["level"] == "note"


def test_agents_that_are_used_here_and_not_set_up_are_noted(tenure: Tenure, examine: Callable[..., Findings]) -> None:
    (tenure.folder / ".gemini").mkdir()
    finding = the(examine(), "used here but not set up")
    assert "gemini" in finding["message"]
    assert "`tenure setup" in finding["fix"]


def test_a_set_up_that_was_damaged_is_found_and_the_fix_mends_it(
    tenure: Tenure, examine: Callable[..., Findings]
) -> None:
    assert tenure("setup", "claude").code == 0
    assert told(examine(), "integrations") == [("ok", "claude: complete")]
    (tenure.folder / ".mcp.json").unlink()
    finding = the(examine(), "claude: mcp in .mcp.json: missing")
    command = re.findall(r"`tenure ([^`]+)`", finding["fix"])[0]
    assert tenure(*command.split()).code == 0
    assert told(examine(), "integrations")[0][0] == "ok"


def test_a_gate_that_only_a_person_can_open_is_told(tenure: Tenure, examine: Callable[..., Findings]) -> None:
    assert tenure("setup", "codex").code == 0
    gates = [one for one in examine() if one["check"] == "trust"]
    assert gates
    assert all(gate["message"].startswith(("codex", "all")) and gate["fix"] for gate in gates)


# --- all of it ---


def test_the_doctor_changes_nothing(bare: Tenure, examine: Callable[..., Findings]) -> None:
    shop = busy_shop(bare.folder / ".tenure" / "tenure.db", just_now(7200))  # every lease has run out
    before = shop.mia.store.mark("local")
    examine("--project", "shop", "--verify")
    assert shop.mia.store.mark("local") == before
    shop.close()


def test_no_fix_names_a_command_that_destroys(bare: Tenure, examine: Callable[..., Findings]) -> None:
    git(bare.folder, "init", "-q")
    shop = busy_shop(bare.folder / ".tenure" / "tenure.db", just_now())
    shop.mia.pause("B-002", "x")
    shop.close()
    (bare.folder / ".tenure").chmod(0o755)
    findings = examine("--project", "shop", "--verify", code=7)
    assert len([one for one in findings if one["level"] != "ok"]) > 6
    assert all(one["fix"] for one in findings if one["level"] in ("warning", "error"))
    forbidden = r"\brm\b|delete|drop|remove|--force|`tenure (cancel|reset|abort|recover|db new-epoch|archive)"
    assert [one["fix"] for one in findings if re.search(forbidden, one["fix"] or "")] == []


def test_a_terminal_gets_lines_that_fit_it(bare: Tenure) -> None:
    busy_shop(bare.folder / ".tenure" / "tenure.db", just_now()).close()
    words = bare.command("-C", bare.folder, "doctor", "--project", "shop")
    for columns in (80, 79, 78):
        with Terminal(words, environ=bare.environ, columns=columns, lines=60) as terminal:
            assert terminal.ended() == 0
        for word in ("G-002-tell-everybody", "C-002-send-a-mail", "history", "retries"):
            assert word in terminal.text  # none is cut in two at the edge
        continued = [line for line in terminal.text.split("\n") if line.startswith(" " * 20)]
        assert len(continued) > 6


def test_people_see_the_worst_last_with_its_fix_below(bare: Tenure, alone: None) -> None:
    busy_shop(bare.folder / ".tenure" / "tenure.db", just_now()).close()
    lines = bare("doctor", "--project", "shop").out.splitlines()
    levels = [line.split()[0] for line in lines[:-2] if not line.startswith(" ")]
    assert levels == sorted(levels, key=("ok", "note", "warning", "error").index)
    assert lines[-1] == "4 warnings, 1 note"
    assert lines[-3].strip().startswith("→ ")


def test_what_is_reserved_for_a_task_that_nobody_holds_is_named(
    shop: Shop, tenure: Tenure, examine: Callable[..., Findings]
) -> None:
    key = str((shop.mia.add("Paint", touches=("door.txt",)).task or {})["key"])
    shop.client("ann").claim(key)
    assert not [one for one in examine() if "door.txt" in one["message"]]
    store = shop.mia.store
    with store.begin("local", write=True) as tx:  # as 0.1 left it when a held task was edited
        (held,) = tx.find(Reservation, {"project": "default"})
        tx.save([Change(held, replace(held, generation=7))])
    finding = the(examine(), "door.txt")
    assert (finding["check"], finding["level"]) == ("stuck", "note")
    assert "nobody holds" in finding["message"]


def test_sinks_that_are_not_reached_or_not_trusted_and_webhooks_that_are_off_are_found(tenure: Tenure) -> None:
    (tenure.folder / "tenure.toml").write_text('[sinks.broker]\nurl = "nats://127.0.0.1:1"\n')
    found = [one for one in tenure("doctor", "--json").json if one["check"] == "sinks"]
    assert [one["level"] for one in found] == ["warning", "ok"]
    assert "you have not allowed it yet" in found[0]["message"]
    assert tenure("trust", "-y").code == 0
    found = [one for one in tenure("doctor", "--json").json if one["check"] == "sinks"]
    assert [one["level"] for one in found] == ["warning", "note"]
    assert found[0]["message"].startswith("broker cannot be reached: ")
    with Client(str(tenure.folder / ".tenure" / "tenure.db"), "default") as client:
        client.do(c.SetWebhook(project="default", webhook="ci", url="https://example.org/hook"))
        client.do(c.PauseWebhook(project="default", webhook="ci", reason="too loud"))
    (found,) = [one for one in tenure("doctor", "--json").json if one["check"] == "webhooks"]
    assert (found["level"], found["message"]) == ("warning", "ci is disabled: too loud")


def test_a_broker_that_nobody_verifies_is_found(tenure: Tenure) -> None:
    config = tenure.folder / ".tenure" / "config.toml"
    for host, levels in (("0.0.0.0:1", ["error"]), ("0.0.0.0:1/?allow_insecure=1", ["warning", "warning", "note"])):
        config.write_text(f'[sinks.broker]\nurl = "nats://{host}"\n')
        config.chmod(0o600)
        found = [one for one in tenure("doctor", "--json").json if one["check"] == "sinks"]
        assert [one["level"] for one in found][: len(levels)] == levels
    assert found[0]["message"].startswith("broker: allow_insecure: nobody verifies who the broker is")


def test_deliveries_in_the_clear_are_found(tenure: Tenure) -> None:
    config = tenure.folder / ".tenure" / "config.toml"
    for allowed, level in (("false", "ok"), ("true", "warning")):
        config.write_text(f"[webhooks]\nallow_http = {allowed}\n")
        config.chmod(0o600)
        (found,) = [one for one in tenure("doctor", "--json").json if one["check"] == "sinks"]
        assert found["level"] == level
    assert found["message"].startswith("webhooks.allow_http: others may read")


@pytest.mark.parametrize(("wanted", "code"), [("always", 0), ("everysec", 7)])
def test_settings_with_which_a_server_loses_commits_are_found(
    bare: Tenure, alone: None, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch, wanted: str, code: int
) -> None:
    monkeypatch.setenv("TENURE_URL", valkey.place(bare.folder.name))
    bare("init", "--project", "shop")
    raw = redis.Redis(port=valkey.port)
    raw.config_set("appendfsync", wanted)
    try:
        said = bare("doctor", "--json", "--project", "shop")
    finally:
        raw.config_set("appendfsync", "always")
    assert said.code == code, said.out
    (found,) = [finding for finding in said.json if finding["check"] == "server"]
    assert ("appendfsync is everysec" in found["message"]) == (code == 7)
