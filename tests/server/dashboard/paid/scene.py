"""A project with money, checks, artifacts and work that comes back: three days of it, and something open of each."""

from __future__ import annotations

from pathlib import Path

from tenure.client import Client
from tenure.core.commands import NewTask, Totals
from tenure.core.records import Watch
from tests.cli.shop import LEASE, Shop, just_now
from tests.server.dashboard.scene import HOSTILE, SNEAKY, store_sneaky

PRESS = "press"
SMALL, MIDDLE, TOP = "claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"
REVIEW = {"validation": "review"}
TESTS = {"validation": "test-pass", "settings": {"command": "unit"}}
CHAPTERS = (
    NewTask(title="Gather the sources", name="sources", track="A"),
    NewTask(title="Write the chapter", name="chapter", track="B", depends_on=("sources",), output=REVIEW),
    NewTask(title="Draw the maps", name="maps", track="C", depends_on=("sources",)),
    NewTask(title="Set the type", name="type", track="D", depends_on=("chapter", "maps")),
)


def busy_week(path: Path) -> Shop:
    """Paid work since three days, of which the last tasks wait for a person, a validator, or money."""
    clock = just_now(72 * 3600)
    shop = Shop(path, clock, PRESS)
    mia, ann, bo = shop.mia, shop.client("ann"), shop.client("bo")
    ann.register(type="claude")
    bo.register(type="codex")
    planned = mia.plan(CHAPTERS, title="The atlas")
    dag = str((planned.tasks or ())[0]["dag"])
    mia.set_budget("project", usd="40", period="month", default_estimate="0.8")
    mia.set_budget("agent:bo", usd="9", throttle=True)
    mia.set_budget(f"dag:{dag}", tokens=400_000)
    mia.set_schedule("nightly", "0 3 * * *", NewTask(title="Read the news of {tick.date}"), zone="Europe/Berlin")
    mia.set_schedule(
        "proofs",
        "30 9 * * 1-5",
        (NewTask(title="Print proofs", name="a"), NewTask(title="Read them", name="b", depends_on=("a",))),
    )
    mia.set_trigger(
        "mend", "task.dead_lettered", NewTask(title="Find out what broke {event.key}"), where={"event.track": "Z"}
    )
    mia.set_trigger("orders", "webhook", NewTask(title="Answer the order"), signature="github", secret="s" * 32)
    mia.set_watch(Watch(least=3))
    for turn in range(24):
        _page(shop, turn)
    _open_ends(shop)
    return shop


def _page(shop: Shop, turn: int) -> None:
    """A page is written, by a cheap model mostly, three hours after the last; each sixth fails once."""
    writer = shop.client(("ann", "bo")[turn % 2])
    added = shop.mia.add(
        f"Write page {turn + 1}", track="X", type="text", tags=("page",), constraints={"estimated_tokens": 20_000}
    )
    shop.clock.advance(seconds=2.6 * 3600)
    receipt = str(writer.claim(str((added.task or {})["key"]), lease=LEASE).receipt)
    shop.clock.advance(seconds=600)
    model = (SMALL, SMALL, MIDDLE, SMALL, SMALL, TOP, SMALL)[turn % 7]
    spent = Totals(
        model=model, fresh=14_000 + 900 * (turn % 7), cached=80_000, output=3_000 + 150 * turn, duration=420.0
    )
    if turn % 6 == 5:
        writer.usage(receipt, spent.model, fresh=9_000, output=800)
        writer.fail(receipt, "the ink ran out", "task", retry_after=1)
        return
    writer.submit(receipt, {"words": 400 + turn}, f"page {turn + 1}", usage=[spent])


def _open_ends(shop: Shop) -> None:
    mia, ann, bo = shop.mia, shop.client("ann"), shop.client("bo")
    shop.clock.now = just_now(900).now
    sources = str(ann.claim("A-001", lease=LEASE).receipt)
    ann.put_artifact(sources, "sources/list.csv", b"title,year\nAtlas,1595\n", type="text/csv")
    ann.put_artifact(sources, "transcript.txt", b"found it\n" * 900, type="text/plain")
    ann.submit(sources, {"found": 12}, "twelve sources", usage=[Totals(model=SMALL, fresh=60_000, output=9_000)])
    first = str(bo.claim("B-001", lease=LEASE).receipt)
    bo.submit(
        first, {"text": "It was long ago."}, "a first draft", usage=[Totals(model=MIDDLE, fresh=90_000, output=20_000)]
    )
    shop.clock.advance(seconds=60)
    mia.reject("B-001", "The river is missing, and so is its source.")
    shop.clock.advance(seconds=400)
    second = str(ann.claim("B-001", lease=LEASE).receipt)
    ann.put_artifact(second, "chapter.md", b"# The river\n\nIt rises in the hills.\n", type="text/markdown")
    ann.submit(
        second,
        {"text": "It rises in the hills."},
        "with the river",
        usage=[Totals(model=MIDDLE, fresh=120_000, output=31_000)],
    )
    checked = mia.add("Bind the book", track="E", output=TESTS)
    bound = str(bo.claim(str((checked.task or {})["key"]), lease=LEASE).receipt)
    bo.submit(bound, {"spine": "straight"}, "bound")
    held = mia.add("Colour the maps", track="C", type="text", constraints={"max_cost_usd": "2.50"})
    painting = ann.claim(str((held.task or {})["key"]), lease=LEASE)
    ann.usage(str(painting.receipt), TOP, fresh=60_000, output=16_000)


def asked_for_review(client: Client, title: str, **fields: object) -> str:
    """A task whose result waits for a person; its key."""
    key = str((client.add(title, output=REVIEW, **fields).task or {})["key"])
    client.submit(str(client.claim(key).receipt), {"draft": title}, f"{title}: a draft")
    return key


MASKED = "&lt;img src=x onerror=alert(4)&gt;#%2e%2e;a.html"  # of what a name may have, the worst


def hostile_money(path: Path, project: str) -> str:
    """A project whose budgets, verdicts, artifacts and schedules are an attack on whoever shows them; a task's key."""
    store_sneaky(path, project)
    with Client(str(path), project, agent=SNEAKY, session=f"{SNEAKY}-1") as attacker:
        attacker.register(type=SNEAKY)
        added = attacker.add(HOSTILE, output=REVIEW, tags=(SNEAKY,), constraints={"max_cost_usd": "9"})
        key = str((added.task or {})["key"])
        planned = attacker.plan([NewTask(title=HOSTILE, name="a")], title=HOSTILE)
        dag = str((planned.tasks or ())[0]["dag"])
        for scope in ("project", f"agent:{SNEAKY}", f"dag:{dag}"):
            attacker.set_budget(scope, usd="50")
        receipt = str(attacker.claim(key).receipt)
        attacker.usage(receipt, SNEAKY, fresh=10, cost_usd="0.5")
        attacker.put_artifact(receipt, MASKED, b"<script>alert(5)</script>", type="text/html")
        attacker.submit(receipt, {HOSTILE: HOSTILE}, HOSTILE)
        attacker.set_schedule("h", "0 0 1 1 *", NewTask(title=HOSTILE), title=HOSTILE)
        attacker.set_trigger("h", "task.noted", NewTask(title=HOSTILE), where={"event.agent": HOSTILE})
        attacker.set_watch(Watch(least=1))
    with Client(str(path), project, user=HOSTILE) as person:
        person.pause_schedule("h", HOSTILE)
        person.reject(key, HOSTILE)
    return key
