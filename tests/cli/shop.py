"""A small project to look at: three agents at work, a hand-over with a refused result, a question, a dead letter."""

from __future__ import annotations

import time
from pathlib import Path

from tenure.client import Client
from tenure.core.commands import NewTask
from tenure.testing.clock import FakeClock
from tenure.testing.factories import Dice

PLAN = (
    NewTask(title="Design the schema", name="schema", track="B", priority="high"),
    NewTask(title="Write the API", name="api", track="C", depends_on=("schema",)),
    NewTask(title="Build the sign-in page", name="page", track="D", depends_on=("schema",)),
    NewTask(title="Import old accounts", name="import", track="B", depends_on=("schema",)),
    NewTask(title="Test sign-in end to end", name="tests", track="F", depends_on=("api", "page")),
    NewTask(title="Write the guide", name="guide", track="G", depends_on=("api",)),
    NewTask(title="Ship it", name="ship", track="E", depends_on=("tests", "guide", "import"), priority="critical"),
)
LEASE = 3600.0


class Shop:
    """`client("ann")` speaks as that agent; time moves by `clock.advance`."""

    def __init__(self, path: Path, clock: FakeClock, project: str = "shop") -> None:
        self.path, self.clock, self.project = path, clock, project
        self.dice = Dice()
        self.clients: dict[str, Client] = {}
        self.mia = self.client("mia")
        self.mia.init(lead="off")  # ann leads by her own command, below

    def client(self, name: str) -> Client:
        if name not in self.clients:
            self.clients[name] = Client(
                str(self.path), self.project, agent=name, session=f"{name}-1", clock=self.clock, random=self.dice,
                user=name if name == "mia" else None, create=True,
            )  # fmt: skip
        return self.clients[name]

    def close(self) -> None:
        for client in self.clients.values():
            client.close()


def just_now(seconds: float = 600.0) -> FakeClock:
    """A clock that stands so long before the host's: what is done by it lies in the past for everybody else."""
    return FakeClock(time.time_ns() // 1000 - round(seconds * 1e6))


def busy_shop(path: Path, clock: FakeClock) -> Shop:
    """C-001 has gone from bo, whose lease ran out, to cy; bo's late result was refused."""
    shop = Shop(path, clock)
    mia = shop.mia
    mia.plan(PLAN, title="Accounts")
    ann, bo, cy, dee = (shop.client(name) for name in ("ann", "bo", "cy", "dee"))
    for agent, kind in ((ann, "claude"), (bo, "codex"), (cy, "gemini"), (dee, "claude")):
        agent.register(type=kind)
    clock.advance(seconds=2)
    first = ann.claim(lease=LEASE)
    clock.advance(seconds=40)
    ann.submit(str(first.receipt), {"tables": 7}, "seven tables, with indexes")
    lost = bo.claim(lease=60)
    page = ann.claim(lease=LEASE)
    clock.advance(seconds=75)
    ann.progress(str(page.receipt), 40, "the form works")
    taken = cy.claim("C-001", lease=LEASE)
    clock.advance(seconds=20)
    bo.submit(str(lost.receipt), {"late": True}, "what I had")
    cy.progress(str(taken.receipt), 75, "the last endpoint")
    cy.checkpoint(str(taken.receipt), {"next": "write tests", "files": ["api.py"]})
    mia.add("Find out why sign-in is slow", track="B")
    asked = dee.claim("B-003", lease=LEASE)
    dee.ask(str(asked.receipt), "Which region do you mean?")
    mia.add("Send a mail", track="C", max_attempts=1)
    failed = dee.claim("C-002", lease=LEASE)
    dee.fail(str(failed.receipt), "the mail server says no", "task")
    mia.add("Tell everybody", track="G", after=["C-002"])
    mia.stop_line("track:F", "the test machine is down")
    ann.lead(lease=LEASE)
    clock.advance(seconds=12)
    return shop
