"""A failover that loses acknowledged commits, and the agents who do not know it, in three tenants.

Three kinds of receipts come out of the lost history: of claims that were lost themselves; of claims that are still
there, but were taken over by others in the part that was lost; and of claims that nothing happened to.

The address of the lost server answers nothing from then on, as a machine without power does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from tenure import Client
from tenure.core.commands import AddTenant
from tenure.core.errors import TenureError
from tenure.core.ids import parse_receipt
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, Result, Task
from tenure.stores.sql import hosts
from tests.servers.replication import Pair
from tests.servers.valkey_replication import ValkeyPair
from tests.stores.black_hole import BlackHole

PROJECT = "lost"
EACH = 16  # tasks of each kind; the fate of half of them is looked at before the new epoch
LEASE = 3600.0
ZOMBIES = 4  # threads
TENANTS = ("local", "acme", "zeta")
DEADLINE = 10.0  # seconds that an address has to answer
LITTLE = 2.0  # for what an opening takes besides


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
        names = (
            "lost_claims", "lost_results", "refused_by_nonce", "revived_without_epoch", "tried", "accepted", "holes",
            "held_up",
        )  # fmt: skip
        words = ("acknowledged_claims_lost", "acknowledged_results_lost", "same_generation_refused_by_nonce",
                 "superseded_accepted_without_new_epoch", "zombie_tries", "zombies_accepted",
                 "black_holes", "calls_beyond_one_deadline")  # fmt: skip
        return {word: self.counts[name] for word, name in zip(words, names, strict=True)}


class Before:
    """Receipts of one tenant, by what becomes of their claims."""

    def __init__(self, kept: list[str], taken_over: list[str]) -> None:
        self.kept, self.taken_over = kept, taken_over
        self.lost: list[str] = []
        self.heirs: list[str] = []


class Story:
    """One pair of servers: work, a loss, and what its survivors try."""

    def __init__(self, pair: Pair | ValkeyPair) -> None:
        self.pair = pair
        self.url = pair.place("lost")
        self.result = Lost()
        self.zombies: dict[str, list[str]] = {}  # by tenant: receipts that must not be good once the epoch has begun

    def client(self, tenant: str, agent: str, session: str) -> Client:
        return Client(self.url, PROJECT, agent=agent, session=session, tenant=tenant, create=agent == "ann")

    def run(self) -> Lost:
        before: dict[str, Before] = {}
        with ExitStack() as open_ones:
            home = open_ones.enter_context(Client(self.url, PROJECT, create=True))
            for tenant in TENANTS[1:]:
                assert home.do(AddTenant(tenant=tenant)).ok
            clients = {
                tenant: [open_ones.enter_context(self.client(tenant, name, f"s-{name}")) for name in ("ann", "bo")]
                for tenant in TENANTS
            }
            for tenant, (ann, _) in clients.items():
                ann.init()
                for number in range(3 * EACH):
                    ann.add(f"Task {number}")
                kept, taken_over = ([self.claimed(ann) for _ in range(EACH)] for _ in range(2))
                before[tenant] = Before(kept, taken_over)
            self.pair.be_in_step()
            self.pair.hold_back()
            for tenant, (ann, bo) in clients.items():
                here = before[tenant]
                here.lost = [self.claimed(ann) for _ in range(EACH)]
                here.heirs = [self.taken_over(bo, receipt) for receipt in here.taken_over]
                accepted = [bo.submit(receipt, "the heir's") for receipt in here.heirs]
                self.result.expect(all(a.outcome == "ACCEPTED" for a in accepted), "the heirs were not accepted")
        self.pair.kill_primary()
        self.pair.promote()
        with ExitStack() as holes:
            dead = self.pair.standby if isinstance(self.pair, Pair) else self.pair.primary
            holes.enter_context(BlackHole(port=dead.port))
            self.pass_by()
            self.survive(before)
        return self.result

    def pass_by(self) -> None:
        """A process that knows nothing yet waits for the lost server once, and then no more."""
        hosts.OF_THIS_PROCESS = hosts.SilentHosts()
        self.result.counts["holes"] += 1
        for most in (DEADLINE + LITTLE, LITTLE, LITTLE):
            began = time.monotonic()
            with self.client("local", "cy", "s-cy") as cy:
                cy.status()
            seconds = time.monotonic() - began
            self.result.counts["held_up"] += seconds > most
            self.result.expect(seconds <= most, f"a call behind a black hole took {seconds:.1f} s, not {most:g}")

    def survive(self, before: dict[str, Before]) -> None:
        with ExitStack() as open_ones:
            living = {tenant: open_ones.enter_context(self.client(tenant, "cy", "s-cy")) for tenant in TENANTS}
            half = 0 if self.pair.notices_promotion else EACH // 2
            for tenant, cy in living.items():
                here = before[tenant]
                self.zombies[tenant] = []
                self.count_loss(cy, [*here.lost, *here.heirs], len(here.heirs))
                self.without_new_epoch(cy, here.lost[:half], here.taken_over[:half])
                self.zombies[tenant] += [*here.kept, *here.lost, *here.heirs, *here.taken_over[half:]]
            if not self.pair.notices_promotion:
                self.begin_epoch(self.url)
            for tenant, cy in living.items():
                self.haunt(tenant, cy)
                self.look(cy)

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
        with client.store.begin(client.engine.tenant, write=False) as tx:
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
            self.zombies[client.engine.tenant].append(again)
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

    def haunt(self, tenant: str, living: Client) -> None:
        """Zombies try everything while the living work the tasks off."""
        ended = threading.Event()
        threads = [threading.Thread(target=self.zombie, args=(tenant, number, ended)) for number in range(ZOMBIES)]
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

    def zombie(self, tenant: str, number: int, ended: threading.Event) -> None:
        """Every receipt with every verb once; then once more, until the living have done."""
        with self.client(tenant, "ann", "s-ann") as client:
            verbs: list[Callable[[str], Outcome]] = [
                client.renew, client.start, lambda receipt: client.progress(receipt, 99),
                lambda receipt: client.checkpoint(receipt, {"next_action": "haunt"}),
                lambda receipt: client.submit(receipt, "a zombie's"), client.release,
                lambda receipt: client.fail(receipt, "a zombie's"),
            ]  # fmt: skip
            while True:
                for receipt in self.zombies[tenant][number::ZOMBIES]:
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
        with client.store.begin(client.engine.tenant, write=False) as tx:
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
