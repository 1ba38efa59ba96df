"""`tenure audit …` from a shell."""

from __future__ import annotations

from pathlib import Path

from tenure.server.access_log import AccessLog
from tests.cli.conftest import Tenure


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
    assert bare("audit", "verify-access", str(path), "--head", "x").code == 8
