"""Writes `schema.sql` anew from the migrations: `python -m tenure.stores.sqlite.snapshot`, after editing one."""

from __future__ import annotations

import sys
from pathlib import Path

from tenure.stores.sqlite.schema import SNAPSHOT, current_snapshot

if __name__ == "__main__":
    Path(SNAPSHOT).write_text(current_snapshot(), "utf-8")
    sys.stdout.write(f"wrote {Path(SNAPSHOT).name}\n")
