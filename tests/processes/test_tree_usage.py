"""Memory and CPU of a tree of processes: on a made table, and of real processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tenure.processes import tree_usage
from tenure.processes.tree_usage import MEGABYTE, Process, TreeMeter, TreeUsage

BUSY = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "x = bytearray(60 << 20)\\nprint('up', flush=True)\\ninput()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print("up", flush=True)
sys.stdin.readline()
child.communicate(b"\\n")
"""


def test_all_descendants_count_and_nobody_else() -> None:
    table = {
        1: Process(0, 500 * MEGABYTE, 9.0),
        2: Process(1, 10 * MEGABYTE, 1.0),
        3: Process(2, 20 * MEGABYTE, 1.0),
        4: Process(3, 30 * MEGABYTE, 1.0),
        5: Process(1, 400 * MEGABYTE, 5.0),
    }
    now = [100.0]
    meter = TreeMeter(lambda: now[0], lambda: table)
    assert meter.measure(2) == TreeUsage(60, None)
    table[4] = Process(3, 30 * MEGABYTE, 3.0)
    table[6] = Process(2, 0, 1.0)  # new: its whole time counts
    del table[3]  # what it has used is gone with it; its child is another's now
    table[4] = Process(2, 30 * MEGABYTE, 3.0)
    now[0] += 10
    assert meter.measure(2) == TreeUsage(40, 30)
    assert meter.measure(99) is None


def test_the_processes_of_this_machine_are_measured() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        used = TreeMeter().measure(parent.pid)
        own = tree_usage.processes()[parent.pid].memory // MEGABYTE
        parent.communicate(b"\n")
    assert used is not None
    assert used.memory_mb >= own + 60  # the child's memory, too
    assert os.getpid() in tree_usage.processes()


@pytest.mark.parametrize(
    ("text", "seconds"), [("0:01", 1), ("12:34.50", 754.5), ("1:00:00", 3600), ("2-03:00:00", 183600)]
)
def test_times_of_ps_are_read(text: str, seconds: float) -> None:
    assert tree_usage._seconds(text) == seconds
