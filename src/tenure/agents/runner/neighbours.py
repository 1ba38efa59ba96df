"""Who else works in a checkout: other runners, and agents that hold a claim. Two at once overwrite each other's files.

Each runner has a file in `.tenure/runners` while it lives. A file counts as long as its process runs; one of another
process table (a container that shares the folder) cannot be judged and does not count.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import msgspec

from tenure import process_table
from tenure.client import Client
from tenure.core.commands import Process
from tenure.core.errors import TenureError
from tenure.user_state import listed, make_private_folder, read_record, write_private

FOLDER = "runners"
_LOCK = "lock"
_PRESENT = ("active", "idle", "draining")


class RunnerHere(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    process: Process
    checkout: str  # the root of the working tree, else its folder
    name: str  # its agents are NAME-(first + 1) …
    first: int = 0
    slots: int = 1
    is_inside: bool = False  # its agents work in the checkout itself

    @property
    def numbers(self) -> range:
        return range(self.first + 1, self.first + self.slots + 1)

    @property
    def sentence(self) -> str:
        return f"another runner (pid {self.process.pid}, {self.name}-{self.first + 1}) works in this checkout"


@contextmanager
def joining(home_folder: str) -> Iterator[list[RunnerHere]]:
    """The runners that live, while no other can begin: the caller decides by them and records itself."""
    folder = os.path.join(home_folder, FOLDER)
    make_private_folder(folder)
    with open(os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield list(_alive(folder))


def _alive(folder: str) -> Iterator[RunnerHere]:
    here = (process_table.host(), process_table.boot_id())
    for name in listed(folder):
        path = os.path.join(folder, name)
        found = read_record(path, RunnerHere) if name.endswith(".json") else None
        if found is None or (found.process.host, found.process.boot) != here:
            continue
        if process_table.has_ended(found.process.pid, found.process.start):
            with suppress(OSError):
                os.unlink(path)
        else:
            yield found


def record(home_folder: str, runner: RunnerHere) -> str:
    """The path of the runner's file, which it removes at its end."""
    process = runner.process
    path = os.path.join(home_folder, FOLDER, f"{process.pid}-{process.start}.json")
    write_private(path, msgspec.json.encode(runner))
    return path


def first_free(client: Client, name: str, slots: int, others: Iterable[RunnerHere]) -> int:
    """The number before the first of `slots` names in a row that no live runner's agent has, here or on other hosts."""
    taken = {number for other in others if other.name == name for number in other.numbers}
    for agent in client.agents():
        base, _, number = agent["name"].rpartition("-")
        is_elsewhere = agent["managed"] and agent["host"] != process_table.host() and agent["status"] in _PRESENT
        if base == name and number.isdecimal() and is_elsewhere:
            taken.add(int(number))
    first = 0
    while taken.intersection(range(first + 1, first + slots + 1)):
        first += 1
    return first


def holder_inside(client: Client, checkout: str, home_folder: str) -> str | None:
    """The agent that holds a claim and works in this checkout, outside of the worktrees; None if there is none."""
    try:
        found = client.processes()
    except TenureError:
        return None  # the claim that follows reports it
    here = (process_table.host(), process_table.boot_id())
    apart = os.path.join(os.path.realpath(home_folder), "")
    for one in found:
        is_holder = bool(one["tasks"]) and (one["host"], one["boot"]) == here
        if not is_holder or process_table.has_ended(one["pid"], one["start"]):
            continue
        folder = _folder_of(one["pid"])
        if os.path.join(folder, "").startswith(os.path.join(checkout, "")) and not folder.startswith(apart):
            return f"process {one['pid']}, which holds {', '.join(one['tasks'])}, works in this checkout"
    return None


def _folder_of(pid: int) -> str:
    """Where a process works; empty where the system does not say."""
    try:
        return os.readlink(f"{process_table.PROC}/{pid}/cwd")
    except OSError:
        return ""
