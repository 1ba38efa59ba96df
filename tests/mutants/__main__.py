"""`./x mutants [NAME …]`: plant each seeded bug in a copy of the source, run the tests, and tell who noticed."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.seeds import ENGINE, MUTANTS, ON_POSTGRES, Mutant

ROOT = Path(__file__).parents[2]
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def planted(mutant: Mutant | None, folder: Path) -> Path:
    """A copy of the source with the bug in it; without one, the control."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    if mutant is None:
        return source
    path = source / "tenure" / mutant.file
    text = path.read_text()
    found = text.count(mutant.old)
    if found != 1:
        raise SystemExit(f"{mutant.name}: found {found} times in {mutant.file}; mend tests/mutants/seeds.py")
    path.write_text(text.replace(mutant.old, mutant.new))
    return source


def noticed_by(mutant: Mutant | None, tests: str) -> str | None:
    """The first test of that place which fails on the mutant, or None when none does."""
    with tempfile.TemporaryDirectory(prefix="tenure-mutant-") as folder:
        source = planted(mutant, Path(folder))
        # a copy has its own bytecode, or none: a stale one could hide the bug
        env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider", tests]
        run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return None
    match = _FAILED.search(run.stdout)
    return match.group(1) if match else run.stdout.strip().splitlines()[-1] if run.stdout.strip() else run.stderr[-200:]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="only mutants whose name has one of these words")
    parser.add_argument("--postgres", action="store_true", help="the engine's suite must notice on PostgreSQL too")
    given = parser.parse_args(argv)
    mutants = [m for m in MUTANTS if not given.names or any(w in m.name for w in given.names)]
    if given.postgres:
        mutants = [m._replace(noticed_by=(*ENGINE, ON_POSTGRES)) if m.noticed_by == ENGINE else m for m in mutants]
    for tests in sorted({tests for m in mutants for tests in m.noticed_by}):
        failed = noticed_by(None, tests)
        if failed:
            print(f"{tests} fails without a mutant, so it can prove nothing: {failed}")
            return 2
    caught = 0
    for mutant in mutants:
        began = time.monotonic()
        notices = {tests: noticed_by(mutant, tests) for tests in mutant.noticed_by}
        is_caught = all(notices.values())
        caught += is_caught
        print(f"{'caught ' if is_caught else 'MISSED '} {mutant.name}  ({time.monotonic() - began:.0f} s)", flush=True)
        for tests, notice in notices.items():
            print(f"          {notice.split('::', 1)[-1] if notice else 'NOT NOTICED'}  [{tests}]", flush=True)
    print(f"\n{caught} of {len(mutants)} mutants caught")
    return 0 if caught == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
