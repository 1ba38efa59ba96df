"""Each system call of an act fails once: the answer is an error and nothing changed, or done and it is there.

Every open, write, sync, cut and rename of a claim, a submit, a renewal, an add, a new store, an upgrade, a
checkpoint, a backup, an artifact and an outbox file fails by strace: with EIO, with ENOSPC, once or from there on, or
the process is killed there; reads fail with EIO; and files may grow only so far, which cuts single writes short.
After each the folder is opened as a new process would find it. The same request is then repeated, in the same process
where it lives, else in another, and must have its one effect. "Unknown" is a fair answer where a repeat settles it.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec

import tenure
from tenure.core.errors import TenureError
from tenure.engine import Engine
from tests.reliability import results
from tests.reliability.faults_acts import ACTS, STORE, Act, opened, state_of
from tests.reliability.faults_stage import tried
from tests.reliability.powerloss_work import SeededChance
from tests.servers.processes import found_or_installed

STAGE = "tests.reliability.faults_stage"
CALLS = (
    "openat",
    "pwrite64",
    "write",
    "ftruncate",
    "fsync",
    "fdatasync",
    "rename",
    "link",
    "linkat",
    "unlink",
    "mkdir",
)
READS = ("pread64",)
SPARE = {"openat": 2_500}  # calls that the stage makes itself, to start and to warm up
SHORT_STEP = 1_500  # bytes between two limits of a file's size: not a multiple of a page or a sector
PROGRAM = str(Path(tenure.__file__).parent)
_LINE = re.compile(r"^(\d+) +(\w+)\(")


class Fault(NamedTuple):
    name: str
    what: str  # in strace's words
    lasts: bool = False

    def of(self, call: str, number: int) -> list[str]:
        return ["-e", f"inject={call}:{self.what}:when={number}{'+' if self.lasts else ''}"]


FAULTS = (
    Fault("EIO", "error=EIO"),
    Fault("ENOSPC", "error=ENOSPC"),
    Fault("EIO from there on", "error=EIO", lasts=True),
    Fault("ENOSPC from there on", "error=ENOSPC", lasts=True),
    Fault("killed", "signal=KILL"),
)


class Stage:
    """One process under strace, whose children act."""

    def __init__(self, act: Act, warm: Path, injected: Sequence[str], log: Path) -> None:
        self.log = log
        strace = str(found_or_installed("strace"))
        trace = ["-e", "trace=" + ",".join((*CALLS, *READS)), "-e", "signal=none"]
        command = [strace, "-f", "-qq", "-o", str(log), *trace, *injected]
        command += [sys.executable, "-m", STAGE, act.name, str(warm)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.hear() == "ready"

    def say(self, said: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(said) + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the stage ended with {self._process.wait()}")
        return msgspec.json.decode(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def injected(self) -> int:
        return self.log.read_text(errors="replace").count("(INJECTED)")


class Trial:
    """All points of one act."""

    def __init__(self, act: Act, folder: Path) -> None:
        self.act, self.folder = act, folder
        self.base = folder / "base"
        self.base.mkdir()
        act.prepare(self.base)
        self.before = state_of(act, self.copy("before"))
        after = self.copy("after")
        tried(act, after, [])
        self.after = state_of(act, after)
        assert self.before != self.after or act.name == "close", f"{act.name} changes nothing, so it can prove nothing"
        self.counts: Counter[str] = Counter()
        self.found: list[tuple[str, str]] = []
        self.verified: dict[str, list[str]] = {}

    def copy(self, name: str, of: Path | None = None) -> Path:
        target = self.folder / name
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(of or self.base, target, symlinks=True)
        return target

    @contextmanager
    def stage(self, *injected: str) -> Iterator[Stage]:
        stage = Stage(self.act, self.copy("warm"), injected, self.folder / "log")
        try:
            yield stage
        finally:
            stage.close()

    def calls(self) -> Counter[str]:
        """How often the act makes each call, when nothing fails."""
        with self.stage() as stage:
            target = self.copy("counted")
            stage.say({"folder": str(target), "call": "", "skip": 0})
            answer = stage.hear()
            stage.say("end")
            stage.hear()
        assert "done" in answer, answer
        lines = [match.groups() for line in stage.log.read_text().splitlines() if (match := _LINE.match(line))]
        last = lines[-1][0]
        return Counter(call for process, call in lines if process == last)

    def run(self, share: float, dice: random.Random) -> None:
        counted = self.calls()
        for call in (*CALLS, *READS):
            for fault in FAULTS if call in CALLS else FAULTS[:1]:
                points = [k for k in range(1, counted[call] + 1) if dice.random() < share]
                if points:
                    self.fail(call, fault, points, 2 * counted[call] + SPARE.get(call, 20))
        self.cut_short(share, dice)

    def fail(self, call: str, fault: Fault, points: Sequence[int], number: int) -> None:
        """Of each child the call of that `number` fails; what it makes first moves the point there."""
        with self.stage(*fault.of(call, number)) as stage:
            for point in points:
                target = self.copy("work")
                stage.say({"folder": str(target), "call": call, "skip": number - point})
                self.judge(stage, target, f"{call} {point}, {fault.name}", lasts=fault.lasts)
        if fault.name != "killed" and stage.injected() < len(points):
            self.found.append(("unproven", f"{call}, {fault.name}: {stage.injected()} of {len(points)} did fail"))

    def cut_short(self, share: float, dice: random.Random) -> None:
        """A file may not grow beyond a size: the write that crosses it is cut short, the next one fails."""
        sizes = {
            path.stat().st_size
            for path in (self.folder / "after").rglob("*")
            if path.is_file() and not path.is_symlink()
        }
        with self.stage() as stage:
            for largest in range(SHORT_STEP, max(sizes) + SHORT_STEP, SHORT_STEP):
                if dice.random() < share:
                    target = self.copy("work")
                    stage.say({"folder": str(target), "call": "", "skip": 0, "largest": largest})
                    self.judge(stage, target, f"no file above {largest} bytes", lasts=False)

    def judge(self, stage: Stage, target: Path, what: str, *, lasts: bool) -> None:
        self.counts["points"] += 1
        answer = stage.hear()
        if "ended" in answer:
            self.counts["killed"] += 1
            self.state(target, what, {self.before, self.after})
        else:
            self.first_answer(answer, target, what)
            stage.say("end" if lasts or "done" in answer else "again")
            again = stage.hear()
            if "ended" not in again:
                self.counts["repeated in the same process"] += 1
                if again.get("done") is None and self.act.name != "backup":
                    self.found.append(("stuck", f"{what}: {answer}; once it was over: {again}"))
                stage.hear()
        again = tried(self.act, target, [])
        if "done" not in again and not (self.act.name == "backup" and (target / "backup.db").exists()):
            self.found.append(("stuck", f"{what}: another process: {again}"))
        self.state(target, f"{what}, repeated", {self.after})

    def first_answer(self, answer: dict[str, Any], target: Path, what: str) -> None:
        seen = self.copy("seen", target)  # as a process that comes later would find it, with this one gone
        if answer.get("error") == "OSError" and PROGRAM in answer["text"]:
            self.counts["the program itself cannot be read"] += 1
        elif "crash" in answer or (answer.get("error") == "OSError" and self.act.name != "outbox"):
            self.found.append(("crash", f"{what}: {answer}"))
        elif "done" in answer:
            self.counts["done all the same"] += 1
            self.state(seen, f"{what}: {answer}", {self.after})
        else:
            self.counts[f"{answer['error']}"] += 1
            if answer["error"] == "STORE_CORRUPT":
                self.found.append(("untrue", f"{what}: {answer}"))
            sure = answer["definite"] and not self.act.is_repeatable
            self.state(seen, f"{what}: {answer}", {self.before} if sure else {self.before, self.after})

    def state(self, folder: Path, what: str, allowed: set[str]) -> None:
        try:
            now = state_of(self.act, folder)
            wrong = self.faults(folder, now)
        except (TenureError, apsw.Error, OSError) as error:
            self.found.append(("broken", f"{what}: {type(error).__name__}: {error}"))
            return
        if now.startswith("damaged") and "damaged" not in self.after and len(allowed) > 1:
            return  # a backup that failed and could not be removed; nobody was told that it is one
        if now not in allowed:
            kind = {self.after: "untrue", self.before: "lost"}.get(now, "half")
            self.found.append((kind, what))
        self.found += [("half", f"{what}: {line}") for line in wrong]

    def faults(self, folder: Path, now: str) -> list[str]:
        """What `verify` says of the store there; equal rows have equal faults."""
        if not (folder / STORE).exists():
            return []
        key = f"{now} {self.act.name in ('artifact', 'outbox', 'backup')}"
        if key not in self.verified:
            store = opened(folder)
            try:
                self.verified[key] = [*store.check(), *Engine(store, SeededChance(3)).verify()]
            finally:
                store.close()
        return self.verified[key]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    parser.add_argument("--acts", nargs="+", choices=[*ACTS], default=[*ACTS], metavar="ACT", help=", ".join(ACTS))
    parser.add_argument("--share", type=float, default=1.0, help="of all points, by chance")
    parser.add_argument("--store", choices=("sqlite",), default="sqlite")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    wanted = parser.parse_args(argv)
    began = time.monotonic()
    print(f"seed {wanted.seed}", flush=True)
    dice = random.Random(wanted.seed)
    counts: Counter[str] = Counter()
    found: list[tuple[str, str]] = []
    where = "/dev/shm" if Path("/dev/shm").is_dir() else None
    for name in wanted.acts:
        with tempfile.TemporaryDirectory(prefix="tenure-faults-", dir=where) as folder:
            trial = Trial(ACTS[name], Path(folder))
            trial.run(wanted.share, dice)
        print(f"{name}: {trial.counts['points']} points, {len(trial.found)} findings", flush=True)
        for kind, text in trial.found[:10]:
            print(f"  {kind}: {text}", flush=True)
        counts += trial.counts
        found += trial.found
    for name, number in sorted(counts.items()):
        print(f"{number:8} {name}")
    kinds = Counter(kind for kind, _ in found)
    names = ("lost", "half", "untrue", "broken", "stuck", "crash", "unproven")
    numbers: dict[str, results.Figure] = {
        "points": counts["points"],
        "unknown": counts["OUTCOME_UNKNOWN"],
        **{kind: kinds[kind] for kind in names},
        "seconds": round(time.monotonic() - began),
    }
    results.tell("faults", numbers)
    return 1 if found else 0
