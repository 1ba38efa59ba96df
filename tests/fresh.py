"""`./x fresh [RELEASE …] [--test ARGUMENTS]`: run `./x demo` and `./x test` in a bare Debian.

Each release is installed by debootstrap with python3, pip and certificates and nothing else, and kept in `.x/fresh`.
A run works in a copy of it, in mount and process namespaces of its own: everything it mounts and starts ends with it.
Needs root. Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.servers.processes import Unavailable, found_or_installed, is_root

ROOT = Path(__file__).resolve().parents[1]
BASES = ROOT / ".x" / "fresh"
# A release and what it brings: Python 3.11 and PostgreSQL 15, 3.13 and 17, 3.14 and 18.
RELEASES = ("bookworm", "trixie", "testing")
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
PACKAGES = "python3,python3-pip,ca-certificates"
_SCRIPT = "/usr/share/debootstrap/scripts/sid"  # the same for every Debian; an older debootstrap lacks newer names
_AUTHORITIES = Path("usr/local/share/ca-certificates")  # what this machine trusts beyond Debian's own list
_WAYS_OUT = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "NODE_EXTRA_CA_CERTS")
_CACHES = (".git", ".venv", ".x", ".artifacts", ".hypothesis", "__pycache__", ".*_cache", "out")

# Mounts end with the namespace. /dev is shared with the host but for its shared memory. The first process of a
# namespace inherits the children of others and must wait for them: a shell does.
_INSIDE = """
set -e
mount -t proc proc "$0/proc"
mount --rbind /sys "$0/sys"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/dev/shm"
chroot "$0" "$@"
exit $?
"""


def base(release: str) -> Path:
    """The folder of the bare release, installed on the first call. Raises Unavailable."""
    folder = BASES / release
    if folder.exists():
        return folder
    program = found_or_installed("debootstrap")
    BASES.mkdir(parents=True, exist_ok=True)
    unfinished = BASES / f"{release}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    say(f"installing Debian {release} into {folder}")
    command = [program, "--variant=minbase", f"--include={PACKAGES}", release, unfinished, mirror(), _SCRIPT]
    # It mounts /proc in the folder. In a namespace of its own that mount ends with it, also where it is killed: what is
    # left can be removed without reaching into the host's.
    done = subprocess.run([*NAMESPACES, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"debootstrap {release}: {done.stdout.strip()[-500:]}{done.stderr.strip()[-500:]}")
    unfinished.rename(folder)  # an installation that was cut off does not look complete
    return folder


def mirror() -> str:
    return os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")


@contextmanager
def machine(release: str) -> Iterator[Path]:
    """A copy of the bare release that reaches the network as this machine does, with the tree in /root/tenure."""
    with tempfile.TemporaryDirectory(prefix=f"tenure-fresh-{release}-", dir="/tmp") as scratch:
        place = Path(scratch, "root")
        subprocess.run(["cp", "-a", "--reflink=auto", base(release), place], check=True)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(Path("/etc", name), place / "etc" / name)
        shutil.copytree(Path("/") / _AUTHORITIES, place / _AUTHORITIES, dirs_exist_ok=True)
        copy_tree(place / "root" / "tenure")
        yield place


def copy_tree(target: Path) -> None:
    """The working tree as it stands, without what the tools made in it."""
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*_CACHES), symlinks=True)


def run(place: Path, *command: str) -> int:
    """The exit code of a command in the tree of that machine."""
    env = {name: os.environ[name] for name in _WAYS_OUT if name in os.environ}
    env |= {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
    inside = ["sh", "-c", 'cd /root/tenure && exec "$@"', "sh", *command]
    return subprocess.run([*NAMESPACES, "sh", "-c", _INSIDE, place, *inside], env=env, check=False).returncode


def prove(release: str, arguments: Sequence[str]) -> bool:
    """Whether the demo and the tests pass on the release."""
    with machine(release) as place:
        steps = [["update-ca-certificates"], ["./x", "demo"], ["./x", "test", *arguments]]
        for step in steps:
            began = time.monotonic()
            code = run(place, *step)
            say(
                f"{release}: {' '.join(step)}: {f'FAILED ({code})' if code else 'ok'}, {time.monotonic() - began:.0f} s"
            )
            if code:
                return False
    return True


def say(text: str) -> None:
    print(f"fresh: {text}", file=sys.stderr, flush=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./x fresh", description="Run the demo and the tests in a bare Debian.")
    parser.add_argument("releases", nargs="*", default=list(RELEASES[:1]), help=f"of Debian: {', '.join(RELEASES)}")
    parser.add_argument(
        "--test", nargs="...", default=[], metavar="ARGUMENT", help="arguments of `./x test`; the last option"
    )
    given = parser.parse_args(argv)
    if not is_root():
        say("this needs root: debootstrap and chroot do.")
        return 2
    try:
        proven = [prove(release, given.test) for release in given.releases]
    except Unavailable as why:
        say(str(why))
        return 1
    return 0 if all(proven) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
