"""What a signature covers: the vectors of the documentation, and that nothing can be exchanged."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.core.errors import InvalidInput
from tenure.core.signed_results import fingerprint, message
from tenure.sealing.signing import SigningKey, create_key, is_signed, key_in

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "prove-what-happened.md"
GIVEN: dict[str, Any] = {
    "tenant": "local", "project": "shop", "task": "B-003", "generation": 7, "epoch": "00112233",
    "data": {"files": ["a.py"], "ok": True}, "summary": "done", "artifacts": {"a.txt": "d" * 64}, "request_id": "r1",
}  # fmt: skip


def vectors() -> list[dict[str, Any]]:
    (block,) = re.findall(r"```json vectors\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found: list[dict[str, Any]] = msgspec.json.decode(block)
    return found


@pytest.mark.parametrize("number", range(3))
def test_the_vectors_of_the_documentation_hold(number: int) -> None:
    vector = vectors()[number]
    key = SigningKey(bytes.fromhex(vector["private_key"]))
    covered = message(**vector["submission"])
    assert (key.public, fingerprint(key.public)) == (vector["public_key"], vector["fingerprint"])
    assert covered.decode() == vector["message"]
    assert key.sign(covered) == vector["signature"]
    assert is_signed(key.public, vector["signature"], covered)


def test_every_part_is_covered() -> None:
    others: dict[str, list[Any]] = {
        "tenant": ["x"], "project": ["x"], "task": ["B-004"], "generation": [8], "epoch": ["00112234"],
        "data": [{}, {"ok": True, "files": ["b.py"]}, None], "summary": ["", "Done"],
        "artifacts": [{}, {"a.txt": "e" * 64}, {"other": "d" * 64}], "request_id": [None, "r2"],
    }  # fmt: skip
    texts = [message(**GIVEN), *(message(**GIVEN | {n: value}) for n, values in others.items() for value in values)]
    assert all(a != b for a, b in itertools.combinations(texts, 2))


def test_the_data_is_covered_as_a_parser_reads_it() -> None:
    assert message(**GIVEN | {"data": {2: "a", 10: "b"}}) == message(**GIVEN | {"data": {"10": "b", "2": "a"}})
    assert message(**GIVEN | {"data": {"b": (1,), "a": 1}}) == message(**GIVEN | {"data": {"a": 1, "b": [1]}})
    assert message(**GIVEN | {"data": 1}) != message(**GIVEN | {"data": 1.0})


def test_a_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    made = key_in(str(path))
    assert (key_in(str(path)).public, path.stat().st_mode & 0o777) == (made.public, 0o600)
    assert path.read_text().strip() not in repr(made)
    path.chmod(0o640)
    with pytest.raises(InvalidInput, match="others may read it"):
        key_in(str(path))
    path.chmod(0o600)
    path.write_text("x")
    with pytest.raises(InvalidInput, match="not an Ed25519 key"):
        key_in(str(path))
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(InvalidInput):
        key_in(str(link))
    with pytest.raises(InvalidInput, match="there is no such file"):
        key_in(str(tmp_path / "missing" / "key"), create=False)
    assert key_in(str(tmp_path / "missing" / "key")).public
    assert (create_key(str(path)), create_key(str(tmp_path / "new"))) == (False, True)  # another was first
    assert {file.name for file in tmp_path.iterdir()} == {"key", "link", "missing", "new"}


@pytest.mark.parametrize("bad", ["", "00" * 64, "zz"])
def test_what_is_not_a_signature_is_not_one(bad: str) -> None:
    assert not is_signed(SigningKey(b"\x01" * 32).public, bad, b"x")
    assert not is_signed("00" * 5, "00" * 64, b"x")
