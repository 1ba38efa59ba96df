"""Input files of an agent: artifacts of the tasks that its task depends on, and of earlier attempts at it.

They are in a folder of the claim, beside its transcript, and are deleted with it: the store has them. Files that are
too large are left to `tenure artifact get`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tenure.client import Client
from tenure.core import limits
from tenure.core.artifacts import TRANSCRIPT
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.user_state import make_private_folder

MOST = limits.FILES_BYTES
MOST_FILES = limits.FILES
EARLIER = "earlier"  # the folder of artifacts of the same task


class InputFiles:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._room, self._files = MOST, 0

    def fetch(self, client: Client, granted: Outcome, say: Callable[[str], None]) -> Outcome:
        """The claim's answer with a `path` beside each artifact that was fetched."""
        if not any(_listed(granted)):
            return granted
        for task, folder, entry in _listed(granted):
            if entry["size"] > self._room or self._files >= MOST_FILES:
                continue
            try:
                make_private_folder(os.path.join(self.folder, folder))
                got = client.get_artifact(task, entry["name"], generation=entry["generation"])
                entry["path"] = str(got.save(os.path.join(self.folder, folder)))
            except (TenureError, OSError) as error:
                say(f"{entry['ref']} cannot be fetched: {getattr(error, 'message', error)}")
                continue
            self._room -= entry["size"]
            self._files += 1
        return granted

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _listed(granted: Outcome) -> Iterator[tuple[str, str, Any]]:
    """Task, folder and entry of each; smallest first, so that a large file does not use up the room."""
    found: list[tuple[str, str, Any]] = []
    for key, given in (granted.inputs or {}).items():
        listed = given.get("artifacts", ()) if isinstance(given, Mapping) else ()
        found += [(key, _plain(key), entry) for entry in listed]
    if granted.task is not None:
        found += [(granted.task["key"], EARLIER, entry) for entry in granted.artifacts or ()]
    return iter(sorted(found, key=lambda one: int(one[2]["size"])))


def _plain(key: str) -> str:
    return key.replace("::", "-")


def keep_transcript(client: Client, receipt: str, path: str) -> Outcome:
    """Store the transcript as an artifact of the generation."""
    from pathlib import Path

    return client.put_artifact(receipt, TRANSCRIPT, Path(path), type="application/jsonl")
