"""A failover that loses acknowledged commits, and the agents who do not know it.

Three kinds of receipts come out of the lost history: of claims that were lost themselves; of claims that are still
there, but were taken over by others in the part that was lost; and of claims that nothing happened to.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable

from tenure import Client
from tenure.core.errors import TenureError
from tenure.core.ids import parse_receipt
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Result, Task
from tests.servers.replication import Pair
from tests.servers.valkey_replication import ValkeyPair

PROJECT = "lost"
EACH = 16  # tasks of each kind; the fate of half of them is looked at before the new epoch
LEASE = 3600.0
ZOMBIES = 4  # threads


class Lost:
    """What was counted in one lossy failover, or in several."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.findings: list[str] = []

    def __iadd__(self, other: Lost) -> Lost:
        self.counts += other.counts
        self.findings += other.findings
        return self

    def expect(self, holds: bool, text: str) -> None:
        if not holds:
            self.findings.append(text)

    def told(self) -> dict[str, int]:
        names = ("lost_claims", "lost_results", "refused_by_nonce", "revived_without_epoch", "tried", "accepted")
        words = ("acknowledged_claims_lost", "acknowledged_results_lost", "same_generation_refused_by_nonce",
                 "superseded_accepted_without_new_epoch", "zombie_tries", "zombies_accepted")  # fmt: skip
        return {word: self.counts[name] for word, name in zip(words, names, strict=True)}


class Story:
    """One pair of servers: work, a loss, and what its survivors try."""

    def __init__(self, pair: Pair | ValkeyPair) -> None:
        self.pair = pair
        self.result = Lost()
        self.zombies: list[str] = []  # receipts that must not be good any more once the new epoch has begun

    def run(self) -> Lost:
        url = self.pair.place("lost")
        with (
            Client(url, PROJECT, agent="ann", session="s-ann", create=True) as ann,
            Client(url, PROJECT, agent="bo") as bo,
        ):
            ann.init()
            for number in range(3 * EACH):
                ann.add(f"Task {number}")
            kept = [self.claimed(ann) for _ in range(EACH)]
            taken_over = [self.claimed(ann) for _ in range(EACH)]
            self.pair.be_in_step()
            self.pair.hold_back()
            lost = [self.claimed(ann) for _ in range(EACH)]
            heirs = [self.taken_over(bo, receipt) for receipt in taken_over]
            accepted = [bo.submit(receipt, "the heir's") for receipt in heirs]
            self.result.expect(all(a.outcome == "ACCEPTED" for a in accepted), "the heirs were not accepted")
        self.pair.kill_primary()
        self.pair.promote()
        with Client(url, PROJECT, agent="cy", session="s-cy") as cy:
            self.count_loss(cy, [*lost, *heirs], len(accepted))
            half = 0 if self.pair.notices_promotion else EACH // 2
            self.without_new_epoch(cy, lost[:half], taken_over[:half])
            self.zombies += [*kept, *lost, *heirs, *taken_over[half:]]
            if not self.pair.notices_promotion:
                self.begin_epoch(url)
            self.haunt(url, cy)
            self.look(cy)
        return self.result

    def claimed(self, client: Client, task: str | None = None) -> str:
        claim = client.claim(task, lease=LEASE)
        assert claim.receipt is not None, claim
        return claim.receipt

    def taken_over(self, heir: Client, receipt: str) -> str:
        task = parse_receipt(receipt).name
        assert heir.recover(task, "its holder is silent").ok
        return self.claimed(heir, task)

    def count_loss(self, client: Client, receipts: list[str], results: int) -> None:
        """What was acknowledged and is not there: without a loss this would prove nothing."""
        with client.store.begin("local", write=False) as tx:
            refs = {task.id: task.ref for task in tx.find(Task, {"project": PROJECT})}
            claims = {(refs[claim.task], claim.generation) for claim in tx.find(Claim, {"project": PROJECT})}
            there = tx.tally(Result, {"project": PROJECT, "accepted": True}, results)
        asked = (parse_receipt(receipt) for receipt in receipts)
        gone = sum((receipt.name, receipt.generation) not in claims for receipt in asked)
        self.result.counts["lost_claims"] += gone
        self.result.counts["lost_results"] += results - there
        self.result.expect(gone > 0 and there < results, "the standby had everything: nothing was lost")

    def without_new_epoch(self, client: Client, lost: list[str], taken_over: list[str]) -> None:
        """A lost claim's number is given out again, and the nonce tells the two apart.

        A claim that was taken over in the lost part is the current one again: nothing in the store knows better.
        """
        for receipt in lost:
            old = parse_receipt(receipt)
            again = self.claimed(client, old.name)
            self.zombies.append(again)
            same = parse_receipt(again).generation == old.generation
            self.result.expect(same, f"{old.name}: generation {old.generation} was not given out twice")
            answers = [client.renew(receipt), client.progress(receipt, 50), client.submit(receipt, "a zombie's")]
            self.result.counts["refused_by_nonce"] += same and not any(answer.ok for answer in answers)
            for answer in answers:
                self.tried(receipt, answer)
        for receipt in taken_over:
            self.result.counts["revived_without_epoch"] += client.submit(receipt, "taken over").outcome == "ACCEPTED"

    def begin_epoch(self, url: str) -> None:
        """As whoever has failed over must do it."""
        command = [sys.executable, "-m", "tenure", "db", "new-epoch", "-m", "failover to a standby that was behind"]
        with tempfile.TemporaryDirectory() as folder:
            # nothing of ours: where an agent runs this, its variables would say that an agent is asking
            env = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
            env |= {"TENURE_URL": url, "HOME": folder}
            subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)

    def haunt(self, url: str, living: Client) -> None:
        """Zombies try everything while the living work the tasks off."""
        ended = threading.Event()
        threads = [threading.Thread(target=self.zombie, args=(url, number, ended)) for number in range(ZOMBIES)]
        for thread in threads:
            thread.start()
        try:
            while (claim := living.claim(lease=LEASE)).receipt is not None:
                answer = living.submit(claim.receipt, "the living's")
                self.result.expect(answer.outcome == "ACCEPTED", f"the living were told {answer.outcome}")
        finally:
            ended.set()
            for thread in threads:
                thread.join()

    def zombie(self, url: str, number: int, ended: threading.Event) -> None:
        """Every receipt with every verb once; then once more, until the living have done."""
        with Client(url, PROJECT, agent="ann", session="s-ann") as client:
            verbs: list[Callable[[str], Outcome]] = [
                client.renew, client.start, lambda receipt: client.progress(receipt, 99),
                lambda receipt: client.checkpoint(receipt, {"next_action": "haunt"}),
                lambda receipt: client.submit(receipt, "a zombie's"), client.release,
                lambda receipt: client.fail(receipt, "a zombie's"),
            ]  # fmt: skip
            while True:
                for receipt in self.zombies[number::ZOMBIES]:
                    for verb in verbs:
                        try:
                            self.tried(receipt, verb(receipt))
                        except TenureError as error:
                            self.result.findings.append(f"{receipt.partition(':')[0]}: {error.code}: {error}")
                if ended.is_set():
                    return

    def tried(self, receipt: str, answer: Outcome) -> None:
        self.result.counts["tried"] += 1
        if answer.ok:
            self.result.counts["accepted"] += 1
            self.result.findings.append(f"{receipt.partition(':')[0]}: a zombie was told {answer.outcome}")

    def look(self, client: Client) -> None:
        with client.store.begin("local", write=False) as tx:
            tasks = tx.find(Task, {"project": PROJECT})
            results = Counter(r.task for r in tx.find(Result, {"project": PROJECT, "accepted": True}))
            ghosts = [r for r in tx.find(Result, {"project": PROJECT, "accepted": True}) if r.data == "a zombie's"]
        for task in tasks:
            done = task.state == "completed" and results[task.id] == 1
            self.result.expect(done, f"{task.ref}: {task.state}, {results[task.id]} accepted results")
        self.result.expect(not ghosts, f"{len(ghosts)} results of zombies are in the store")
        self.result.findings += client.verify()


def lose(pair: Pair | ValkeyPair) -> Lost:
    """What became of one pair whose standby was behind when its primary was killed."""
    return Story(pair).run()
