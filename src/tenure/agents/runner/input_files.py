"""Files that an agent is given: artifacts of the tasks before its own, and of those who worked on its own before.

They lie in a folder of the claim, beside its transcript, and go with it: the store has them. What is too large to be
fetched unasked is left to `tenure artifact get`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tenure.client import Client
from tenure.core.artifacts import TRANSCRIPT
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.user_state import make_private_folder

MOST = 64 << 20  # bytes of all of them
MOST_FILES = 200
EARLIER = "earlier"  # the folder of what was put for this very task


class InputFiles:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._room, self._files = MOST, 0

    def fetch(self, client: Client, granted: Outcome, say: Callable[[str], None]) -> Outcome:
        """The claim's answer with a `path` beside each artifact that now lies there."""
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
                say(f"{entry['ref']} cannot be had: {getattr(error, 'message', error)}")
                continue
            self._room -= entry["size"]
            self._files += 1
        return granted

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _listed(granted: Outcome) -> Iterator[tuple[str, str, Any]]:
    """Task, folder and entry of each; the smallest first, so that one that is large keeps no others out."""
    found: list[tuple[str, str, Any]] = []
    for key, handed in (granted.inputs or {}).items():
        listed = handed.get("artifacts", ()) if isinstance(handed, Mapping) else ()
        found += [(key, _plain(key), entry) for entry in listed]
    if granted.task is not None:
        found += [(granted.task["key"], EARLIER, entry) for entry in granted.artifacts or ()]
    return iter(sorted(found, key=lambda one: int(one[2]["size"])))


def _plain(key: str) -> str:
    return key.replace("::", "-")


def keep_transcript(client: Client, receipt: str, path: str) -> Outcome:
    """Keep what the agent said as an artifact of the generation."""
    from pathlib import Path

    return client.put_artifact(receipt, TRANSCRIPT, Path(path), type="application/jsonl")
