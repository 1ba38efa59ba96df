"""A few power cuts, by the command that makes a hundred thousand; and a disk that ignores syncs is found out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.chaos.running import prove
from tests.reliability.disk_images import Disk
from tests.reliability.disk_trace import Create, Rename, Sync, Write

IMAGES = 100


def test_what_was_acknowledged_survives_a_power_cut_at_any_sync(tmp_path: Path) -> None:
    ran = prove(tmp_path, "powerloss", "--images", str(IMAGES), "--steps", "45", "--seed", "1")
    assert ran.code == 0, ran.said
    assert {name: ran.numbers[name] for name in ("images", "lost", "half", "double", "broken")} == {
        "images": IMAGES, "lost": 0, "half": 0, "double": 0, "broken": 0,
    }  # fmt: skip
    assert ran.numbers["again"] > 0, "no command was under way at any cut, so this has proved little"


@pytest.mark.nightly
def test_losses_are_found_on_a_disk_that_ignores_syncs(tmp_path: Path) -> None:
    ran = prove(tmp_path, "powerloss", "--images", "60", "--steps", "20", "--seed", "1", "--no-sync")
    assert ran.code == 0, ran.said
    assert ran.numbers["lost"] > 10
    assert ran.numbers["broken"] > 0


def test_an_image_has_what_was_synced_and_nothing_that_was_never_written(tmp_path: Path) -> None:
    base, root, image = tmp_path / "base", Path("/disk"), tmp_path / "image"
    base.mkdir()
    (base / "old").write_bytes(b"a" * 1024)
    disk = Disk(base, root)
    for operation in (Write("/disk/old", 512, b"b" * 512), Create("/disk/new", False), Write("/disk/new", 0, b"c")):
        disk.follow(operation)
    disk.follow(Sync("/disk/new"))
    disk.write(image, "dropped", random.Random(1))
    assert {path.name: path.read_bytes() for path in image.iterdir()} == {"old": b"a" * 1024}
    disk.write(image, "kept", random.Random(1))
    assert {path.name: path.read_bytes() for path in image.iterdir()} == {"old": b"a" * 512 + b"b" * 512, "new": b"c"}
    disk.follow(Sync("/disk"))
    disk.follow(Rename("/disk/new", "/disk/old"))
    disk.write(image, "dropped", random.Random(1))
    assert {path.name: path.read_bytes() for path in image.iterdir()} == {"old": b"a" * 1024, "new": b"c"}
    disk.follow(Sync("/disk"))
    disk.write(image, "dropped", random.Random(1))
    assert {path.name: path.read_bytes() for path in image.iterdir()} == {"old": b"c"}
