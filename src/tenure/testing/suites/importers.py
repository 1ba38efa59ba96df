"""The suite of the importer's contract.

class TestMine(ImporterSuite):
    importer = IMPORTER

    def write(self, folder):
        (folder / "work.json").write_text(...)  # an open item, and one that depends on it
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from tenure.client import Client
from tenure.core.errors import InvalidInput
from tenure.plans.apply import apply
from tenure.plans.importers.item_plan import Imported, plan_of
from tenure.plans.importers.port import OPEN, Importer, Report


class ImporterSuite:
    importer: ClassVar[Importer]

    def write(self, folder: Path) -> None:
        """Write files of the tool with at least two open items, of which one depends on the other."""
        raise NotImplementedError

    @pytest.fixture
    def source(self, tmp_path: Path) -> Path:
        folder = tmp_path / "source"
        folder.mkdir()
        self.write(folder)
        return folder

    def _read(self, path: Path, *, skip_bad: bool = False) -> Imported:
        report = Report(skip_bad=skip_bad)
        return plan_of("mine", self.importer.read(path, report, None), report)

    def test_a_folder_without_files_of_the_tool_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="here"):
            self._read(tmp_path)

    def test_items_have_unique_ids_and_their_place_in_a_file(self, source: Path) -> None:
        items = self.importer.read(source, Report(skip_bad=False), None).items
        assert len({item.id for item in items}) == len(items) >= 2
        assert all(Path(item.path).is_file() and item.place.line >= 1 for item in items)

    def test_open_items_become_tasks_with_their_dependencies(self, source: Path) -> None:
        items = self.importer.read(source, Report(skip_bad=False), None).items
        imported = self._read(source)
        assert imported.findings == ()
        assert imported.plan is not None
        assert {task.name for task in imported.plan.tasks} == {item.id for item in items if item.status == OPEN}
        assert any(task.depends_on for task in imported.plan.tasks)

    def test_a_second_import_creates_nothing(self, source: Path) -> None:
        with Client("memory://", "suite") as client:
            client.init()
            for outcome in ("CREATED", "UNCHANGED"):
                imported = self._read(source)
                assert imported.plan is not None
                assert apply(client, imported.plan).outcome == outcome

    def test_damaged_files_are_reported_and_never_fail(self, source: Path) -> None:
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            whole = file.read_bytes()
            for damaged in (b"", b"\xff\xfe", b"{", b"[1", whole[: len(whole) // 2], whole + b"\x00"):
                file.write_bytes(damaged)
                for skip_bad in (False, True):
                    try:
                        found = self._read(source, skip_bad=skip_bad).findings
                    except InvalidInput:
                        continue
                    assert all(finding.path and finding.line >= 1 for finding in found)
            file.write_bytes(whole)
