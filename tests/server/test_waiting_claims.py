"""Who waits is woken a few at a time, in the order of coming, and nobody is forgotten."""

import asyncio
from contextlib import suppress

import pytest

from tenure.core.commands import OWNER, ClaimNext, Principal
from tenure.core.errors import NotSignedIn
from tenure.core.events import Event
from tenure.core.outcomes import Outcome
from tenure.server import waiting_claims
from tenure.server.waiting_claims import WaitingClaims


class Store:
    """Tasks that only agents with the right first letter may take, and how often it was asked."""

    def __init__(self) -> None:
        self.tasks: list[str] = []
        self.asked = 0
        self.waiting_claims = WaitingClaims(self.claim, self.is_still_valid, [])
        self.ended: set[str | None] = set()  # keys
        self.denied: set[str] = set()  # agents
        self.looked: list[str] = []  # the agents in whose name it was looked
        self.answers_late = False  # what comes after a look is not in its answer

    async def is_still_valid(self, principal):
        return principal.key not in self.ended

    async def claim(self, command, principal):
        self.asked += 1
        await asyncio.sleep(0)
        answer = self.found(command)
        self.looked.append(command.agent)
        if self.answers_late:
            await asyncio.sleep(0)
        return answer

    def found(self, command):
        if command.agent in self.denied:
            return Outcome(outcome="DENIED_AGENT")
        for task in self.tasks:
            if command.agent.startswith(task):
                self.tasks.remove(task)
                return Outcome(outcome="GRANTED", receipt=task)
        return Outcome(outcome="NO_TASK", counts={"ready_for_others": len(self.tasks)})

    def add(self, *tasks: str) -> None:
        self.tasks += tasks
        self.waiting_claims.hear([_event("task.ready", "ready") for _ in tasks])

    def wait(self, agent: str, seconds: float = 30.0) -> asyncio.Task[Outcome]:
        command = ClaimNext(project="p", agent=agent, session=agent)
        return asyncio.ensure_future(self.waiting_claims.claim(command, OWNER, seconds))


def _event(kind: str, new_state: str | None = None) -> Event:
    return Event(id="e", time=0, kind=kind, project="p", new_state=new_state)


async def settled() -> None:
    """Until nothing moves any more without time passing."""
    for _ in range(2000):
        await asyncio.sleep(0)


async def test_one_task_costs_one_look_and_goes_to_who_waits_longest():
    store = Store()
    waiting = [store.wait(f"a{n}") for n in range(1000)]
    await settled()
    assert (store.asked, store.waiting_claims.waiting) == (1000, 1000)
    store.add("a")
    await settled()
    assert waiting[0].result().receipt == "a"
    # one found it, and the next one looked since there might have been more
    assert store.asked == 1002
    assert store.waiting_claims.waiting == 999
    store.waiting_claims.close()
    assert {(await w).outcome for w in waiting[1:]} == {"NO_TASK"}


async def test_many_tasks_let_in_as_many():
    store = Store()
    waiting = [store.wait(f"a{n}") for n in range(100)]
    await settled()
    store.add(*["a"] * 60)
    await settled()
    assert sum(w.done() for w in waiting) == 60
    store.waiting_claims.close()
    await asyncio.gather(*waiting)


async def test_a_turn_is_passed_on_to_who_can_take_the_task():
    store = Store()
    waiting = [store.wait(f"a{n}") for n in range(20)]
    await settled()
    able = store.wait("b")
    await settled()
    store.add("b")
    await settled()
    assert able.done()
    assert not any(w.done() for w in waiting)
    store.waiting_claims.close()
    await asyncio.gather(*waiting)


async def test_a_round_in_vain_ends():
    store = Store()
    waiting = [store.wait(f"a{n}") for n in range(500)]
    await settled()
    store.add("b")
    await settled()
    assert store.asked <= 500 + waiting_claims.PASSES + 1
    assert store.waiting_claims.waiting == 500  # all went back
    store.waiting_claims.close()
    await asyncio.gather(*waiting)


async def test_who_goes_away_with_a_turn_passes_it_on():
    store = Store()
    first, second = store.wait("a1"), store.wait("a2")
    await settled()
    store.add("a")
    first.cancel()  # its turn is already given
    await settled()
    with suppress(asyncio.CancelledError):
        await first
    assert (await second).receipt == "a"


async def test_time_over_is_nothing_to_do():
    store = Store()
    outcome = await store.wait("a", 0.001)
    assert outcome.outcome == "NO_TASK"
    assert store.waiting_claims.waiting == 0


async def test_what_comes_while_one_looks_is_not_missed():
    store = Store()
    waiting = store.wait("a")
    await asyncio.sleep(0)  # it has begun to look
    store.add("a")
    assert (await waiting).receipt == "a"


async def test_what_comes_between_the_look_of_everybody_and_its_answer_is_not_missed():
    store = Store()
    store.answers_late = True
    waiting = [store.wait(f"a{n}") for n in range(3)]
    for _ in range(2):
        await asyncio.sleep(0)
    assert (len(store.looked), store.waiting_claims.waiting) == (3, 0)
    store.add("a", "a")
    await settled()
    assert [w.done() for w in waiting].count(True) == 2  # at once, not by the slow look on behalf of all
    store.waiting_claims.close()
    await asyncio.gather(*waiting)


async def test_news_while_all_look_lets_as_many_look_again_and_no_more():
    store = Store()
    waiting = [store.wait(f"a{n}") for n in range(200)]
    await asyncio.sleep(0)  # all have begun to look
    store.add("b")
    await settled()
    assert store.asked <= 200 + 1 + waiting_claims.PASSES
    assert store.waiting_claims.waiting == 200
    store.waiting_claims.close()
    await asyncio.gather(*waiting)


async def test_news_that_only_may_free_something_lets_one_look(monkeypatch):
    monkeypatch.setattr(waiting_claims, "LULL", 0.001)
    store = Store()
    waiting = store.wait("a")
    await settled()
    store.tasks.append("a")
    store.waiting_claims.hear([_event("project.started")])
    assert (await waiting).receipt == "a"


async def test_without_news_somebody_looks_from_time_to_time(monkeypatch):
    monkeypatch.setattr(waiting_claims, "POLL", 0.001)
    store = Store()
    waiting = store.wait("a")
    await settled()
    store.tasks.append("a")
    assert (await waiting).receipt == "a"


async def test_who_waits_with_a_key_that_has_ended_is_granted_nothing():
    store = Store()
    mine = asyncio.ensure_future(
        store.waiting_claims.claim(ClaimNext(project="p", agent="a", session="a"), Principal(key="k"), 30.0)
    )
    other = store.wait("ab")
    await settled()
    store.ended.add("k")
    store.add("a")  # the news comes before word of the key does
    await settled()
    assert isinstance(mine.exception(), NotSignedIn)
    assert other.result().receipt == "a"  # the turn was passed on


@pytest.mark.parametrize("task", [[], ["ann"]], ids=["nothing", "a task"])
async def test_who_looks_while_it_closes_learns_too_that_the_key_has_ended(task):
    """As where the tenant was closed. What was granted before is still answered."""
    store = Store()
    store.tasks += task
    waiting = store.wait("ann")
    await asyncio.sleep(0)
    assert store.asked == 1
    store.ended.add(OWNER.key)
    store.waiting_claims.close()
    if task:
        assert (await waiting).outcome == "GRANTED"
    else:
        with pytest.raises(NotSignedIn):
            await waiting


@pytest.mark.parametrize(
    ("ended", "kind", "details"),
    [
        ("k", "key.revoked", {"key": "k"}),
        ("jwt:mia", "member.removed", {"member": "mia"}),
        ("jwt:mia", "member.changed", {"member": "mia"}),
    ],
)
async def test_news_of_a_key_or_a_member_ends_those_who_wait_with_it_at_once(ended, kind, details):
    store = Store()
    waiting = [
        asyncio.ensure_future(
            store.waiting_claims.claim(ClaimNext(project="p", agent="a", session="a"), Principal(key=key), 30.0)
        )
        for key in (ended, "l")
    ]
    await settled()
    store.ended.add(ended)
    store.waiting_claims.hear([Event(id="e", time=0, kind=kind, project="", details=details)])
    await settled()
    assert isinstance(waiting[0].exception(), NotSignedIn)
    assert not waiting[1].done()
    store.waiting_claims.close()
    await waiting[1]


@pytest.mark.parametrize("kind", ["agent.terminating", "agent.draining"])
async def test_who_waits_as_an_agent_that_an_operator_ends_hears_it_at_once(kind):
    store = Store()
    ended, other = store.wait("ann"), store.wait("bo")
    await settled()
    store.denied.add("ann")
    store.waiting_claims.hear([Event(id="e", time=0, kind=kind, project="p", agent="ann")])
    await settled()
    assert ended.done()  # not by the slow look on behalf of all
    assert ended.result().outcome == "DENIED_AGENT"
    assert not other.done()
    other.cancel()
    with suppress(asyncio.CancelledError):
        await other
