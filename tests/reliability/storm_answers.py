"""What the workers of the storm were told, compared with what the store says."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tenure.core.events import Event
from tenure.core.ids import parse_receipt
from tenure.core.records import Brief, Claim, Result, Task
from tenure.engine import Engine
from tests.reliability.storm_log import GAVE_UP, Asked, asked_in, lines_of
from tests.reliability.storm_worker import PROJECT

ENDS = {"fail": "FAILED", "release": "VOLUNTARY"}
PAGE = 5000


RENEWED_AGAIN = "renewed again"


class Verdict:
    """Findings, each of a kind that `storm_check` explains, and counts."""

    def __init__(self) -> None:
        self.findings: list[tuple[str, str]] = []
        self.counts: Counter[str] = Counter()

    def find(self, kind: str, text: str) -> None:
        self.findings.append((kind, text))

    def expect(self, holds: bool, kind: str, text: str) -> None:
        if not holds:
            self.find(kind, text)


class Rows:
    """Everything that the store has, by what it is looked up by here."""

    def __init__(self, engine: Engine) -> None:
        with engine.store.begin("local", write=False) as tx:
            self.tasks = {task.id: task for task in tx.find(Task, {"project": PROJECT})}
            self.claims = {(c.task, c.generation): c for c in tx.find(Claim, {"project": PROJECT})}
            self.results = {r.id: r for r in tx.find(Result, {"project": PROJECT})}
            briefs = tx.find(Brief, {"project": PROJECT})
            where, self.events = {"project": PROJECT}, list[Event]()
            while page := tx.events(where, after=self.events[-1].sequence if self.events else 0, limit=PAGE):
                self.events += page
        # Workers put the request's id into the title.
        self.titles = Counter(brief.title for brief in briefs if brief.id in self.tasks)
        self.by_ref = {task.ref: task for task in self.tasks.values()}
        self.lineage: dict[str, list[Claim]] = defaultdict(list)
        for claim in sorted(self.claims.values(), key=lambda c: c.generation):
            self.lineage[claim.task].append(claim)
        self.claim_by_request = {c.request_id: c for c in self.claims.values() if c.request_id is not None}
        self.result_requests = Counter(r.request_id for r in self.results.values())
        self.running = {(event.task, event.generation) for event in self.events if event.new_state == "running"}
        # The ids of the commands that reported progress or left a checkpoint: workers put them into the text.
        self.marks = {mark for event in self.events if (mark := _mark(event)) is not None}

    def has(self, request: str) -> bool:
        """Whether the request has left a trace. Of renewals, starts, failures and releases none can be told."""
        return (
            request in self.claim_by_request
            or request in self.marks
            or request in self.result_requests
            or request in self.titles
        )

    def of_receipt(self, text: str) -> tuple[Task | None, Claim | None]:
        receipt = parse_receipt(text)
        task = self.by_ref.get(receipt.name)
        return task, self.claims.get((task.id, receipt.generation)) if task is not None else None


def _mark(event: Event) -> str | None:
    if event.kind == "task.progress":
        return str(event.details["step"])
    for table, _, fields in event.patch:
        if table == "checkpoint" and fields is not None and "data" in fields:
            return str(fields["data"]["by"])
    return None


class Answers:
    """Goes through the logs, then compares what only adds up over all of them."""

    def __init__(self, rows: Rows, result: Verdict) -> None:
        self.rows, self.result = rows, result
        self.renewed: Counter[str] = Counter()  # by receipt
        self.maybe_renewed: Counter[str] = Counter()  # the answer was cut off
        self.promised: dict[str, int] = defaultdict(int)  # receipt → the latest end of the lease that was told
        self.accepted: dict[str, set[tuple[str, str]]] = defaultdict(set)  # task → (receipt, result)
        self.created: set[str] = set()
        self.told: dict[str, set[str]] = defaultdict(set)  # request → what its submission was answered

    def compare_log(self, path: Path) -> None:
        everything = asked_in(path)
        last = max((place for place, asked in enumerate(everything) if asked.answer is not None), default=-1)
        for place, asked in enumerate(everything):
            self.result.counts["answers unknown"] += asked.unknown
            if asked.command["command"] == "renew":
                self.maybe_renewed[asked.command["receipt"]] += asked.unknown
            if asked.answer is None and place < last:
                self.result.find("guessed", f"{asked.id}: {asked.command['command']} was never asked about again")
            elif asked.answer is None:
                self._cut_off(asked)
            elif asked.answer.get("outcome") == GAVE_UP:
                self._gave_up(asked)
            elif "error" in asked.answer:
                self.result.find("error", f"{asked.id}: {asked.command['command']}: {asked.answer['error']}")
            else:
                self._compare(asked, asked.answer)
        mine = {a.answer["receipt"] for a in everything if a.answer and "receipt" in a.answer}
        left = {receipt for line in lines_of(path) for receipt in line.get("estate", ())} - mine
        self.result.counts["submissions by heirs"] += sum(
            a.command["command"] == "submit" and a.command["receipt"] in left for a in everything
        )

    def _cut_off(self, asked: Asked) -> None:
        """Both are right, done and not done; that it was done once at most shows in the rows."""
        done = self.rows.has(asked.id)
        self.result.counts["answers cut off"] += 1
        self.result.counts["answers cut off after their commit"] += done
        if asked.command["command"] == "renew":
            self.maybe_renewed[asked.command["receipt"]] += 1

    def _gave_up(self, asked: Asked) -> None:
        """The store has said that nothing was done, and nobody has asked again."""
        self.result.counts["given up after a definite error"] += 1
        self.result.expect(asked.unknown == 0, "guessed", f"{asked.id}: given up, though it may have been done")
        self.result.expect(
            not self.rows.has(asked.id), "untrue", f"{asked.id}: said to have had no effect, and has one"
        )

    def _compare(self, asked: Asked, answer: dict[str, Any]) -> None:
        verb, outcome = asked.command["command"], answer["outcome"]
        self.result.counts[f"{verb} {outcome}{' again' if answer.get('again') else ''}"] += 1
        if asked.unknown:
            found = "found done" if answer.get("again") else "done, or of a kind that does not tell"
            self.result.counts[f"unknown, then {found}"] += 1
        where = f"{asked.id}: {verb} was answered {outcome}"
        if outcome == "CREATED":
            self.created.add(asked.id)
        receipt = answer.get("receipt") or asked.command.get("receipt")
        if receipt is None:
            return
        task, claim = self.rows.of_receipt(receipt)
        if task is None or claim is None or claim.nonce != parse_receipt(receipt).nonce:
            self.result.find("lost", f"{where}: there is no claim {receipt.partition(':')[0]} like that")
            return
        if "lease_until" in answer and not answer.get("again"):
            self.promised[receipt] = max(self.promised[receipt], answer["lease_until"])
        if outcome == "STALE_GENERATION":
            superseded = claim.generation < answer["current_generation"] <= task.generation
            self.result.expect(superseded, "stale", f"{where}, and nothing had superseded it")
        if verb == "submit":
            self._compare_result(asked, answer, task, claim, where)
        elif answer["outcome"] in ("GRANTED", "RENEWED", "OK"):
            self._compare_effect(asked, verb, task, claim, where)

    def _compare_effect(self, asked: Asked, verb: str, task: Task, claim: Claim, where: str) -> None:
        expect = self.result.expect
        if verb == "claim_next":
            expect(claim.request_id == asked.id, "lost", f"{where}: the claim is of the request {claim.request_id}")
        elif verb == "renew":
            self.renewed[asked.command["receipt"]] += 1
        elif verb == "start":
            expect((task.id, claim.generation) in self.rows.running, "lost", f"{where}: it never ran")
        elif verb in ("progress", "checkpoint"):
            expect(asked.id in self.rows.marks, "lost", f"{where}: there is no such event")
        else:
            expect(claim.reason == ENDS[verb], "lost", f"{where}: the claim ended by {claim.reason}")

    def _compare_result(self, asked: Asked, answer: dict[str, Any], task: Task, claim: Claim, where: str) -> None:
        self.told[asked.id].add(answer["outcome"])
        kept = self.rows.results.get(answer.get("result", ""))
        if answer["outcome"] == "ACCEPTED":
            self.accepted[task.ref].add((asked.command["receipt"], answer["result"]))
            there = kept is not None and kept.accepted and kept.data == asked.command["data"]
            there = there and (kept.task, kept.generation) == (task.id, claim.generation)
            self.result.expect(there, "lost", f"{where}: there is no such result")
            open_still = claim.reason in ("COMPLETED", "EXPIRED")
            self.result.expect(open_still, "stale", f"{where}, though the claim had ended by {claim.reason}")
            return
        self.result.counts["submissions refused"] += 1
        if "result" in answer:
            self.result.expect(kept is not None and not kept.accepted, "lost", f"{where}: the result was not kept")

    def compare_totals(self) -> None:
        expect, rows = self.result.expect, self.rows
        for ref, takes in self.accepted.items():
            expect(len(takes) == 1, "double", f"{ref}: accepted for {sorted(takes)}")
        for receipt, number in self.renewed.items():
            task, claim = rows.of_receipt(receipt)
            kept = claim.renewals if claim is not None else 0
            most = number + self.maybe_renewed[receipt]
            name = receipt.partition(":")[0]
            expect(number <= kept, "lost", f"{name}: {number} renewals acknowledged, {kept} counted")
            expect(kept <= most, RENEWED_AGAIN, f"{name}: {most} renewals sent, {kept} counted")
        for receipt, until in self.promised.items():
            task, claim = rows.of_receipt(receipt)
            if task is not None and claim is not None and claim.reason == "EXPIRED":
                name = f"{task.ref}@{claim.generation}"
                expect(
                    (claim.released_at or 0) >= until, "early", f"{name}: ended {claim.released_at}, promised {until}"
                )
        for request in self.created:
            expect(rows.titles[request] > 0, "lost", f"{request}: its task was acknowledged and is not there")
        for request, number in (*rows.titles.items(), *rows.result_requests.items()):
            expect(number == 1, "double", f"{request}: done {number} times")
        for row in rows.results.values():
            refusals = self.told[row.request_id or ""] - {"ACCEPTED"} if row.accepted else ()
            expect(not refusals, "falsely stale", f"{row.request_id}: accepted, and its sender was told {refusals}")
