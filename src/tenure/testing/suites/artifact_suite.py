"""The suite of the artifacts' contract.

class TestMine(ArtifactSuite):
    def open_artifacts(self, tmp_path):
        return Mine(tmp_path / "artifacts")

    def damage(self, artifacts, digest, content):
        ...  # behind the port's back: make `content` what is kept under `digest`
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.artifacts.port import PIECE, ArtifactCorrupt, Artifacts, Kept, put
from tenure.core.errors import Bug, InvalidInput, NotFound, TooLarge

LARGEST = 64 << 20
ABSENT = hashlib.sha256(b"never put").hexdigest()
TRICKS = (
    "", ".", "..", "../../etc/passwd", "/etc/passwd", "a" * 63, "a" * 65, "A" * 64, "g" * 64, "a" * 64 + "\n",
    "a" * 64 + "\0", "a" * 32 + "/" + "a" * 31, "..\\" + "a" * 61, "a" * 61 + "/..",  "٣" * 64,
)  # fmt: skip


class ArtifactSuite:
    """Every test gets `artifacts`, new and empty."""

    def open_artifacts(self, tmp_path: Path) -> Artifacts:
        """The artifacts of this folder: new ones at first, later the same again."""
        raise NotImplementedError

    def damage(self, artifacts: Artifacts, digest: str, content: bytes) -> None:
        """Put other bytes in the place of what is kept under `digest`."""
        raise NotImplementedError

    @pytest.fixture
    def artifacts(self, tmp_path: Path) -> Iterator[Artifacts]:
        artifacts = self.open_artifacts(tmp_path)
        yield artifacts
        artifacts.close()

    # --- putting ---

    def test_what_was_put_is_read_back_under_its_digest(self, artifacts: Artifacts) -> None:
        kept = put(artifacts, [b"one ", b"", b"two"], largest=LARGEST)
        assert kept == Kept(hashlib.sha256(b"one two").hexdigest(), 7, True)
        assert b"".join(artifacts.read(kept.digest)) == b"one two"
        assert artifacts.size(kept.digest) == 7

    def test_no_bytes_are_a_content_too(self, artifacts: Artifacts) -> None:
        kept = put(artifacts, [], largest=0)
        assert kept == Kept(hashlib.sha256().hexdigest(), 0, True)
        assert list(artifacts.read(kept.digest)) == []
        assert artifacts.size(kept.digest) == 0

    def test_a_large_content_comes_in_pieces(self, artifacts: Artifacts) -> None:
        parts = [bytes([n]) * (1 << 20) for n in range(20)] + [b"the end"]
        kept = put(artifacts, parts, largest=LARGEST)
        read = list(artifacts.read(kept.digest))
        assert len(read) > 1
        assert max(map(len, read)) <= 4 * PIECE
        assert b"".join(read) == b"".join(parts)

    def test_the_same_content_is_kept_once(self, artifacts: Artifacts) -> None:
        first, again = (put(artifacts, [b"same"], largest=LARGEST) for _ in range(2))
        assert (first.is_new, again.is_new) == (True, False)
        assert [listed.digest for listed in artifacts.listed()] == [first.digest]

    def test_equal_puts_at_once_all_succeed_and_one_is_the_first(self, artifacts: Artifacts) -> None:
        content = b"raced" * 1000
        start, outcomes = threading.Barrier(8), list[Kept]()

        def race() -> None:
            start.wait()
            outcomes.append(put(artifacts, [content], largest=LARGEST))

        threads = [threading.Thread(target=race) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {(kept.digest, kept.size) for kept in outcomes} == {(hashlib.sha256(content).hexdigest(), 5000)}
        assert len(outcomes) == 8
        assert [kept.is_new for kept in outcomes].count(True) == 1
        assert b"".join(artifacts.read(outcomes[0].digest)) == content

    # --- what is not put ---

    def test_a_put_that_is_cut_off_leaves_nothing(self, artifacts: Artifacts) -> None:
        def cut_off() -> Iterator[bytes]:
            yield b"x" * (6 << 20)
            raise ConnectionResetError

        with pytest.raises(ConnectionResetError):
            put(artifacts, cut_off(), largest=LARGEST)
        assert list(artifacts.listed()) == []
        assert artifacts.sweep() == 0

    def test_nothing_is_seen_before_it_is_kept(self, artifacts: Artifacts) -> None:
        digest = hashlib.sha256(b"whole").hexdigest()
        with artifacts.begin(largest=LARGEST) as writing:
            writing.write(b"whole")
            assert artifacts.size(digest) is None
            assert list(artifacts.listed()) == []
            assert artifacts.sweep() == 0  # a living writer's is left alone
            assert writing.keep().digest == digest
        assert b"".join(artifacts.read(digest)) == b"whole"

    def test_the_bound_holds_while_it_streams(self, artifacts: Artifacts) -> None:
        asked = 0

        def endless() -> Iterator[bytes]:
            nonlocal asked
            while True:
                asked += 1
                yield b"x" * 1000

        with pytest.raises(TooLarge):
            put(artifacts, endless(), largest=10_000)
        assert asked == 11
        assert put(artifacts, [b"x" * 10_000], largest=10_000).size == 10_000
        assert len(list(artifacts.listed())) == 1

    def test_what_passed_its_bound_cannot_be_kept(self, artifacts: Artifacts) -> None:
        with artifacts.begin(largest=3) as writing:
            writing.write(b"abc")
            with pytest.raises(TooLarge):
                writing.write(b"d")
            with pytest.raises(Bug):
                writing.keep()
        assert list(artifacts.listed()) == []

    def test_another_digest_than_expected_is_refused(self, artifacts: Artifacts) -> None:
        with pytest.raises(InvalidInput, match="not " + ABSENT):
            put(artifacts, [b"changed on the way"], largest=LARGEST, expected=ABSENT)
        assert list(artifacts.listed()) == []

    # --- reading ---

    @pytest.mark.parametrize("size", [11, 3 * PIECE + 11])
    def test_parts_of_it_can_be_read(self, artifacts: Artifacts, size: int) -> None:
        content = (bytes(range(251)) * (size // 251 + 1))[:size]
        digest = put(artifacts, [content], largest=LARGEST).digest
        for start, end in ((0, 5), (3, 7), (size - 4, None), (5, size + 100), (0, None), (size, None), (4, 4)):
            assert b"".join(artifacts.read(digest, start=start, end=end)) == content[start:end]
        for start, end in ((size + 1, None), (-1, None), (5, 4)):
            with pytest.raises(InvalidInput, match="no bytes"):
                artifacts.read(digest, start=start, end=end)

    def test_what_is_not_there_is_told_at_once(self, artifacts: Artifacts) -> None:
        with pytest.raises(NotFound):
            artifacts.read(ABSENT)
        assert artifacts.size(ABSENT) is None

    def test_nobody_gets_all_of_a_wrong_content(self, artifacts: Artifacts) -> None:
        content = b"r" * (2 * PIECE)
        digest = put(artifacts, [content], largest=LARGEST).digest
        for wrong in (b"w" + content[1:], content[:-1], content + b"!"):
            self.damage(artifacts, digest, wrong)
            got: list[bytes] = []
            with pytest.raises(ArtifactCorrupt):
                got.extend(artifacts.read(digest))
            assert sum(map(len, got)) < len(wrong)

    def test_putting_it_again_mends_a_content_of_another_length(self, artifacts: Artifacts) -> None:
        digest = put(artifacts, [b"good"], largest=LARGEST).digest
        self.damage(artifacts, digest, b"bad length")
        put(artifacts, [b"good"], largest=LARGEST)
        assert b"".join(artifacts.read(digest)) == b"good"

    @pytest.mark.parametrize("trick", TRICKS)
    def test_what_is_no_digest_never_becomes_a_path(self, artifacts: Artifacts, trick: str) -> None:
        for ask in (artifacts.read, artifacts.size, artifacts.delete):
            with pytest.raises(InvalidInput, match="is not a digest"):
                ask(trick)
        with pytest.raises(InvalidInput, match="is not a digest"):
            put(artifacts, [b"x"], largest=1, expected=trick)

    # --- retention ---

    def test_all_that_is_there_is_listed_with_its_size_and_age(self, artifacts: Artifacts) -> None:
        kept = {put(artifacts, [b"x" * n], largest=LARGEST).digest: n for n in range(1, 8)}
        listed = list(artifacts.listed())
        assert {each.digest: each.size for each in listed} == kept
        assert len(listed) == len(kept)
        assert all(0 <= each.age < 600 for each in listed)

    def test_what_is_deleted_is_gone_and_may_be_put_again(self, artifacts: Artifacts) -> None:
        kept = put(artifacts, [b"gone"], largest=LARGEST)
        stays = put(artifacts, [b"stays"], largest=LARGEST)
        for _ in range(2):  # the second time it is not there
            artifacts.delete(kept.digest)
        assert artifacts.size(kept.digest) is None
        with pytest.raises(NotFound):
            artifacts.read(kept.digest)
        assert [each.digest for each in artifacts.listed()] == [stays.digest]
        assert put(artifacts, [b"gone"], largest=LARGEST) == kept

    def test_what_was_kept_is_there_for_the_next_that_opens(self, artifacts: Artifacts, tmp_path: Path) -> None:
        digest = put(artifacts, [b"stays"], largest=LARGEST).digest
        again = self.open_artifacts(tmp_path)
        assert b"".join(again.read(digest)) == b"stays"
        again.close()
