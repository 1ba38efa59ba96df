"""The suite of artifacts as a client sees them: any place, behind any way to the work, gives the same answers.

class TestMine(ArtifactClientSuite):
    def open_client(self, tmp_path):
        return Client(url, "shop", agent="ann", artifacts=…, create=True)

    def damage(self, tmp_path, digest, content):
        ...  # behind everybody's back: make `content` what is kept under `digest`
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from tenure.client import AsyncClient, Client
from tenure.core.errors import InvalidInput, NotFound, TenureError, TooLarge

TRICKS = ("../x", "/etc/passwd", "a/../../x", "..\\x", ".git/config", "a//b", "con", "x\n", "", "a/", "%2e%2e/x\u202e")


class ArtifactClientSuite:
    """Every test gets `client`, of an agent in a new project."""

    def open_client(self, tmp_path: Path, agent: str = "ann") -> Client:
        raise NotImplementedError

    def open_async(self, tmp_path: Path) -> AsyncClient:
        raise NotImplementedError

    def damage(self, tmp_path: Path, digest: str, content: bytes) -> None:
        """Put other bytes in the place of what is kept under `digest`."""
        raise NotImplementedError

    @pytest.fixture
    def client(self, tmp_path: Path) -> Iterator[Client]:
        with self.open_client(tmp_path) as client:
            client.init()
            yield client

    @pytest.fixture
    def receipt(self, client: Client) -> str:
        client.add("Work")
        return str(client.claim("A-001").receipt)

    # --- there and back ---

    @pytest.mark.parametrize("content", [b"", b"x", b"piece" * 500_000], ids=["nothing", "little", "much"])
    def test_what_was_put_is_got(self, client: Client, receipt: str, content: bytes) -> None:
        put = client.put_artifact(receipt, "reports/a.md", content)
        assert put.ok
        assert put.artifact is not None
        digest = hashlib.sha256(content).hexdigest()
        assert (put.artifact["size"], put.artifact["digest"]) == (len(content), digest)
        got = client.get_artifact("A-001", "reports/a.md")
        (listed,) = client.artifacts("A-001")
        assert [dict(listed), dict(put.artifact)] == [got.view, got.view]
        assert got.view["type"] == "text/markdown"
        assert got.read() == content

    def test_a_file_and_a_stream_are_put_as_bytes_are(self, client: Client, receipt: str, tmp_path: Path) -> None:
        path = tmp_path / "some file"
        path.write_bytes(b"in a file")

        class Pipe(io.RawIOBase):
            """Can be read once."""

            def __init__(self) -> None:
                self.left = [b"in a ", b"pipe"]

            def readable(self) -> bool:
                return True

            def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
                piece = self.left.pop(0) if self.left else b""
                buffer[: len(piece)] = piece
                return len(piece)

        pipe: BinaryIO = io.BufferedReader(Pipe())
        with path.open("rb") as opened:
            opened.seek(3)
            for name, given in (("a", path), ("b", opened), ("c", pipe)):
                assert client.put_artifact(receipt, name, given).ok
            assert opened.tell() == 3
        assert [client.get_artifact("A-001", name).read() for name in "abc"] == [b"in a file", b"a file", b"in a pipe"]

    def test_parts_of_it_can_be_got(self, client: Client, receipt: str) -> None:
        content = (bytes(range(251)) * 11_953)[:3_000_000]
        client.put_artifact(receipt, "a", content)
        for start, end in ((0, 5), (3, 7), (2_999_990, None), (5, 2_500_000), (0, None), (1, 9_999_999)):
            assert client.get_artifact("A-001", "a", start=start, end=end).read() == content[start:end]
        with pytest.raises(InvalidInput, match="3000000"):
            client.get_artifact("A-001", "a", start=3_000_001).read()

    def test_it_is_saved_in_a_folder_and_over_nothing(self, client: Client, receipt: str, tmp_path: Path) -> None:
        client.put_artifact(receipt, "deep/er/a.txt", b"one")
        folder = tmp_path / "out"
        folder.mkdir()
        path = client.get_artifact("A-001", "deep/er/a.txt").save(folder)
        assert (path, path.read_bytes()) == (folder / "deep/er/a.txt", b"one")
        with pytest.raises(InvalidInput, match="exists already"):
            client.get_artifact("A-001", "deep/er/a.txt").save(folder)
        (folder / "link").symlink_to(tmp_path)
        with pytest.raises(TenureError, match="link"):
            client.get_artifact("A-001", "deep/er/a.txt").save(folder, "link/a.txt")

    def test_the_last_of_a_name_and_that_of_a_generation_can_be_got(self, client: Client, tmp_path: Path) -> None:
        client.add("Work")
        first = client.claim("A-001")
        client.put_artifact(first.receipt or "", "a", b"one")
        client.release(first.receipt or "")
        with self.open_client(tmp_path, "bo") as bo:
            second = bo.claim("A-001")
            assert [entry["name"] for entry in second.artifacts or ()] == ["a"]
            bo.put_artifact(second.receipt or "", "a", b"two")
            assert bo.get_artifact("A-001", "a").read() == b"two"
            assert bo.get_artifact("A-001", "a", generation=1).read() == b"one"
            assert [entry["generation"] for entry in bo.artifacts("A-001")] == [2, 1]
            assert len(bo.artifacts("A-001", generation=1)) == 1

    # --- refusals ---

    @pytest.mark.parametrize("name", TRICKS)
    def test_names_that_lead_elsewhere_are_refused(self, client: Client, receipt: str, name: str) -> None:
        with pytest.raises(InvalidInput, match="artifact name"):
            client.put_artifact(receipt, name, b"x")
        with pytest.raises(TenureError, match="artifact"):
            client.get_artifact("A-001", name)
        assert client.artifacts("A-001") == []

    def test_a_superseded_holder_is_refused(self, client: Client, receipt: str, tmp_path: Path) -> None:
        client.release(receipt)
        with self.open_client(tmp_path, "bo") as bo:
            taken = bo.claim("A-001")
            zombie = client.put_artifact(receipt, "a", b"zombie")
            assert (zombie.outcome, zombie.directive) == ("STALE_GENERATION", "abort")
            assert bo.put_artifact(taken.receipt or "", "a", b"holder").ok
            assert bo.get_artifact("A-001", "a").read() == b"holder"

    def test_a_holder_that_is_overtaken_while_it_sends_is_refused(
        self, client: Client, receipt: str, tmp_path: Path
    ) -> None:
        with self.open_client(tmp_path, "bo") as bo:

            class Slow(io.BytesIO):
                """While it is read a second time, as it is sent, another takes the task."""

                reads = 0

                def read(self, size: int | None = -1, /) -> bytes:
                    Slow.reads += 1
                    if Slow.reads == 3:
                        bo.recover("A-001")
                        assert bo.claim("A-001").ok
                    return super().read(size)

            assert client.put_artifact(receipt, "a", Slow(b"late")).outcome == "STALE_GENERATION"
        assert client.artifacts("A-001") == []

    def test_the_same_again_is_told_so(self, client: Client, receipt: str) -> None:
        first, again = (client.put_artifact(receipt, "a", b"same") for _ in range(2))
        assert (first.again, again.again) == (False, True)

    def test_what_is_larger_than_may_be_is_refused(self, client: Client, receipt: str) -> None:
        client.init(limits={"max_result_size": 2_000_000})
        with pytest.raises(TooLarge, match="2000000"):
            client.put_artifact(receipt, "a", b"x" * 2_000_001)
        assert client.artifacts("A-001") == []
        assert client.put_artifact(receipt, "a", b"x" * 2_000_000).ok

    def test_what_is_not_there_is_told_at_once(self, client: Client, receipt: str) -> None:
        for task, name in (("A-001", "none"), ("A-009", "a")):
            with pytest.raises(NotFound):
                client.get_artifact(task, name)

    @pytest.mark.parametrize("given", ["a text", 7, None])
    def test_what_is_no_bytes_is_refused(self, client: Client, receipt: str, given: BinaryIO) -> None:
        with pytest.raises(InvalidInput, match="bytes, a Path"):
            client.put_artifact(receipt, "a", given)

    def test_nobody_gets_all_of_a_wrong_content(self, client: Client, receipt: str, tmp_path: Path) -> None:
        content = b"right" * 600_000
        client.put_artifact(receipt, "a", content)
        self.damage(tmp_path, hashlib.sha256(content).hexdigest(), b"wrong" + content[5:])
        got: list[bytes] = []
        with pytest.raises(TenureError):
            got.extend(client.get_artifact("A-001", "a"))
        assert sum(map(len, got)) < len(content)

    # --- results ---

    def test_a_large_result_is_put_and_referred_to(self, client: Client, receipt: str) -> None:
        client.add("After", after=["A-001"])
        data = {"rows": ["x" * 1000] * 1500}
        assert client.submit(receipt, data, "large").outcome == "ACCEPTED"
        granted = client.claim("A-002")
        (handed,) = (granted.inputs or {}).values()
        assert handed["data"]["$artifact"] == "result.json"
        (artifact,) = handed["artifacts"]
        assert (artifact["name"], artifact["digest"]) == ("result.json", handed["data"]["digest"])
        import msgspec

        assert msgspec.json.decode(client.get_artifact("A-001", "result.json").read()) == data

    def test_a_result_names_what_it_brings(self, client: Client, receipt: str) -> None:
        client.add("After", after=["A-001"])
        for name in ("a", "b"):
            client.put_artifact(receipt, name, name.encode())
        with pytest.raises(InvalidInput, match="was not put"):
            client.submit(receipt, artifacts=["c"])
        client.submit(receipt, artifacts=["b"])
        (handed,) = (client.claim("A-002").inputs or {}).values()
        assert [entry["name"] for entry in handed["artifacts"]] == ["b"]

    # --- awaited ---

    def test_the_same_can_be_awaited(self, client: Client, receipt: str, tmp_path: Path) -> None:
        content = b"awaited" * 400_000
        (tmp_path / "file").write_bytes(content)

        async def there_and_back() -> None:
            async with self.open_async(tmp_path) as other:
                put = await other.put_artifact(receipt, "a", tmp_path / "file")
                assert put.ok
                got = await other.get_artifact("A-001", "a")
                pieces = [piece async for piece in got]
                assert len(pieces) > 1
                assert b"".join(pieces) == content
                part = await other.get_artifact("A-001", "a", start=3, end=9)
                assert await part.read() == content[3:9]
                with pytest.raises(NotFound):
                    await other.get_artifact("A-001", "none")
                with pytest.raises(InvalidInput):
                    await other.put_artifact(receipt, "../a", b"x")
                large = await other.submit(receipt, "x" * (2 << 20))
                assert large.outcome == "ACCEPTED"

        asyncio.run(there_and_back())
        assert client.get_artifact("A-001", "result.json").read() == b'"' + b"x" * (2 << 20) + b'"'
