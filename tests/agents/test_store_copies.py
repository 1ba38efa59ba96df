"""Copies of an embedded store in the user's state folder: what they have, when they are made, and when they are not."""

from __future__ import annotations

import os
import resource
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import apsw
import pytest

from tenure.agents.leader_process import LeaderProcess, Place
from tenure.agents.store_copies import StoreCopies
from tenure.client.restore import restore
from tenure.core import commands as c
from tenure.core import limits
from tenure.engine.duties.election import LeaderEngine
from tenure.server.coordinator import coordinator_of
from tenure.sinks.settings import Messaging
from tenure.store_folder import all_copies, copies_at, lost_at
from tenure.stores.sqlite import Sqlite
from tenure.testing import FakeClock
from tenure.testing.factories import SECRETS, Dice, Scene
from tests.runner.conftest import until


class Setting:
    """A store, its copies and what was said about them; the clock stands unless it is moved."""

    def __init__(self, path: Path, state: Path, *, seconds: float = limits.COPY_EVERY, seed: int = 0) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.clock = FakeClock()
        self.path, self.environ = path, {"TENURE_STATE": str(state), "TMPDIR": str(state / "tmp")}
        self.store = Sqlite(str(path), clock=self.clock)
        self.scene = Scene(self.store, self.clock, seed=seed, context=SECRETS)
        self.said: list[str] = []
        self.now = 1_800_000_000.0
        self.part = StoreCopies(
            self.scene.engine, lambda: cast("LeaderEngine", self.scene.engine), self.environ, seconds,
            now=lambda: self.now, project="p", say=self.said.append,
        )  # fmt: skip

    def step(self, later: float = 0.0) -> list[Path]:
        """The copies after a look."""
        self.now += later
        self.part.step()
        return self.copies()

    def copies(self) -> list[Path]:
        return [Path(copy.path) for copy in sorted(copies_at(str(self.path), self.environ), key=lambda one: one.made)]


def moved_into_the_file(path: Path) -> None:
    """Nothing is left in the log beside it."""
    link = apsw.Connection(str(path))
    link.execute("SELECT count(*) FROM sqlite_schema").fetchall()  # before it has read, it knows of no log
    link.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    link.close()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def setting(tmp_path: Path, state: Path) -> Iterator[Setting]:
    made = Setting(tmp_path / "repo" / ".tenure" / "tenure.db", state)
    yield made
    made.store.close()


def test_a_copy_is_the_store_readable_by_its_owner_alone_and_begins_an_epoch(setting: Setting, tmp_path: Path) -> None:
    setting.scene.add("one")
    receipt = setting.scene.take("A-001")
    (copy,) = setting.step()
    for place in (copy, copy.parent, copy.parent.parent):
        assert stat.S_IMODE(place.stat().st_mode) & 0o077 == 0, place
    assert not copy.with_name(copy.name + "-wal").exists()
    shutil.rmtree(setting.path.parent)
    done = restore(str(copy), str(setting.path), clock=setting.clock, random=Dice(1))
    assert done.ended == ["A-001-one"]
    again = Setting(setting.path, tmp_path / "other", seed=1)
    assert again.scene.do(c.Renew, receipt=receipt).outcome == "STALE_EPOCH"
    assert again.scene.engine.verify() == []
    again.store.close()


def test_a_copy_has_no_secret_that_it_could_open(setting: Setting) -> None:
    setting.scene.add("with a secret", spec={"context": {"A": {"$secret": "hush-hush-hush"}}})
    (copy,) = setting.step()
    assert b"hush-hush-hush" not in copy.read_bytes()
    assert not [file for file in copy.parent.rglob("*") if "master" in file.name]


def test_a_store_is_copied_at_the_start_and_end_and_now_and_then_while_it_is_written(
    setting: Setting, state: Path
) -> None:
    setting.scene.add("one")
    assert len(setting.step()) == 1
    assert len(setting.step(limits.COPY_EVERY)) == 1, "nothing was written"
    setting.scene.add("two")
    assert len(setting.step()) == 2
    setting.scene.add("three")
    assert len(setting.step(limits.COPY_EVERY - 1)) == 2
    setting.part.close()
    assert len(setting.copies()) == 3, "a process that ends leaves a copy"
    setting.part.close()
    assert setting.copies()[-1].name.endswith(f"-{setting.store.mark('local')}.db")
    again = Setting(setting.path, state, seed=9)
    again.scene.add("four")
    again.now = setting.now + limits.COPY_SOONEST - 1
    assert again.step() == setting.copies(), "processes that begin one after another make no copy each"
    assert not setting.said
    again.store.close()


def test_few_copies_are_kept(setting: Setting) -> None:
    for number in range(limits.COPIES_OF_STORE + 2):
        setting.scene.add(str(number))
        names = [copy.name for copy in setting.step(limits.COPY_EVERY)]
    assert len(names) == limits.COPIES_OF_STORE
    assert names[-1].endswith(f"-{setting.store.mark('local')}.db")


def test_a_new_store_at_the_path_of_a_former_one_keeps_its_last_copy(setting: Setting, state: Path) -> None:
    setting.scene.add("former")
    (former,) = setting.step()
    setting.store.close()
    shutil.rmtree(setting.path.parent)
    new = Setting(setting.path, state, seed=1)
    for number in range(limits.COPIES_OF_STORE + 2):
        new.scene.add(str(number))
        copies = new.step(limits.COPY_EVERY)
    assert former in copies
    assert len(copies) == limits.COPIES_OF_STORE + 1
    new.store.close()


def test_copies_of_all_stores_have_a_bound(tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for number in range(3):
        one = Setting(tmp_path / str(number) / "tenure.db", state, seed=number)
        one.now += number
        (copy,) = one.step()
        made.append(copy)
        monkeypatch.setattr(limits, "COPIES_BYTES", 2 * copy.stat().st_size)
        one.store.close()
    assert {copy.path for copy in all_copies(one.environ)} == {str(copy) for copy in made[1:]}


# --- each store for itself -----------------------------------------------------------------------------------


def test_two_clones_have_their_own_copies(tmp_path: Path, state: Path) -> None:
    one, two = (Setting(tmp_path / name / ".tenure" / "tenure.db", state, seed=ord(name[0])) for name in ("a", "b"))
    one.scene.add("of one")
    (first,) = one.step()
    assert two.copies() == []
    assert lost_at(str(two.path), two.environ) is None
    (second,) = two.step()
    assert first.parent != second.parent
    assert one.copies() == [first]
    for each in (one, two):
        each.store.close()


def test_a_folder_that_is_moved_takes_its_copies_along(setting: Setting, tmp_path: Path, state: Path) -> None:
    setting.scene.add("one")
    (copy,) = setting.step()
    setting.store.close()
    setting.path.parent.parent.rename(tmp_path / "renamed")
    assert lost_at(str(setting.path), setting.environ) is not None, "nobody has opened it at its new path yet"
    moved = Setting(tmp_path / "renamed" / ".tenure" / "tenure.db", state)
    assert [found.name for found in moved.step()] == [copy.name]
    assert lost_at(str(setting.path), setting.environ) is None
    moved.store.close()


def test_a_folder_that_is_copied_leaves_the_copies_where_they_are(
    setting: Setting, tmp_path: Path, state: Path
) -> None:
    setting.scene.add("one")
    (copy,) = setting.step()
    setting.store.close()
    shutil.copytree(setting.path.parent.parent, tmp_path / "second")
    second = Setting(tmp_path / "second" / ".tenure" / "tenure.db", state, seed=5)
    second.scene.add("elsewhere")  # which begins an epoch
    (other,) = second.step()
    assert (other.parent != copy.parent, setting.copies()) == (True, [copy])
    assert other.name.partition("-")[0] != copy.name.partition("-")[0]
    second.store.close()


def test_a_store_with_a_second_name_keeps_its_copies(setting: Setting, tmp_path: Path, state: Path) -> None:
    """A hard link is the same file at two paths: neither has moved."""
    setting.scene.add("one")
    (copy,) = setting.step()
    setting.store.close()
    moved_into_the_file(setting.path)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "tenure.db").hardlink_to(setting.path)
    linked = Setting(tmp_path / "linked" / "tenure.db", state)
    linked.step()
    assert setting.copies() == [copy]
    linked.store.close()


def test_a_copy_that_is_used_as_a_store_has_copies_of_its_own(setting: Setting, state: Path) -> None:
    setting.scene.add("one")
    (copy,) = setting.step()
    used = Setting(copy, state, seed=3)
    used.scene.add("in the copy")
    (second,) = used.step()
    assert second.parent != copy.parent
    assert setting.copies() == [copy]
    used.store.close()


# --- where no copy can be made -------------------------------------------------------------------------------


def test_a_store_that_is_too_large_is_said_once(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "COPY_LARGEST", 1)
    for number in range(3):
        setting.scene.add(str(number))
        assert setting.step(limits.COPY_EVERY) == []
    (said,) = setting.said
    assert "up to 0 are copied" in said
    assert "tenure db backup" in said


@contextmanager
def file_size(most: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_one_line_and_costs_no_earlier_copy(setting: Setting) -> None:
    setting.scene.add("one")
    (copy,) = setting.step()
    for _ in range(3):
        setting.scene.add("more")
        with file_size(100_000):
            assert setting.step(limits.COPY_EVERY) == [copy]
    (said,) = setting.said
    assert said.startswith("the store was not copied into your state folder: ")
    assert said.endswith("the earlier copies stay")
    assert os.listdir(copy.parent) == [copy.name]  # noqa: PTH208 - hidden files too
    assert len(setting.step(limits.COPY_EVERY)) == 2
    setting.scene.add("after a copy succeeded")
    with file_size(100_000):
        setting.step(limits.COPY_EVERY)
    assert len(setting.said) == 2


def test_a_folder_that_cannot_be_made_is_one_line(setting: Setting, state: Path) -> None:
    state.write_text("a file stands there")
    for _ in range(3):
        setting.scene.add("more")
        setting.step(limits.COPY_EVERY)
    assert len(setting.said) == 1, setting.said


def test_a_damaged_store_drives_out_no_copy(setting: Setting, state: Path) -> None:
    for number in range(300):
        setting.scene.add(f"{number} {'long ' * 50}")
    (copy,) = setting.step()
    setting.store.close()
    moved_into_the_file(setting.path)
    link = apsw.Connection(str(setting.path))
    pages = [page for (page,) in link.execute("SELECT pageno FROM dbstat WHERE name = 'brief' AND pagetype = 'leaf'")]
    link.close()
    with setting.path.open("r+b") as file:
        for page in pages[:3]:
            file.seek((page - 1) * 4096)
            file.write(b"\xff" * 64)
    damaged = Setting(setting.path, state)
    damaged.scene.engine.random = setting.scene.engine.random  # whose ids go on
    for _ in range(limits.COPIES_OF_STORE + 1):
        damaged.scene.add("more")
        assert damaged.step(limits.COPY_EVERY) == [copy]
    (said,) = damaged.said
    assert "the store is damaged" in said
    damaged.store.close()


# --- who makes them ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [limits.COPY_EVERY, 0.0])
def test_a_process_that_leads_makes_them_unless_they_are_off(tmp_path: Path, state: Path, seconds: float) -> None:
    setting = Setting(tmp_path / "tenure.db", state)
    setting.scene.add("one")
    place = Place(str(tmp_path), "p", setting.environ)
    leader = LeaderProcess(coordinator_of(setting.scene.engine), Messaging({}), place, copies=seconds)
    leader.start()
    try:
        until(lambda: leader.coordinator.term is not None, "it leads")
    finally:
        leader.stop()
    assert len(setting.copies()) == (1 if seconds else 0)
    setting.store.close()


def test_who_does_not_lead_makes_none(setting: Setting) -> None:
    setting.part.leading = lambda: None
    assert setting.step() == []
    setting.part.close()
    assert setting.copies() == []
