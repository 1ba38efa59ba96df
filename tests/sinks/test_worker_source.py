"""Workers that get their work from a broker: the claim is the gate, whatever the broker repeats or forgets."""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from msgspec import structs

from tenure import AsyncContext, Client, CommandContext, Context, Worker
from tenure.client.caller import SystemRandom
from tenure.client.worker import message_source
from tenure.client.worker.mail_commands import MailCommands
from tenure.client.worker.message_source import ACKNOWLEDGE, ANSWERS, DEFER, GIVE_BACK
from tenure.core import limits
from tenure.core.commands import Register, Send, Terminate
from tenure.core.errors import InvalidInput, StoreUnavailable
from tenure.core.outcomes import CODES, Outcome
from tenure.core.records import Sink as SinkRow
from tenure.engine import Engine
from tenure.engine.duties.coordinator import Coordinator
from tenure.engine.relay.announce import Announcer
from tenure.engine.relay.relay import Relay, Settings
from tenure.sinks.open_sink import open_sink, open_source
from tenure.sinks.subscriptions import Subscription
from tenure.stores.sqlite import Sqlite
from tenure.testing.suites.sink import TIMEOUT
from tests.client.test_worker import PATIENCE, running, until
from tests.servers.tenure import TenureServer
from tests.servers.valkey import ValkeyServer

TASKS = 16
_prefixes = itertools.count(1)
BROKERS = ("nats", "rabbitmq", "valkey")


class Broker:
    """One server, and a prefix of this test."""

    def __init__(self, name: str, server: Any) -> None:
        self.server, prefix = server, f"w{next(_prefixes)}"
        address = server.url().replace("redis://", "redis+stream://") if name == "valkey" else server.url
        self.url = f"{address}{'/' if name == 'nats' else ''}?prefix={prefix}"


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest) -> Broker:
    return Broker(request.param, request.getfixturevalue(request.param))


@pytest.fixture
def valkey_broker(valkey: Any) -> Broker:
    return Broker("valkey", valkey)


class Shop:
    """A project, and the relay of the process that leads, stepped by hand."""

    def __init__(self, folder: Path, url: str) -> None:
        self.store, self.source = str(folder / "store.db"), url
        self.client = Client(self.store, "shop", agent="mia", session="s-mia", create=True)
        self.client.init()
        self.engine = Engine(Sqlite(self.store), SystemRandom())
        self.coordinator = Coordinator(self.engine, "one", time.monotonic)
        self.relay = Relay(
            self.engine, Settings("broker"), lambda: open_sink(url), self.coordinator.led, time.monotonic
        )
        self.relayed()

    def relayed(self) -> None:
        """Lead, and send what there is, however long the broker takes to come back."""
        end = time.monotonic() + PATIENCE
        self.coordinator.step()
        while self.relay.step() == 0.0 or self.relay._troubles:
            assert time.monotonic() < end
            self.coordinator.step()

    def announced(self, again: str) -> None:
        """The commands of all ready tasks once more, with other ids: no broker drops these."""
        with self.engine.store.begin(self.engine.tenant, write=False) as tx:
            (row,) = tx.find(SinkRow, {})
        commands = Announcer().sweep(self.engine, row, everything=True)
        sink = open_sink(self.source)
        try:
            repeats = [structs.replace(one, id=f"{one.id}-{again}") for one in commands]
            sent = 0
            while sent < len(repeats):
                sent += sink.send(repeats[sent:], TIMEOUT)
        finally:
            sink.close()

    def worker(self, **more: Any) -> Worker:
        return Worker(self.store, "shop", source=self.source, **more)

    def states(self) -> list[str]:
        return [task["state"] for task in self.client.tasks(limit=100)]

    @property
    def forgot(self) -> int:
        """How often the broker was found without what it had been sent."""
        with self.engine.store.begin(self.engine.tenant, write=False) as tx:
            return sum(event.kind == "sink.forgot" for event in tx.events({}, after=0, limit=10_000))

    def close(self) -> None:
        self.relay.stop()
        self.engine.store.close()
        self.client.close()


@contextmanager
def shop_at(folder: Path, url: str) -> Iterator[Shop]:
    shop = Shop(folder, url)
    try:
        yield shop
    finally:
        shop.close()


def patiently(shop: Shop, is_so: Callable[[], bool]) -> None:
    """Relay until it is so."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        mark = shop.client.mark()
        shop.relayed()
        shop.client.wait_for_news(mark, 0.3)


# --- what becomes of a message ---


def test_the_answer_to_a_claim_decides_what_becomes_of_its_message() -> None:
    denials = {code: ANSWERS[code] for code in CODES if code.startswith("DENIED_")}
    assert denials == {
        "DENIED_ACTIVE_CLAIM": ACKNOWLEDGE,
        "DENIED_COMPLETED": ACKNOWLEDGE,
        "DENIED_PAUSED": ACKNOWLEDGE,
        "DENIED_CANCELLED": ACKNOWLEDGE,
        "DENIED_DEAD_LETTERED": ACKNOWLEDGE,
        "DENIED_STATE": ACKNOWLEDGE,
        "DENIED_LEADER": ACKNOWLEDGE,
        "DENIED_NOT_READY": DEFER,
        "DENIED_CAPABILITY": DEFER,
        "DENIED_BUDGET": DEFER,
        "DENIED_LIMIT": DEFER,
        "DENIED_CONFLICT": DEFER,
        "DENIED_OFFERED": DEFER,
        "DENIED_TRACK": DEFER,
        "DENIED_RUNNER": DEFER,
        "DENIED_AGENT": GIVE_BACK,
        "DENIED_SPAWN": GIVE_BACK,
    }
    assert {ANSWERS[code] for code in ("GRANTED", "NO_TASK", "NOT_FOUND")} == {ACKNOWLEDGE}


def test_a_source_that_is_not_valid_says_so(tmp_path: Path) -> None:
    for wrong in ({"source": "mqtt://x"}, {"source": "nats://x", "take": "all"}, {"source": "nats://x", "pool": "a b"}):
        worker = Worker(str(tmp_path / "store.db"), "shop", create=True, **wrong)  # type: ignore[arg-type]
        worker.task()(lambda ctx: 1)
        with pytest.raises(InvalidInput):
            worker.run()
        worker.close()


# --- on every broker ---


@pytest.mark.parametrize("take", ["next", pytest.param("task", marks=pytest.mark.nightly)])
def test_each_task_is_accepted_once_though_commands_come_twice_and_the_broker_is_wiped(
    tmp_path: Path, broker: Broker, take: str
) -> None:
    done: list[str] = []
    with shop_at(tmp_path, broker.url) as shop, ExitStack() as stack:
        for number in range(TASKS):
            shop.client.add(f"T{number}", type="t")
        shop.relayed()
        shop.announced("again")
        half, let_go = threading.Event(), threading.Event()

        def work(ctx: Context) -> int:
            done.append(ctx.task["key"])
            if len(done) >= TASKS // 2:
                half.set()
                assert let_go.wait(PATIENCE)
            return 1

        async def awork(ctx: AsyncContext) -> int:
            await ctx.progress(50)
            return work_now(ctx.task["key"])

        def work_now(key: str) -> int:
            done.append(key)
            return 1

        for name, function, concurrency in (("ann", work, 3), ("bo", awork, 1)):
            worker = shop.worker(agent=name, concurrency=concurrency, take=take)
            worker.task("t")(function)  # type: ignore[type-var]
            stack.enter_context(running(worker))
        assert half.wait(PATIENCE)
        broker.server.wipe()
        for number in range(TASKS, TASKS + 4):
            shop.client.add(f"T{number}", type="t")
        let_go.set()
        # Commands that a worker had fetched before the wipe may be enough for all tasks: relay until it is noticed too.
        patiently(shop, lambda: set(shop.states()) == {"completed"} and shop.forgot > 0)
        assert shop.forgot == 1
    assert sorted(done) == sorted(set(done))
    assert len(done) == TASKS + 4


KILLED = """
import sys, time, tenure
worker = tenure.Worker(sys.argv[1], "shop", source=sys.argv[2], agent="killed", lease=1.0)
@worker.task("t")
def work(ctx):
    print("begun", flush=True)
    time.sleep(600)
worker.run()
"""


def test_the_task_of_a_worker_that_is_killed_goes_to_another(tmp_path: Path, broker: Broker) -> None:
    with shop_at(tmp_path, broker.url) as shop:
        shop.client.add("Work", type="t")
        shop.relayed()
        killed = subprocess.Popen([sys.executable, "-c", KILLED, shop.store, shop.source], stdout=subprocess.PIPE)
        try:
            assert killed.stdout is not None
            assert killed.stdout.readline() == b"begun\n"
        finally:
            killed.kill()
            killed.wait()
            killed.stdout and killed.stdout.close()
        worker = shop.worker(agent="bo")
        worker.task("t")(lambda ctx: ctx.generation)
        with running(worker):
            patiently(shop, lambda: shop.states() == ["completed"])
        assert shop.client.show("A-001")["result"]["data"] == 2


def test_commands_reach_the_agent_and_its_type_once_and_are_answered(tmp_path: Path, broker: Broker) -> None:
    ran: list[tuple[str, str, Any]] = []
    with shop_at(tmp_path, broker.url) as shop:
        worker = shop.worker(agent="bo", agent_type="reviewer")
        worker.task("t")(lambda ctx: 1)

        @worker.command("review")
        def review(ctx: CommandContext) -> None:
            ran.append((ctx.sender, ctx.text, ctx.data))
            ctx.reply(f"reviewed {ctx.text}")

        with running(worker):
            until(shop.client, lambda: "bo" in [agent["name"] for agent in shop.client.agents()])
            for to, text in (("bo", "one"), ("@type:reviewer", '{"pr": 2}')):
                sent = shop.client.do(Send(project="shop", sender="mia", to=to, text=text, action="review"))
                assert sent.ok
            patiently(shop, lambda: len(shop.client.inbox()) == 2)
        answers = shop.client.inbox()
        assert sorted(one["text"] for one in answers) == ["reviewed one", 'reviewed {"pr": 2}']
        assert all(one["reply_to"] for one in answers)
    assert sorted(ran, key=str) == [("mia", "one", None), ("mia", '{"pr": 2}', {"pr": 2})]


# --- what does not depend on the broker ---


def waiting(url: str, pool: str = "workers") -> list[int]:
    """How often each message was delivered that still waits for the pool. They are given back."""
    source = open_source(url, Subscription(pool, 10))
    try:
        return [one.tries for one in source.fetch(10, 0.5)]
    finally:
        source.close()


def test_a_message_for_a_task_that_may_not_be_claimed_now_is_deferred_and_given_up_after_five_times(
    tmp_path: Path, valkey_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenure.sinks.redis_source.ACKNOWLEDGE_WITHIN", 0.2)
    monkeypatch.setattr(message_source.limits, "DEFERRED_FOR", 0.1)
    with shop_at(tmp_path, valkey_broker.url) as shop:
        shop.client.add("Work", type="t", constraints={"agent_type": "reviewer"})
        shop.relayed()
        deliveries: list[int] = []
        deferred = message_source.MessageSource.defer

        def counted(self: Any, received: Any, why: str) -> None:
            deliveries.append(received.tries)
            deferred(self, received, why)

        monkeypatch.setattr(message_source.MessageSource, "defer", counted)
        worker = shop.worker(agent="ann", agent_type="coder", take="task")
        worker.task("t")(lambda ctx: 1)
        with running(worker):
            end = time.monotonic() + PATIENCE
            while len(deliveries) < limits.DEFERRALS and time.monotonic() < end:
                threading.Event().wait(0.05)
        assert (deliveries, waiting(shop.source)) == ([1, 2, 3, 4, 5], [])
        assert shop.states() == ["ready"]


def test_messages_of_a_worker_that_may_not_work_are_given_back(tmp_path: Path, valkey_broker: Broker) -> None:
    with shop_at(tmp_path, valkey_broker.url) as shop:
        shop.client.add("Work", type="t")
        shop.relayed()
        shop.client.register(type="x")
        worker = shop.worker(agent="ann")
        worker.task("t")(lambda ctx: 1)
        worker.client.register(type="sdk")
        assert shop.client.do(Terminate(project="shop", agent="ann", reason="no more")).ok
        worker.run()
        worker.close()
        assert len(waiting(shop.source)) == 1


def test_one_message_is_enough_to_work_until_no_task_is_left(tmp_path: Path, valkey_broker: Broker) -> None:
    """A broker that was wiped has a command for the first tasks of each lane alone."""
    with shop_at(tmp_path, valkey_broker.url) as shop:
        for number in range(7):
            shop.client.add(f"Work {number}", type="t")
        shop.relayed()
        left = waiting(shop.source)[1:]
        source = open_source(shop.source, Subscription("workers"))
        for received in source.fetch(len(left), TIMEOUT):
            source.acknowledge(received)
        source.close()
        worker = shop.worker(agent="ann", concurrency=2)
        worker.task("t")(lambda ctx: 1)
        with running(worker):
            patiently(shop, lambda: set(shop.states()) == {"completed"})


def test_messages_for_no_task_or_an_unknown_one_are_acknowledged(tmp_path: Path, valkey_broker: Broker) -> None:
    with shop_at(tmp_path, valkey_broker.url) as shop:
        shop.client.add("Work", type="t")
        shop.relayed()
        shop.client.cancel("A-001")
        for take in ("next", "task"):
            shop.announced(take)
            worker = shop.worker(agent="ann", take=take)
            worker.task("t")(lambda ctx: 1)
            worker.run(until_idle=True)
            worker.close()
        assert waiting(shop.source) == []


@pytest.mark.parametrize(
    ("takes", "other"),
    [
        ({"tags": ("gpu", "eu")}, {"tags": ("gpu",)}),
        ({"tags": ("gpu",)}, {}),
        ({"tracks": ("A",)}, {"track": "B"}),
        ({}, {"type": "other"}),
    ],
    ids=["one of two tags", "no tag", "track", "type"],
)
def test_a_message_for_a_task_that_the_worker_does_not_take_claims_nothing(
    tmp_path: Path, valkey_broker: Broker, takes: dict[str, Any], other: dict[str, Any]
) -> None:
    with shop_at(tmp_path, valkey_broker.url) as shop:
        shop.client.add("Theirs", **({"type": "t"} | other))
        shop.client.add("Mine", type="t", tags=("gpu", "eu"))
        shop.relayed()
        worker = shop.worker(agent="ann", take="task", **takes)
        worker.task("t")(lambda ctx: 1)
        worker.run(until_idle=True)
        worker.close()
        states = {task["title"]: task["state"] for task in shop.client.tasks(limit=100)}
    assert states == {"Mine": "completed", "Theirs": "ready"}


def test_a_worker_that_is_stopped_leaves_what_it_has_not_claimed_to_others(
    tmp_path: Path, valkey_broker: Broker
) -> None:
    begun, let_go = threading.Event(), threading.Event()
    with shop_at(tmp_path, valkey_broker.url) as shop:
        for number in range(3):
            shop.client.add(f"T{number}", type="t")
        shop.relayed()
        worker = shop.worker(agent="ann")

        @worker.task("t")
        def work(ctx: Context) -> int:
            begun.set()
            assert let_go.wait(PATIENCE)
            return 1

        with running(worker):
            assert begun.wait(PATIENCE)
            worker.stop()
            let_go.set()
        assert sorted(shop.states()) == ["completed", "ready", "ready"]
        assert len(waiting(shop.source)) == 2


ENDING = """
import sys, time, tenure
worker = tenure.Worker(sys.argv[1], "shop", source=sys.argv[2], agent="ending")
@worker.task("t")
def work(ctx):
    print("begun", flush=True)
    return worker._draining.wait(60)  # the signal has arrived
worker.run()
"""


def test_after_sigterm_the_running_task_is_finished_and_the_messages_stay(
    tmp_path: Path, valkey_broker: Broker
) -> None:
    with shop_at(tmp_path, valkey_broker.url) as shop:
        for number in range(2):
            shop.client.add(f"T{number}", type="t")
        shop.relayed()
        command = [sys.executable, "-c", ENDING, shop.store, shop.source]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as ending:
            assert ending.stdout is not None
            assert ending.stdout.readline() == b"begun\n"
            ending.terminate()
            assert ending.wait(PATIENCE) == 0
        assert sorted(shop.states()) == ["completed", "ready"]
        assert len(waiting(shop.source)) == 1


def test_a_message_is_not_acknowledged_while_the_store_does_not_answer(
    tmp_path: Path, valkey_broker: Broker, valkey: ValkeyServer
) -> None:
    with shop_at(tmp_path, valkey_broker.url) as shop, TenureServer(shop.store) as server:
        worker = Worker(server.url, "shop", source=shop.source)
        worker.task("t")(lambda ctx: 1)
        with running(worker), redis.Redis.from_url(valkey.url()) as seen:
            stream = f"tenure:{shop.source.partition('prefix=')[2]}:cmd:task.execute"

            def unacknowledged() -> int:
                return sum(group["pending"] + (group["lag"] or 0) for group in seen.xinfo_groups(stream))

            shop.client.add("First", type="t")
            patiently(shop, lambda: shop.states() == ["completed"])
            server.kill()
            shop.client.add("Second", type="t")
            patiently(shop, lambda: unacknowledged() == 1)  # received, or not even asked for
            server.start()
            patiently(shop, lambda: shop.states() == ["completed", "completed"] and unacknowledged() == 0)


# --- commands without a broker ---


def command(mia: Client, text: str, **more: Any) -> dict[str, Any]:
    """A command of mia to bo, as bo's inbox shows it."""
    mia.do(Register(project="shop", agent="bo"))
    sent = mia.do(Send(project="shop", sender="mia", to="bo", text=text, action="review", **more))
    assert sent.messages is not None
    return dict(sent.messages[0])


def taken(mail: MailCommands, one: dict[str, Any]) -> CommandContext | None:
    return mail.take(one["id"], one["action"], one["from"], one["text"], one["expires_at"])


def test_a_command_is_taken_once_however_many_processes_see_it(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with (
        Client(store, "shop", agent="mia", session="s-mia", create=True) as mia,
        Client(store, "shop", agent="bo") as bo,
    ):
        mia.init()
        first, second = (MailCommands(bo, {}) for _ in range(2))
        one, late = command(mia, "now"), command(mia, "late", expires=0)
        assert (taken(first, one) is None, taken(second, one), taken(first, one)) == (False, None, None)
        assert taken(first, late) is None


def test_a_command_among_much_mail_is_found_and_still_taken_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = str(tmp_path / "store.db")
    with (
        Client(store, "shop", agent="mia", session="s-mia", create=True) as mia,
        Client(store, "shop", agent="bo") as bo,
    ):
        mia.init()
        bo.register(type="x")
        for number in range(3):
            mia.send(f"hello {number}", "bo")
        one = command(mia, "now")
        page = bo.inbox
        monkeypatch.setattr(bo, "inbox", lambda **how: page(**{"limit": 2, **how}))
        first = MailCommands(bo, {"review": None})  # type: ignore[dict-item]  # no function runs here
        found = first.next(None)
        assert found is not None
        assert found.id == one["id"]
        assert taken(MailCommands(bo, {}), one) is None


def test_a_command_is_not_lost_with_the_answer_of_the_store(tmp_path: Path) -> None:
    """The mail is marked as read, and the answer does not arrive."""
    store = str(tmp_path / "store.db")
    with (
        Client(store, "shop", agent="mia", session="s-mia", create=True) as mia,
        Unlucky(store, "shop", agent="bo") as bo,
    ):
        mia.init()
        mail, one = MailCommands(bo, {}), command(mia, "now")
        with pytest.raises(StoreUnavailable):
            taken(mail, one)
        assert taken(mail, one) is not None
        assert taken(mail, one) is None


class Unlucky(Client):
    """Its first answer to `read` is lost."""

    is_lost = False

    def read(self, messages: Iterable[str] | None = None) -> Outcome:
        outcome = super().read(messages)
        if not self.is_lost:
            self.is_lost = True
            raise StoreUnavailable("the answer was lost")
        return outcome


def test_without_a_broker_commands_come_from_the_agents_mail_once_each(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    ran: list[str] = []
    with Client(store, "shop", agent="mia", session="s-mia", create=True) as mia, ExitStack() as stack:
        mia.init()
        workers = [Worker(store, "shop", agent="bo") for _ in range(2)]  # two processes of one agent
        for worker in workers:
            worker.task("t")(lambda ctx: 1)

            @worker.command("review", "fail")
            async def review(ctx: CommandContext) -> None:
                if ctx.action == "fail":
                    raise ValueError("not today")
                ran.append(ctx.text)

        for number in range(5):
            mia.do(Register(project="shop", agent="bo"))
            mia.do(Send(project="shop", sender="mia", to="bo", text=str(number), action="review"))
        mia.do(Send(project="shop", sender="mia", to="bo", text="late", action="review", expires=0))
        mia.do(Send(project="shop", sender="mia", to="bo", text="chat"))
        mia.do(Send(project="shop", sender="mia", to="bo", text="x", action="fail"))
        for worker in workers:
            stack.enter_context(running(worker))
        until(mia, lambda: len(ran) == 5 and len(mia.inbox()) == 1)
        assert mia.inbox()[0]["text"] == "fail failed: ValueError: not today"
        with Client(store, "shop", agent="bo", session="s-bo") as bo:
            assert [one["text"] for one in bo.inbox()] == ["chat"]
    assert sorted(ran) == [str(number) for number in range(5)]
