"""An artifact that is written into a folder stays in it, whatever links lie there."""

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenure.artifacts.placement import NotPlaced, place
from tenure.core.errors import InvalidInput


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("untouched")
    return tmp_path / "folder"


def test_it_is_whole_and_private(folder: Path) -> None:
    path = place(folder, "reports/2026/summary.md", [b"one ", b"two"])
    assert path == folder / "reports/2026/summary.md"
    assert path.read_bytes() == b"one two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["summary.md"]


@pytest.mark.parametrize("name", ["../outside/new", "/etc/new", "a/../../outside/new", ".git/config", "a\\..\\b"])
def test_a_name_that_leads_outside_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(InvalidInput):
        place(folder, name, [b"x"])
    assert list(folder.iterdir()) == []


def test_a_linked_folder_on_the_way_is_not_followed(folder: Path) -> None:
    (folder / "way").symlink_to(folder.parent / "outside", target_is_directory=True)
    with pytest.raises(NotPlaced, match="link"):
        place(folder, "way/new", [b"x"])
    assert [each.name for each in (folder.parent / "outside").iterdir()] == ["file"]


@pytest.mark.parametrize("replace", [False, True])
def test_a_link_in_its_place_is_not_written_through(folder: Path, replace: bool) -> None:
    (folder / "name").symlink_to(folder.parent / "outside" / "file")
    if replace:
        place(folder, "name", [b"new"], replace=True)
        assert not (folder / "name").is_symlink()
    else:
        with pytest.raises(InvalidInput, match="exists already"):
            place(folder, "name", [b"new"])
    assert (folder.parent / "outside" / "file").read_text() == "untouched"


def test_what_is_there_stays_unless_it_shall_be_replaced(folder: Path) -> None:
    place(folder, "name", [b"old"])
    with pytest.raises(InvalidInput, match="exists already"):
        place(folder, "name", [b"new"])
    assert (folder / "name").read_bytes() == b"old"
    place(folder, "name", [b"new"], replace=True)
    assert (folder / "name").read_bytes() == b"new"


def test_of_two_that_write_the_same_name_the_second_is_refused(folder: Path) -> None:
    def slow() -> Iterator[bytes]:
        place(folder, "name", [b"first"])
        yield b"second"

    with pytest.raises(InvalidInput, match="exists already"):
        place(folder, "name", slow())
    assert (folder / "name").read_bytes() == b"first"
    assert [each.name for each in folder.iterdir()] == ["name"]


def test_a_content_that_breaks_off_leaves_nothing(folder: Path) -> None:
    def cut_off() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    with pytest.raises((ConnectionResetError, NotPlaced)):
        place(folder, "name", cut_off())
    assert list(folder.iterdir()) == []


def test_a_folder_is_never_replaced(folder: Path) -> None:
    (folder / "name").mkdir()
    with pytest.raises(NotPlaced, match="folder"):
        place(folder, "name", [b"x"], replace=True)
    with pytest.raises(NotPlaced, match="link or a file"):
        place(folder.parent, "outside/file/deeper", [b"x"])
