"""Decoders are built once, whoever comes first, and never met half-built."""

import subprocess
import sys

from tenure.core.commands import Claim
from tenure.core.decoding import converted, decoder_of

# Structs that share another one, met by eight threads at the same instant, as often as threads can take turns.
RACE = """
import sys, threading
import msgspec
from tenure.core.decoding import decoder_of
sys.setswitchinterval(1e-6)
for n in range(60):
    inner = msgspec.defstruct("Inner", [(f"f{i}", int, i) for i in range(20)])
    kinds = [msgspec.defstruct(f"Outer{i}", [("a", inner), ("b", list[inner])]) for i in range(8)]
    gate = threading.Barrier(8)
    def meet(kind):
        gate.wait()
        for one in (kind, *kinds):
            assert decoder_of(one).decode(b'{"a": {}, "b": [{}, {}]}').b[1].f3 == 3
    threads = [threading.Thread(target=meet, args=(kind,)) for kind in kinds]
    [t.start() for t in threads]
    [t.join() for t in threads]
print("whole")
"""


def test_threads_never_meet_a_decoder_that_is_half_built() -> None:
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr


def test_a_decoder_is_built_once() -> None:
    assert decoder_of(Claim) is decoder_of(Claim)


def test_plain_values_are_converted() -> None:
    claim = converted({"command": "claim", "project": "p", "task": "A-001", "agent": "ann", "session": "s"}, Claim)
    assert claim.task == "A-001"
