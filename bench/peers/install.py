"""Makes the venv that the peers run in, `.x/peers`, from `requirements.txt`; nothing to do costs a few milliseconds."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UV = ROOT / ".x" / "bin" / "uv"
VENV = ROOT / ".x" / "peers"
PYTHON = VENV / "bin" / "python"
WANTED = Path(__file__).with_name("requirements.txt")
STAMP = VENV / "stamp"
BASE_PYTHON = getattr(sys, "_base_executable", sys.executable)


class NotInstalled(Exception):
    """The peers are unavailable; the text has the reason."""


def is_installed() -> bool:
    return STAMP.exists() and STAMP.read_text() == _inputs() and PYTHON.exists()


def install() -> Path:
    """The Python of the peers, installed first where it is not or where the versions changed."""
    if is_installed():
        return PYTHON
    if not UV.exists():
        raise NotInstalled(f"{UV.relative_to(ROOT)} is not there; any `./x test` brings it")
    print("bench: installing the peers into .x/peers", file=sys.stderr, flush=True)
    STAMP.unlink(missing_ok=True)
    _call("venv", "--quiet", "--clear", "--python", BASE_PYTHON, str(VENV))
    # --no-deps: the file names everything, and a version that it does not name must not slip in.
    _call(
        "pip", "install", "--quiet", "--python", str(PYTHON), "--compile-bytecode", "--no-deps",
        "--requirements", str(WANTED),
    )  # fmt: skip
    _call("pip", "check", "--quiet", "--python", str(PYTHON))  # whether the file does name everything
    STAMP.write_text(_inputs())
    return PYTHON


def versions() -> dict[str, str]:
    """Name → version of every package in `requirements.txt`."""
    lines = (line.partition("==") for line in WANTED.read_text().splitlines() if "==" in line)
    return {name.strip(): version.partition(";")[0].strip() for name, _, version in lines}


def _inputs() -> str:
    text = f"{sys.version_info[:2]} {ROOT}\n".encode() + WANTED.read_bytes()
    return hashlib.sha256(text).hexdigest()


def _call(*arguments: str) -> None:
    env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")}
    env |= {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
    done = subprocess.run([UV, *arguments], env=env, check=False, capture_output=True, text=True)
    if done.returncode:
        raise NotInstalled(f"uv {arguments[0]} failed: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    print(install())
