"""After the storm: what is left is worked off, and the store must agree with itself and with what workers were told.

`lost`: an acknowledged answer of which the store knows nothing. `double`: two acceptances of one task in one run.
`stale`: an effect under a claim that another had superseded, or a refusal without a reason. `early`: a take-over
before the end of a lease that was promised. `falsely stale`: an accepted result whose sender was told a refusal.
`untrue`: an error that said "nothing was done" of something done. `guessed`: a sender that did not ask again about an
answer it had not got. `gap`: generations, nonces or versions that do not line up. `limbo`: a
task of which nobody knows what comes next.
"""

from __future__ import annotations

import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from tenure.core import commands
from tenure.core.records import DeadLetter, Result, Task
from tenure.engine import Engine
from tenure.testing.factories import reading
from tests.reliability.storm_answers import Answers, Rows, Verdict
from tests.reliability.storm_worker import PROJECT, Worker, open_engine

HELD = ("claimed", "running")
SHARED = ("task.claimed", "task.started", "task.completed")  # may be written side by side
HOLDERS_EVENTS = ("task.started", "task.progress", "task.checkpoint", "task.completed", "task.failed", "task.released")


def verdict(folder: Path) -> Verdict:
    result = Verdict()
    engine = open_engine(folder)
    for wrong in engine.store.check():
        result.find("damage", wrong)
    wait_for_leases(engine)
    look_for_limbo(engine, result)
    drain(folder, result)
    rows = Rows(engine)
    check_rows(rows, result)
    check_events(rows, result)
    answers = Answers(rows, result)
    for path in sorted((folder / "logs").iterdir()):
        answers.compare_log(path)
    answers.compare_totals()
    verify(engine, result)
    engine.store.close()
    return result


def verify(engine: Engine, result: Verdict) -> None:
    """What the product itself would say."""
    try:
        findings = engine.verify()
    except Exception as error:  # noqa: BLE001  # what breaks the verifier is a finding, and the others still count
        findings = [f"{type(error).__name__}: {error}"]
    for finding in findings:
        result.find("verify", finding)


# --- the end of the storm -----------------------------------------------------------------------------------


def wait_for_leases(engine: Engine) -> None:
    with engine.store.begin("local", write=False) as tx:
        held = tx.find(Task, {"project": PROJECT, "state": HELD})
    last = max((task.lease_until or 0 for task in held), default=0)
    time.sleep(max(0.0, last / 1e6 - time.time()) + 0.01)


def look_for_limbo(engine: Engine, result: Verdict) -> None:
    """Nobody works any more and every lease is over: all is done, or waits for something that has a name."""
    with reading(engine, (PROJECT,)) as work:
        tasks = work.find(Task, {"project": PROJECT})
        letters = {(letter.task, letter.run) for letter in work.find(DeadLetter, {"project": PROJECT})}
        ready = {
            head.id
            for lane in work.tx.lanes(PROJECT)
            for head in work.tx.ready(PROJECT, lane, limit=len(tasks))
            if not work.is_changed(Task, PROJECT, head.id)
        }
    for task in tasks:
        result.counts[f"tasks {task.state}, when the storm was over"] += 1
        fine = (
            task.state == "completed"
            or (task.state == "ready" and task.lane is not None)
            or (task.state == "retrying" and task.retry_at is not None)
            or (task.state == "dead_lettered" and (task.id, task.run) in letters)
        )
        result.expect(fine, "limbo", f"{task.ref} is {task.state}, lane {task.lane}, retry at {task.retry_at}")
    result.expect(ready <= {t.id for t in tasks if t.state == "ready"}, "limbo", "the ready index names others")


def drain(folder: Path, result: Verdict) -> None:
    """One last worker, whom nobody kills, brings every task to its end."""
    last = Worker(folder, slot=0, life=10**9, seed="drain")
    while True:
        with reading(last.engine, (PROJECT,)) as work:
            left = work.find(Task, {"project": PROJECT, "state": ("ready", "retrying", "dead_lettered", *HELD)})
        if not left:
            break
        dead = [task.ref for task in left if task.state == "dead_lettered"]
        for ref in dead:
            last.ask(commands.Retry(project=PROJECT, task=ref, request_id=last.new_id()))
        (granted,) = last.ask(last.claim())
        due = min((task.retry_at for task in left if task.retry_at is not None), default=None)
        if granted.receipt is not None:
            last.ask(last.submission(granted.receipt))
        elif due is not None:
            time.sleep(max(0.0, due / 1e6 - time.time()))
        elif not dead:
            result.find("limbo", f"nobody is given {', '.join(f'{t.ref} ({t.state})' for t in left[:5])}: {granted}")
            break
    last.close()


# --- the store by itself ------------------------------------------------------------------------------------


def check_rows(rows: Rows, result: Verdict) -> None:
    result.counts["claims"] = len(rows.claims)
    nonces = {claim.nonce for claim in rows.claims.values()}
    result.expect(len(nonces) == len(rows.claims), "gap", "a nonce was given out twice")
    result.expect(len({c.epoch for c in rows.claims.values()}) <= 1, "gap", "the epoch changed")
    result.expect(
        len(rows.claim_by_request) == sum(c.request_id is not None for c in rows.claims.values()),
        "double", "one request to claim was granted twice",
    )  # fmt: skip
    accepted: dict[tuple[str, int], list[Result]] = defaultdict(list)
    for row in rows.results.values():
        if row.accepted:
            accepted[row.task, row.run].append(row)
    result.counts["accepted"] = sum(map(len, accepted.values()))
    result.counts["accepted late, after the lease"] = sum(row.late for row in rows.results.values() if row.accepted)
    for task in rows.tasks.values():
        lineage = rows.lineage[task.id]
        numbers = [claim.generation for claim in lineage]
        result.expect(numbers == list(range(1, task.generation + 1)), "gap", f"{task.ref} has generations {numbers}")
        result.expect(task.state == "completed", "limbo", f"{task.ref} is {task.state} after the drain")
        for one, next_one in pairwise(lineage):
            over = one.released_at is not None and one.released_at <= next_one.acquired_at
            result.expect(over, "early", f"{task.ref}: generation {next_one.generation} began before the last ended")
        takes = accepted[task.id, task.run]
        result.expect(len(takes) == 1, "double" if takes else "lost", f"{task.ref} has {len(takes)} accepted results")
        for take in takes:
            result.expect(
                take.generation == task.generation, "stale", f"{task.ref}: generation {take.generation} was accepted"
            )
    for name, run in accepted:
        task = rows.tasks[name]
        result.expect(
            run == task.run, "double", f"{task.ref}: run {run} had an accepted result, and run {task.run} began"
        )


def check_events(rows: Rows, result: Verdict) -> None:
    """Versions without gap; and nothing of a holder's after the claim that superseded it."""
    result.counts["events"] = len(rows.events)
    versions: dict[str, int] = defaultdict(int)
    generations: dict[str, int] = defaultdict(int)
    last = last_alone = 0
    for event in rows.events:
        # Those who share a project have read the time before they stand in line; everybody else has it for himself.
        may_share = event.kind in SHARED
        since = last_alone if may_share else last
        result.expect(event.time >= since, "gap", f"event {event.sequence} is older than one before it")
        last = max(last, event.time)
        last_alone = last_alone if may_share else event.time
        if event.task is None:
            continue
        versions[event.task] += 1
        due = versions[event.task]
        result.expect(event.version == due, "gap", f"{event.key}: version {event.version} where {due} was due")
        if event.kind == "task.claimed":
            generations[event.task] = event.generation or 0
        elif event.kind in HOLDERS_EVENTS:
            result.expect(
                event.generation == generations[event.task],
                "stale", f"{event.key}: {event.kind} of generation {event.generation} under {generations[event.task]}",
            )  # fmt: skip
    for task in rows.tasks.values():
        result.expect(task.version == versions[task.id], "gap", f"{task.ref}: version {task.version} without its event")
