"""Programs and libraries of the npm registry that tests run, in `.x/npm`, with the node of a wheel; versions are fixed.

Install scripts are not run. There is no lock file, which would record the registry's address.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.agents.install import NPM, OPTIONS, ROOT, NotInstalled, node
from tests.servers.fixtures import missing

PLACE = ROOT / ".x" / "npm"
PACKAGES = {
    "@redocly/cli": "2.77.0",
    "@stoplight/spectral-cli": "6.16.3",
    "openapi-fetch": "0.17.0",
    "openapi-typescript": "7.13.0",
    "typescript": "5.9.3",
}
CHOSEN = " ".join(f"{name}@{version}" for name, version in PACKAGES.items())


def installed() -> Path:
    """The folder with `node_modules`; fetched if need be. Skips the test, or fails it as root, where that cannot be."""
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    with (PLACE.parent / "npm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = PLACE / "versions"
        if not (stamp.is_file() and stamp.read_text() == CHOSEN):
            try:
                _fetch()
            except NotInstalled as reason:
                missing(str(reason))
    return PLACE


def _fetch() -> None:
    runtime, npm = node()
    with tempfile.TemporaryDirectory(dir=PLACE.parent, prefix="npm-") as scratch:
        whole = Path(scratch, "whole")
        whole.mkdir()
        said = subprocess.run(
            [runtime, npm, "install", "--prefix", whole, *CHOSEN.split(), *OPTIONS],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | NPM,
        )
        if said.returncode:
            raise NotInstalled(f"npm could not fetch {CHOSEN}: {'; '.join(said.stderr.splitlines()[:4])}")
        (whole / "versions").write_text(CHOSEN)
        shutil.rmtree(PLACE, ignore_errors=True)
        whole.rename(PLACE)


def run(script: Path | str, *arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with node: a program of the packages by its path below `node_modules`, or a file."""
    runtime, _ = node()
    place = installed()
    program = script if isinstance(script, Path) else place / "node_modules" / script
    environ = {"PATH": f"{runtime.parent}:{os.environ['PATH']}", "HOME": str(cwd), "REDOCLY_TELEMETRY": "off"}
    return subprocess.run(
        [runtime, program, *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environ,
        timeout=300,
    )
