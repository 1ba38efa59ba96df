"""Claims, renewals, submits and creates together, from several server-like processes on one PostgreSQL database.

Each process has one gathering client and many threads on several projects. Plans have children that wait for all their
parents, so that batches of both processes complete parents of the same children; vandals send commands that must be
refused, so that they stand in the same batches. No deadlock, serialisation error or conflict may reach a caller, the
server must not have seen a deadlock at all, no refused neighbour may harm a good command, and each task is accepted
once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from tenure import Client
from tenure.core import commands
from tenure.core.errors import TenureError
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Result, Task
from tenure.testing.factories import reading
from tests.reliability import results
from tests.reliability.ground import end_when_told
from tests.servers.postgres import PostgresServer

PROJECTS = ("north", "south", "west")
PARENTS, CHILDREN = 4, 3
BACKLOG = 60  # plans of a project that may be unfinished before its creators pause
TAKEN = "taken"  # a request id that was used already
BAD = ("NOT_FOUND", "INVALID_INPUT", "REQUEST_ID_REUSED", "CYCLE", "SESSION_MISMATCH")
SPAWN = multiprocessing.get_context("spawn")  # as servers start: with nothing of their parent's


class Tally(NamedTuple):
    """Of one process: seconds of each call by verb, what was answered, what should not have been."""

    times: dict[str, list[float]]
    answers: Counter[str]
    wrong: list[str]
    accepted: list[str]  # receipts


class Office:
    """One process: a gathering client, and threads that use it as the clients of a server would."""

    def __init__(self, url: str, number: int, agents: int, seed: int) -> None:
        self.client = Client(url, PROJECTS[0], gather=True)
        self.number, self.agents, self.seed = number, agents, seed
        self.ended = threading.Event()
        self.tally = Tally(defaultdict(list), Counter(), [], [])
        self.receipts: dict[str, str] = {}  # project → the last one that somebody was given

    def run(self, seconds: float) -> Tally:
        crew: list[Callable[[str], None]] = [self.agent] * self.agents + [self.creator] * 3 + [self.vandal] * 3
        threads = [
            threading.Thread(target=self.guarded, args=(role, f"{self.number}-{place}"))
            for place, role in enumerate(crew)
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.ended.set()
        for thread in threads:
            thread.join()
        self.client.close()
        return self.tally

    def guarded(self, role: Callable[[str], None], name: str) -> None:
        try:
            role(name)
        except Exception as error:  # noqa: BLE001  # told at the end: a thread that ended is a finding
            self.tally.wrong.append(f"{name} ended: {type(error).__name__}: {error}")

    def ask(self, command: commands.Command, may_fail: str | None = None) -> Outcome | None:
        """The outcome; an error is wrong unless it is the one that was asked for."""
        verb = type(command).__name__
        began = time.perf_counter()
        try:
            answer = self.client.do(command)
        except TenureError as error:
            self.tally.answers[f"{verb} {error.code}"] += 1
            if error.code != may_fail:
                self.tally.wrong.append(f"{verb}: {error.code}: {error}")
            return None
        if may_fail is None:
            self.tally.times[verb].append(time.perf_counter() - began)
        elif answer.outcome != may_fail:
            self.tally.wrong.append(f"{verb}: {answer.outcome}, where {may_fail} was due")
        self.tally.answers[f"{verb} {answer.outcome}"] += 1
        return answer

    # --- who is there ---

    def creator(self, name: str) -> None:
        dice = random.Random(f"{self.seed}/{name}")
        while not self.ended.is_set():
            project = dice.choice(PROJECTS)
            with reading(self.client.engine, (project,)) as work:
                open_ = work.tx.tally(
                    Task, {"project": project, "state": ("ready", "pending")}, BACKLOG * (PARENTS + CHILDREN)
                )
            if open_ >= BACKLOG * (PARENTS + CHILDREN):
                self.ended.wait(0.05)
                continue
            parents = tuple(commands.NewTask(title=f"parent {n}", name=f"p{n}") for n in range(PARENTS))
            needs = tuple(commands.Dependency(task=f"p{n}") for n in range(PARENTS))
            children = tuple(commands.NewTask(title=f"child {n}", depends_on=needs) for n in range(CHILDREN))
            self.ask(commands.Plan(project=project, tasks=parents + children))

    def agent(self, name: str) -> None:
        dice = random.Random(f"{self.seed}/{name}")
        who = {"agent": f"agent-{name}", "session": f"session-{name}"}
        while not self.ended.is_set():
            project = dice.choice(PROJECTS)
            granted = self.ask(commands.ClaimNext(project=project, **who))
            if granted is None or granted.receipt is None:
                self.ended.wait(0.01)
                continue
            held: dict[str, Any] = {"project": project, "receipt": granted.receipt}
            self.receipts[project] = granted.receipt
            for _ in range(dice.randrange(3)):
                self.expect(self.ask(commands.Renew(**held)), "RENEWED")
            if dice.random() < 0.9:
                self.expect(self.ask(commands.Submit(**held, data={"by": name})), "ACCEPTED")
                self.tally.accepted.append(granted.receipt)
            else:
                self.expect(self.ask(commands.Release(**held)), "OK")

    def expect(self, answer: Outcome | None, outcome: str) -> None:
        if answer is not None and answer.outcome != outcome:
            self.tally.wrong.append(f"{outcome} was due: {answer}")

    def vandal(self, name: str) -> None:
        """Everything here must be refused, and nobody else may notice."""
        dice = random.Random(f"{self.seed}/{name}")
        count = 0
        while not self.ended.wait(0.002):
            project = dice.choice(PROJECTS)
            count += 1
            receipt = self.receipts.get(project)
            kind = dice.randrange(5)
            if kind == 0 and receipt is not None:
                forged = receipt[:-6] + ("000000" if receipt[-6:] != "000000" else "000010")
                self.forge(commands.Submit(project=project, receipt=forged, data="mine"))
            elif kind == 1:
                self.ask(commands.ClaimTask(project=project, task="A-99999", agent=name, session=name), "NOT_FOUND")
            elif kind == 2:
                needs = (commands.Dependency(task="A-99999"),)
                task = commands.NewTask(title="waits for nobody", depends_on=needs)
                self.ask(commands.Add(project=project, task=task), "INVALID_INPUT")
            elif kind == 3:
                task = commands.NewTask(title=f"another than the first, {count}")
                self.ask(commands.Add(project=project, task=task, request_id=TAKEN), "REQUEST_ID_REUSED")
            else:
                self.circle(project)

    def forge(self, command: commands.Submit) -> None:
        answer = self.ask(command)
        if answer is not None and answer.ok:
            self.tally.wrong.append(f"a forged receipt was told {answer.outcome}")

    def circle(self, project: str) -> None:
        tasks = tuple(
            commands.NewTask(title=name, name=name, depends_on=(commands.Dependency(task=other),))
            for name, other in (("a", "b"), ("b", "a"))
        )
        self.ask(commands.Plan(project=project, tasks=tasks), "CYCLE")


def office(url: str, number: int, agents: int, seed: int, seconds: float, pipe: Any) -> None:
    """One process from start to end."""
    sys.setswitchinterval(0.001)
    pipe.send(Office(url, number, agents, seed).run(seconds))
    pipe.close()


def found(url: str) -> None:
    for project in PROJECTS:
        with Client(url, project, create=True) as client:
            client.init()
            client.add("the first", request_id=TAKEN)


def judged(url: str, tallies: list[Tally]) -> list[str]:
    """What is wrong, asked of the callers and of the store."""
    wrong = [text for tally in tallies for text in tally.wrong]
    accepted = Counter(receipt for tally in tallies for receipt in tally.accepted)
    wrong += [f"{receipt}: accepted {number} times" for receipt, number in accepted.items() if number > 1]
    results = claims = 0
    with Client(url, PROJECTS[0]) as client:
        with client.store.begin("local", write=False) as tx:
            for project in PROJECTS:
                rows = tx.find(Result, {"project": project, "accepted": True})
                twice = [task for task, number in Counter((r.task, r.run) for r in rows).items() if number > 1]
                wrong += [f"{task}: two accepted results" for task in twice]
                results += len(rows)
                lineage = tx.find(Claim, {"project": project})
                claims += len(lineage)
                wrong += ["a nonce was given out twice"] * (len({c.nonce for c in lineage}) != len(lineage))
        if results != len(accepted):
            wrong.append(f"{len(accepted)} results were acknowledged, {results} are there")
        granted = sum(tally.answers["ClaimNext GRANTED"] for tally in tallies)
        if claims != granted:
            wrong.append(f"{granted} claims were acknowledged, {claims} are there")
        wrong += client.verify()
    return wrong


def told(times: dict[str, list[float]], seconds: float) -> None:
    print(f"{'verb':<12}{'a second':>10}{'p50 ms':>10}{'p99 ms':>10}{'most ms':>10}")
    for verb, taken in sorted(times.items()):
        ordered = sorted(taken)
        middle, late = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
        print(
            f"{verb:<12}{len(taken) / seconds:>10.0f}{middle * 1e3:>10.1f}{late * 1e3:>10.1f}{ordered[-1] * 1e3:>10.1f}"
        )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mixed", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--agents", type=int, default=24, help="threads that claim and submit, of each process")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    wanted = parser.parse_args(argv)
    end_when_told()
    print(f"seed {wanted.seed}", flush=True)
    with PostgresServer.measured() as server:
        url = f"{server.url}?schema=mixed"
        found(url)
        pipes, crew = [], []
        for number in range(wanted.processes):
            ours, theirs = SPAWN.Pipe(duplex=False)
            given = (url, number, wanted.agents, wanted.seed, wanted.seconds, theirs)
            crew.append(SPAWN.Process(target=office, args=given, daemon=True))
            crew[-1].start()
            theirs.close()
            pipes.append(ours)
        tallies = [pipe.recv() for pipe in pipes]
        for process in crew:
            process.join()
        deadlocks = int(server.ask("SELECT sum(deadlocks) FROM pg_stat_database"))
        log = server.log.read_text(errors="replace")
        wrong = judged(url, tallies)
    if deadlocks:
        wrong.append(f"{deadlocks} deadlocks in the server: locks are not taken in one order")
    times: dict[str, list[float]] = defaultdict(list)
    answers: Counter[str] = Counter()
    for tally in tallies:
        answers += tally.answers
        for verb, taken in tally.times.items():
            times[verb] += taken
    told(times, wanted.seconds)
    for answer, number in sorted(answers.items()):
        print(f"{number:8} {answer}")
    for text, number in Counter(wrong).most_common(20):
        print(f"wrong, {number} times: {text}")
    bad = sum(number for answer, number in answers.items() if answer.split()[1] in BAD)
    numbers: dict[str, results.Figure] = {
        "processes": wanted.processes, "threads": wanted.processes * (wanted.agents + 6),
        "claims": answers["ClaimNext GRANTED"], "renewals": answers["Renew RENEWED"],
        "submits": answers["Submit ACCEPTED"], "plans": answers["Plan CREATED"], "bad_items": bad,
        "cycles_per_second": round(answers["Submit ACCEPTED"] / wanted.seconds), "deadlocks_in_server": deadlocks,
        "serialisation_errors_in_log": log.count("could not serialize"), "wrong": len(wrong),
    }  # fmt: skip
    results.tell("mixed", numbers)
    return 1 if wrong else 0
