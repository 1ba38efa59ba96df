"""Plays a history on the real engine beside the model, and says where they part."""

from __future__ import annotations

import re
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tenure.core import commands
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.engine import Engine
from tenure.stores.open_store import open_store
from tenure.stores.port import DURABLE
from tests.stateful.actors import Clerk, History, Player, Step
from tests.stateful.model import World
from tests.stateful.model_rows import SECOND, Answer
from tests.stateful.rows import expected_rows, row_differences, rows_of, since

# --- comparing ----------------------------------------------------------------------------------------------


class Divergence(NamedTuple):
    turn: int
    step: Step | None
    what: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        where = f"turn {self.turn}: {self.step}" if self.step else "at the end"
        return f"{where}: {self.what}: expected {self.expected!r}, got {self.got!r}"


def ref_of(key: str) -> str:
    """`A-001::2` of `A-001-some-slug::2`."""
    match = re.match(r"([A-Z]+-\d+)", key)
    return match.group(1) + "".join(re.findall(r"::\d+", key)) if match else key


def differences(expected: Answer, got: Outcome | TenureError) -> Iterator[tuple[str, Any, Any]]:
    """Field by field where the engine's answer is not the model's."""
    seen = seen_in(got)
    if expected and expected.get("error", expected.get("outcome")) != seen["outcome"]:
        yield "outcome", expected, {field: value for field, value in seen.items() if value}
        return
    for field, wanted in expected.items():
        if field in ("outcome", "error", "genuine"):
            continue
        if field == "claims":
            found = seen["claims"]
            if len(found) != len(wanted):
                yield "claims", wanted, found
            for one, other in zip(wanted, found, strict=False):
                yield from differences(one, other)
        elif (found := seen[field]) != wanted:
            yield field, wanted, found
    if "error" not in expected and bool(expected.get("again")) != seen["again"]:
        yield "again", bool(expected.get("again")), seen["again"]


def seen_in(got: Outcome | TenureError) -> dict[str, Any]:
    """The engine's answer in the model's words."""
    if isinstance(got, TenureError):
        return {"outcome": got.code, "message": got.message}
    task = got.task or {}
    seen = {field: getattr(got, field) for field in got.__struct_fields__}
    return seen | {
        "task": ref_of(task["key"]) if "key" in task else None,
        "tasks": [ref_of(t["key"]) for t in got.tasks or ()],
        "claims": list(got.claims or ([got] if got.outcome == "GRANTED" else ())),
        "state": got.state or task.get("state"),
        "waits_for": {ref_of(key) for key in got.waits_for or ()},
        "left": {ref_of(key) for key in got.left or ()},
        "missing": {ref_of(key) for key in got.missing or ()},
        "changed_keys": {ref_of(key) for key in got.changed or ()},
        "recipients": set(got.changed or ()),
        "texts": sorted(mail["text"] for mail in got.messages or ()),
    }


# --- playing ------------------------------------------------------------------------------------------------


class Clock:
    """The time that a test sets."""

    def __init__(self, now: int = 1_767_225_600 * SECOND) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


class Chance:
    """Counts instead of rolling dice: ids of one moment sort in the order they were made.

    The steps are wide, since a transaction counts on from its token for the ids that it makes.
    """

    def __init__(self) -> None:
        self.count = 0
        self.jitter = 0.5

    def token(self, size: int) -> bytes:
        self.count += 1
        return (self.count << max(0, 8 * size - 40)).to_bytes(size, "big")

    def fraction(self) -> float:
        return self.jitter


class Bench:
    """A store with one project for each history played on it. `open_again` is what the next process would do."""

    def __init__(self, open_store: Callable[[Clock], Any]) -> None:
        self._open_store = open_store
        self.clock = Clock()
        self.chance = Chance()
        self.projects = 0
        self.store = open_store(self.clock)
        self.engine = Engine(self.store, self.chance)

    def open_again(self) -> None:
        """Nobody says goodbye to the old store or engine; a store that lives only in this process is kept."""
        if DURABLE in self.store.features:
            self.store = self._open_store(self.clock)
        self.engine = Engine(self.store, self.chance)

    def new_project(self) -> str:
        self.projects += 1
        project = f"p{self.projects}"
        self.engine.do(commands.DefineProject(project=project))
        return project

    def sweep(self, project: str) -> None:
        """A row that a rule of ours cannot settle is kept apart there; here it is a failure."""
        failed = self.engine.sweep(project).failed
        assert not failed, failed

    def close(self) -> None:
        self.store.close()


@contextmanager
def new_bench(store: str) -> Iterator[Bench]:
    """A bench on a new store of that kind.

    `sqlite`: a file, in memory where the host has such; `memory`; the others: the server that the environment names.
    """
    if store == "memory":
        yield Bench(lambda clock: open_store("memory://", clock=clock))
        return
    folder = tempfile.mkdtemp(prefix="tenure-model-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    try:
        if store == "sqlite":
            bench = Bench(lambda clock: open_store(f"sqlite://{folder}/tenure.db", clock=clock))
        else:
            from tests.servers.store_servers import SERVERS  # needs drivers that others do without

            bench = Bench(lambda clock: SERVERS[store].open_store(Path(folder), clock))
        yield bench
        bench.close()
    finally:
        shutil.rmtree(folder)


class Played(NamedTuple):
    steps: int
    answers: list[tuple[int, Step, dict[str, Any]]]  # turn, step, answer: to compare ways of playing
    rows: dict[str, Any]
    divergence: Divergence | None


def play(
    history: History,
    bench: Bench,
    *,
    sweeps: str = "as told",
    batches: bool = True,
    jitter: float = 0.5,
) -> Played:
    """Runs the history until the answers part, and compares all rows at its end.

    `sweeps`: as the history tells, "never", or "always" (after each turn); `batches=False` sends the commands of a
    batch one by one, while the clock stands still.
    """
    bench.chance.jitter = jitter
    project = bench.new_project()
    player = Player(World(bench.clock.now, jitter))
    clerk = Clerk(project, bench.clock.now, lambda name: player.world.tasks[name].ref if name != "nobody" else "Q-404")
    answers: list[tuple[int, Step, dict[str, Any]]] = []
    rows: dict[str, Any] = {}

    def partings() -> Iterator[Divergence]:
        for index, turn in enumerate(history):
            expected = list(player.play(turn))
            if turn[0] == "advance":
                bench.clock.now += turn[1]
            elif turn[0] == "jump_back":
                bench.engine.do(commands.Send(project=project, sender="clock", to="clock", text="it is late"))
                bench.clock.now -= turn[1]
            elif turn[0] == "crash":
                bench.open_again()
            elif turn[0] == "new_epoch":
                bench.engine.new_epoch("the history says so")
            elif turn[0] == "sweep" and sweeps == "as told":
                bench.sweep(project)
            asked = [clerk.command(*step) for step, _ in expected]
            got: list[Outcome | TenureError] = []
            for batch in [asked] if batches else [[command] for command in asked]:
                got += bench.engine.run(batch) if batch else []
            for (step, answer), outcome in zip(expected, got, strict=True):
                if isinstance(outcome, Outcome):
                    clerk.learn(step, outcome)
                answers.append((index, step, without_ids(outcome, player.start)))
                for difference in differences(answer, outcome):
                    yield Divergence(index, step, *difference)
            if sweeps == "always":
                bench.sweep(project)
        player.world.settle()
        bench.sweep(project)
        rows.update(rows_of(bench.store, project, player.start))
        for difference in row_differences(expected_rows(player.world, player.start), rows):
            yield Divergence(len(history), None, *difference)

    try:
        first = next(partings(), None)
    except Exception as error:  # noqa: BLE001  # whatever it is, the history that led to it is what we want
        first = Divergence(len(history), None, "raised", None, "".join(traceback.format_exception(error)[-3:]))
    bench.clock.now = max(bench.clock.now, player.world.now)  # the next history begins behind this one
    return Played(len(answers), answers, rows, first)


def without_ids(outcome: Outcome | TenureError, start: int) -> dict[str, Any]:
    """An answer as another project would give it: what is equal whichever way the history is played."""
    seen = seen_in(outcome)
    seen["claims"] = [without_ids(claim, start) for claim in seen.get("claims", ()) if claim is not outcome]
    for field in ("retry_at", "lease_until"):
        seen[field] = since(start, seen.get(field))
    if seen.get("checkpoint"):
        seen["checkpoint"] = seen["checkpoint"] | {"at": since(start, seen["checkpoint"]["at"])}
    if (seen.get("conflict") or "").startswith("hold_"):
        seen["conflict"] = "a reservation"
    kept = (
        "outcome", "again", "task", "tasks", "claims", "generation", "attempt", "holder", "yours", "waits_for",
        "conflict", "counts", "directive", "current_generation", "work_lost", "state", "left", "models", "checkpoint",
        "retry_at", "lease_until",
    )  # fmt: skip
    return {field: seen.get(field) for field in kept}


def parting_of(one: Played, *others: Played) -> Divergence | None:
    """Where the answers or rows of the same history, played in several ways, are not equal."""
    for other in others:
        for (turn, step, answer), (_, _, found) in zip(one.answers, other.answers, strict=False):
            for field in answer.keys() | found.keys():
                if answer.get(field) != found.get(field):
                    return Divergence(turn, step, field, answer.get(field), found.get(field))
        for what, wanted, row in row_differences(one.rows, other.rows):
            return Divergence(len(one.answers), None, what, wanted, row)
    return None


# --- making small -------------------------------------------------------------------------------------------


def shortened(history: History, still_parts: Callable[[History], bool]) -> History:
    """The shortest history found by leaving out turns, commands and arguments that still makes them part."""
    changed = True
    while changed:
        changed = False
        for size in (16, 8, 4, 2, 1):
            start = len(history)
            while start > 0:
                start = max(0, start - size)
                shorter = history[:start] + history[start + size :]
                if len(shorter) < len(history) and still_parts(shorter):
                    history, changed = shorter, True
        for candidate in _simpler(history):
            if still_parts(candidate):
                history, changed = candidate, True
                break
    return history


def _simpler(history: History) -> Iterator[History]:
    needed = (
        "name", "task", "agent", "session", "receipt", "receipts", "data", "names", "needs", "scope", "hold",
        "patterns", "plan", "tasks", "of", "cents", "estimate", "sender", "to", "text",
        "taker", "checker", "how", "new", "blocked", "retry_after", "lease",
    )  # fmt: skip
    for index, turn in enumerate(history):
        if turn[0] != "do":
            continue
        for place, (verb, arguments) in enumerate(turn[1]):
            others = [turn[1][:place], turn[1][place + 1 :]]
            if len(turn[1]) > 1:
                yield [*history[:index], ("do", others[0] + others[1]), *history[index + 1 :]]
            for field in arguments:
                if field not in needed or (verb == "add" and field == "needs"):
                    fewer = {k: v for k, v in arguments.items() if k != field}
                    steps = [*others[0], (verb, fewer), *others[1]]
                    yield [*history[:index], ("do", steps), *history[index + 1 :]]


def told(history: History, divergence: Divergence) -> str:
    """The history as text that can be typed, and where the two part."""
    lines = [f"    {turn!r}," for turn in history]
    return "\n".join(["history = [", *lines, "]", str(divergence)])
