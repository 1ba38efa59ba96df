"""A project with something on every page: an hour of finished work, a team at work, mail, cost, a dead letter."""

from __future__ import annotations

from pathlib import Path

from tenure.client import Client
from tenure.core.commands import NewTask, Totals
from tenure.core.records import Agent, Session, replace
from tenure.core.tenant_records import HOME
from tenure.stores.port import Change
from tests.cli.shop import LEASE, Shop, busy_shop, just_now

HOSTILE = "<img src=x onerror=alert(1)>"
SNEAKY = "<script>alert(3)"  # a name may have no space and no slash
MODELS = ("claude-sonnet-4-5", "gpt-5-codex", "gemini-2.5-pro")


def busy_hour(path: Path) -> Shop:
    """The shop of the command line's own tests, after most of an hour of work."""
    clock = just_now(3700)
    shop = Shop(path, clock)
    for week in range(18):
        shop.mia.add(f"Import the orders of week {week + 1}", track="AXZ"[week % 3], tags=("import",))
    for turn in range(20):  # two fail, and are tried again
        worker = shop.client(("ann", "bo", "cy")[turn % 3])
        clock.advance(seconds=20 + 7 * (turn % 5))
        receipt = str(worker.claim(lease=LEASE).receipt)
        clock.advance(seconds=60 + 37 * (turn % 4))
        if turn in (5, 12):
            worker.fail(receipt, "the database was locked", "environment", retry_after=1)
            continue
        spent = Totals(
            model=MODELS[turn % 3], fresh=4000 + 900 * turn, cached=90_000, output=2100 + 70 * turn,
            cost_usd=f"0.{12 + turn}", duration=80.0,
        )  # fmt: skip
        worker.submit(receipt, {"orders": 40 + turn}, f"{40 + turn} orders", usage=[spent])
    clock.now = just_now(160).now
    for client in shop.clients.values():
        client.close()
    later = busy_shop(path, clock)
    ann, mia = later.client("ann"), later.mia
    mia.send("Deploy freeze from six on: finish what you hold.", to="@all")
    ann.send("The form needs a field for the region. Who owns the API?", to="cy")
    later.client("cy").send("I do; it is on its way.", to="ann")
    return later


def store_sneaky(path: Path, project: str) -> None:
    """An agent and a session under a name that an earlier version took, and that a new one may not have."""
    with Client(str(path), project, agent="sneaky", session="sneaky-1", create=True) as client:
        client.init()
        client.register()
        with client.store.begin(HOME, write=True) as tx:
            (agent,), (session,) = tx.load(Agent, [(project, "sneaky")]), tx.load(Session, [(project, "sneaky-1")])
            tx.save([
                Change(agent, None), Change(None, replace(agent, id=SNEAKY)), Change(session, None),
                Change(None, replace(session, id=f"{SNEAKY}-1", agent=SNEAKY)),
            ])  # fmt: skip


def hostile_work(path: Path, project: str) -> str:
    """A task whose every text, and whose holder, are an attack on whoever shows them; its key."""
    store_sneaky(path, project)
    with Client(str(path), project, agent=SNEAKY, session=f"{SNEAKY}-1") as attacker:
        attacker.register(type=SNEAKY, capabilities=(SNEAKY,))
        added = attacker.add(
            HOSTILE, description=f"{HOSTILE}<script>alert(2)</script>", tags=(SNEAKY,), type=SNEAKY, track="X",
            metadata={HOSTILE: HOSTILE}, spec={"prompt": HOSTILE}, max_attempts=2,
        )  # fmt: skip
        key = str((added.task or {})["key"])
        claim = attacker.claim(key)
        attacker.progress(str(claim.receipt), 50, HOSTILE)
        attacker.checkpoint(str(claim.receipt), {HOSTILE: HOSTILE})
        attacker.usage(str(claim.receipt), SNEAKY, fresh=10, cost_usd="0.5")
        attacker.fail(str(claim.receipt), HOSTILE, retry_after=0)
        attacker.submit(str(attacker.claim(key).receipt), {HOSTILE: HOSTILE}, HOSTILE)
        attacker.send(HOSTILE, to="@all")
        attacker.note(key, HOSTILE)
        lost = attacker.add(HOSTILE, track="X", max_attempts=1)
        attacker.fail(str(attacker.claim(str((lost.task or {})["key"])).receipt), HOSTILE)
        attacker.plan(
            [NewTask(title=HOSTILE, name="a"), NewTask(title=HOSTILE, name="b", depends_on=("a",))], title=HOSTILE
        )
        return key


def wide_dag(client: Client, width: int = 20, depth: int = 15, track: str = "A") -> str:
    """`width` × `depth` tasks in layers, each waiting for two of the layer before; the dag's id."""
    tasks = []
    for layer in range(depth):
        for part in range(width):
            needs = {f"s{layer - 1}-{part}", f"s{layer - 1}-{(part * 3 + 1) % width}"} if layer else set()
            title = f"Step {layer + 1}, part {part + 1}"
            tasks.append(NewTask(title=title, name=f"s{layer}-{part}", track=track, depends_on=tuple(sorted(needs))))
    outcome = client.plan(tasks, title=f"{width * depth} steps")
    return str((outcome.tasks or ())[0]["dag"])
