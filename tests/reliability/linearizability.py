"""Threads and processes race for one task at a time; every history must fit some order that respects real time.

Four or more players run random verbs on the same task, with a clock that they share and move on themselves, so that
leases run out in the middle of everything. What each asked and was answered goes to the checker. The memory store is
played by threads, the others by processes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from multiprocessing import sharedctypes
from typing import Any

from tenure.core import commands
from tenure.core.errors import TenureError
from tenure.core.records import RetryPolicy, Task
from tenure.engine import Engine
from tenure.stores.open_store import open_store
from tests.reliability import one_task, results
from tests.reliability.checker import Operation, explanation, told
from tests.reliability.ground import server_of
from tests.servers.store_servers import SERVERS

CHUNK = 100  # histories that share one store
PROJECT = "race"
SECOND = 1_000_000
STEPS = (200_000, 600_000, 1_100_000)  # how far a player moves the clock; leases are 1 or 2 s
WIDTH = 64  # bytes of a receipt on the board
FORK = multiprocessing.get_context("fork")  # the parent never opens a store, so that children inherit nothing of one

# Advances and claims most of all: without them nothing expires and nothing is superseded. What ends a task is rare.
VERBS = {"claim": 28, "renew": 12, "submit": 6, "fail": 9, "release": 6, "cancel": 1, "sweep": 3}
# Time moves in one half of the histories, reads run in the other. A transaction's `now` lies before its commit, and a
# read, which waits for nobody, may fall between: no one order of clock and task shows both, and none needs to.
MOVING = VERBS | {"advance": 16}
STANDING = VERBS | {"look": 16}


class Stage:
    """What the players of one store share: the clock, the start of each history, and a board of receipts.

    Every player may use every receipt, since the receipt alone is the authority. A slot is written once.
    """

    def __init__(self, kind: Any, players: int, histories: int, operations: int) -> None:
        """`kind`: where Lock and Barrier come from, threading or a multiprocessing context."""
        self._clock = sharedctypes.RawValue("q", 1_767_225_600 * SECOND)
        self._history = sharedctypes.RawValue("q", -1)
        self._began = sharedctypes.RawArray("q", histories)
        self._board = sharedctypes.RawArray("c", histories * players * operations * WIDTH)
        self._places = players * operations
        self._turn = kind.Lock()
        self.players, self.histories, self.operations = players, histories, operations
        self.barrier = kind.Barrier(players, self._begin, timeout=120)

    def _begin(self) -> None:
        self._history.value += 1
        self._began[self._history.value] = self._clock.value

    def now(self) -> int:
        """The store asks inside its transaction: giving way here lets others pile up on its locks, on any machine."""
        now = self._clock.value
        os.sched_yield()
        return now

    def began(self, history: int) -> int:
        return self._began[history]

    def advance(self, by: int) -> None:
        with self._turn:
            self._clock.value += by

    def post(self, history: int, player: int, number: int, receipt: str) -> None:
        at = (history * self._places + player * self.operations + number) * WIDTH
        text = receipt.encode().ljust(WIDTH)
        self._board[at + 1 : at + WIDTH] = text[: WIDTH - 1]
        self._board[at] = b"."  # last: now it may be read

    def receipts(self, history: int) -> list[str]:
        first = history * self._places * WIDTH
        board = self._board[first : first + self._places * WIDTH]
        slots = (board[at : at + WIDTH] for at in range(0, len(board), WIDTH))
        return [slot[1:].decode().strip() for slot in slots if slot[:1] == b"."]


class Chance:
    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def fraction(self) -> float:
        return 0.5


# --- playing ------------------------------------------------------------------------------------------------


def ref_of(history: int) -> str:
    return f"A-{history + 1:03}"


def make_tasks(engine: Engine, histories: int) -> None:
    engine.do(commands.DefineProject(project=PROJECT))
    retry = RetryPolicy(strategy="fixed", initial_delay=one_task.RETRY_DELAY / 1e6, jitter=0.0)
    new = commands.NewTask(title="contested", max_attempts=one_task.MOST_ATTEMPTS, retry=retry)
    for answer in engine.run([commands.Add(project=PROJECT, task=new)] * histories):
        assert not isinstance(answer, TenureError), answer


def play(stage: Stage, engine: Engine, player: int, seed: str) -> list[list[Operation]]:
    """This player's part in every history of the store."""
    if player == 0:
        make_tasks(engine, stage.histories)
    parts = []
    for history in range(stage.histories):
        dice = random.Random(f"{seed}/{history}/{player}")
        stage.barrier.wait()
        parts.append([operate(stage, engine, history, player, number, dice) for number in range(stage.operations)])
    return parts


def operate(stage: Stage, engine: Engine, history: int, player: int, number: int, dice: random.Random) -> Operation:
    verb, given = choose(stage, history, player, dice)
    invoked = time.monotonic_ns()
    answer = perform(stage, engine, history, verb, given)
    answered = time.monotonic_ns()
    if answer.get("outcome") == "GRANTED":
        stage.post(history, player, number, answer["receipt"])
    return Operation(player, verb, given, answer, invoked, answered)


def choose(stage: Stage, history: int, player: int, dice: random.Random) -> tuple[str, dict[str, Any]]:
    weights = MOVING if history % 2 else STANDING
    (verb,) = dice.choices(list(weights), list(weights.values()))
    if verb == "advance":
        return verb, {"by": dice.choice(STEPS)}
    if verb in ("sweep", "look", "cancel"):
        return verb, {}
    lease = dice.choice((SECOND, 2 * SECOND))
    receipts = stage.receipts(history)
    if verb == "claim" or not receipts:
        # two players have one session: identity never proves a holder
        return "claim", {"agent": f"agent-{player}", "session": f"session-{player // 2}", "lease": lease}
    newest = max(receipts, key=lambda text: int(text.partition("@")[2].partition(":")[0]))
    receipt = dice.choice([newest, newest, *receipts])
    if dice.random() < 0.05:
        receipt = forged(receipt)
    if verb == "renew":
        return verb, {"receipt": receipt, "lease": lease}
    if verb == "submit":
        return verb, {"receipt": receipt, "data": dice.choice(("this", "that"))}
    return verb, {"receipt": receipt}


def forged(receipt: str) -> str:
    """The same task and generation with another nonce."""
    return receipt[:-6] + ("000000" if receipt[-6:] != "000000" else "000010")


def perform(stage: Stage, engine: Engine, history: int, verb: str, given: dict[str, Any]) -> dict[str, Any]:
    """Do it, and the answer in the specification's words."""
    if verb == "advance":
        stage.advance(given["by"])
        return {}
    if verb == "sweep":
        engine.sweep(PROJECT)
        return {}
    if verb == "look":
        where = {"project": PROJECT, "ref": ref_of(history)}
        (task,) = engine.read_settled((PROJECT,), lambda work: work.find(Task, where))
        return {"state": _state(task.state), "generation": task.generation}
    try:
        outcome = engine.do(command(history, verb, given))
    except TenureError as error:
        return {"outcome": error.code, "message": error.message}
    answer = {
        field: getattr(outcome, field)
        for field in (
            "outcome",
            "generation",
            "attempt",
            "receipt",
            "yours",
            "work_lost",
            "current_generation",
            "again",
        )
    }
    answer["state"] = _state(outcome.state)
    if outcome.lease_until is not None:
        answer["lease_until"] = outcome.lease_until - stage.began(history)
    return {field: value for field, value in answer.items() if value is not None}


def command(history: int, verb: str, given: dict[str, Any]) -> commands.Command:
    given = dict(given)
    if "lease" in given:
        given["lease"] /= SECOND
    if verb in ("claim", "cancel"):
        given["task"] = ref_of(history)
    return COMMANDS[verb](project=PROJECT, **given)


COMMANDS: dict[str, Callable[..., commands.Command]] = {
    "claim": commands.ClaimTask, "renew": commands.Renew, "submit": commands.Submit, "fail": commands.Fail,
    "release": commands.Release, "cancel": commands.Cancel,
}  # fmt: skip


def _state(state: str | None) -> str | None:
    return "held" if state in ("claimed", "running") else state


# --- crews --------------------------------------------------------------------------------------------------


def threads(players: int, histories: int, operations: int, seed: str) -> list[list[Operation]]:
    """Histories on a store in memory, all players in this process."""
    stage = Stage(threading, players, histories, operations)
    engine = Engine(open_store("memory://", clock=stage.now), Chance())
    parts: list[Any] = [None] * players

    def run(player: int) -> None:
        parts[player] = _played(stage, engine, player, seed)

    crew = [threading.Thread(target=run, args=(player,)) for player in range(players)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join()
    return _together(parts)


def on_sqlite(players: int, histories: int, operations: int, seed: str) -> list[list[Operation]]:
    """Histories on a file."""
    with tempfile.TemporaryDirectory(prefix="tenure-race-") as folder:
        return processes(players, histories, operations, seed, f"sqlite://{folder}/tenure.db")


def on_server(kind: str, players: int, histories: int, operations: int, seed: str) -> list[list[Operation]]:
    """Histories in a place of the server that the environment names."""
    with SERVERS[kind].placed(f"race_{os.getpid()}") as url:
        return processes(players, histories, operations, seed, url)


def processes(players: int, histories: int, operations: int, seed: str, url: str) -> list[list[Operation]]:
    """Histories played by processes, each with a store and an engine of its own."""
    stage = Stage(FORK, players, histories, operations)
    pipes, crew = [], []
    for player in range(players):
        ours, theirs = FORK.Pipe(duplex=False)
        crew.append(FORK.Process(target=_process, args=(stage, url, player, seed, theirs)))
        crew[-1].start()
        theirs.close()
        pipes.append(ours)
    parts = [_received(pipe) for pipe in pipes]
    for process in crew:
        process.join()
    return _together(parts)


def _process(stage: Stage, url: str, player: int, seed: str, pipe: Any) -> None:
    store = open_store(url, clock=stage.now)
    pipe.send(_played(stage, Engine(store, Chance()), player, seed))
    pipe.close()
    store.close()


def _received(pipe: Any) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        return "a player ended without a word"
    finally:
        pipe.close()


def _played(stage: Stage, engine: Engine, player: int, seed: str) -> Any:
    """The player's parts, or the error that ended it as text; the others must not wait for it."""
    try:
        return play(stage, engine, player, seed)
    except Exception:  # noqa: BLE001  # told by the crew that waits for this
        stage.barrier.abort()
        return traceback.format_exc()


def _together(parts: list[Any]) -> list[list[Operation]]:
    broken = sorted((part for part in parts if isinstance(part, str)), key=lambda text: "BrokenBarrier" in text)
    if broken:
        raise RuntimeError(broken[0])  # those who only waited for it in vain come last
    return [[operation for part in players for operation in part] for players in zip(*parts, strict=True)]


CREWS: dict[str, Callable[[int, int, int, str], list[list[Operation]]]] = {
    "memory": threads, "sqlite": on_sqlite, **{kind: partial(on_server, kind) for kind in SERVERS},
}  # fmt: skip
BOTH = ("memory", "sqlite")
WITH_FAST_PATH = ("postgres",)


# --- counting -----------------------------------------------------------------------------------------------


def overlaps(history: list[Operation]) -> int:
    """How many operations ran while another did: without any, a history proves nothing about races."""
    ordered = sorted(history, key=lambda operation: operation.invoked)
    last, count = 0, 0
    for place, operation in enumerate(ordered):
        following = ordered[place + 1].invoked if place + 1 < len(ordered) else operation.answered
        count += operation.invoked < last or following < operation.answered
        last = max(last, operation.answered)
    return count


def label(operation: Operation) -> str:
    again = "again" if operation.answer.get("again") else ""
    return f"{operation.verb} {operation.answer.get('outcome', '')} {again}".strip()


def run_store(store: str, wanted: argparse.Namespace) -> int:
    """How many histories of this store have no explanation."""
    outcomes: Counter[str] = Counter()
    step = partial(one_task.step, has_fast_path=store in WITH_FAST_PATH)
    played = operations = overlapping = violations = 0
    began = told_at = time.monotonic()
    while played < wanted.histories:
        size = min(CHUNK, wanted.histories - played)
        for history in CREWS[store](wanted.players, size, wanted.operations, f"{wanted.seed}/{store}/{played}"):
            if explanation(history, one_task.OneTask(), step) is None:
                violations += 1
                print(f"\n{store}: no order explains this history:\n{told(history)}\n", flush=True)
            operations += len(history)
            overlapping += overlaps(history)
            outcomes.update(label(operation) for operation in history)
        played += size
        if time.monotonic() - told_at > 10:
            told_at = time.monotonic()
            print(f"{store}: {played} histories, {violations} violations", flush=True)
    seconds = time.monotonic() - began
    for outcome, number in sorted(outcomes.items()):
        print(f"{number:8} {outcome}")
    numbers: dict[str, results.Figure] = {
        "histories": played, "players": wanted.players, "operations": operations, "overlapping": overlapping,
        "violations": violations, "seconds": round(seconds), "histories_per_second": round(played / seconds),
    }  # fmt: skip
    results.tell("linearizability", numbers, part=store, variant="" if wanted.store == "both" else store)
    return violations


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="linearizability", description=__doc__)
    parser.add_argument("--histories", type=int, default=50_000, help="of each store")
    parser.add_argument("--store", choices=(*CREWS, "both"), default="both")
    parser.add_argument("--players", type=int, default=4)
    parser.add_argument("--operations", type=int, default=8, help="of each player in a history")
    parser.add_argument("--seed", type=int, default=0, help="of what is asked; how it interleaves is the machine's")
    wanted = parser.parse_args(argv)
    sys.setswitchinterval(1e-5)  # a command takes less than Python's usual turn of 5 ms: threads would not interleave
    with server_of(wanted.store):
        stores = BOTH if wanted.store == "both" else (wanted.store,)
        return 1 if sum(run_store(store, wanted) for store in stores) else 0
