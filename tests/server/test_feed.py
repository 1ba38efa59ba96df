"""Streams: what one reader gets, when it falls behind, and when it may read no more."""

import asyncio
import queue
import threading

import pytest

from tenure.client.caller import SystemRandom
from tenure.core import commands as c
from tenure.core.commands import NewTask, Principal
from tenure.core.errors import StoreUnavailable
from tenure.core.events import Event
from tenure.engine import Engine
from tenure.server import feed
from tenure.server.app import App
from tenure.server.feed import HEARTBEAT, Stream
from tenure.server.service import Service
from tenure.stores.open_store import open_store
from tenure.stores.postgres import Postgres
from tenure.testing.samples import event_of
from tenure.testing.suites.store_setting import write
from tests.servers.postgres import url_of


def event(sequence: int, kind: str = "task.ready") -> Event:
    return Event(sequence=sequence, id=f"e{sequence}", time=0, kind=kind, project="p")


async def read(stream: Stream, after: int = 0) -> list[bytes]:
    return [chunk async for chunk in stream.chunks(after)]


async def test_what_the_reader_has_seen_is_not_sent_again():
    stream = Stream({}, "local")
    for sequence in (1, 2, 3):
        stream.put(event(sequence))
    reading = asyncio.ensure_future(read(stream, after=2))
    await asyncio.sleep(0)
    stream.end()
    assert [chunk.split(b"\n")[0] for chunk in await reading] == [b"id: 3"]


async def test_only_what_was_asked_for_is_sent():
    stream = Stream({"kind": ("task.claimed",)}, "local")
    stream.put(event(1))
    stream.put(event(2, "task.claimed"))
    reading = asyncio.ensure_future(read(stream))
    await asyncio.sleep(0)
    stream.end()
    assert len(await reading) == 1


async def test_a_reader_that_falls_behind_is_sent_away_to_come_back_with_its_cursor(monkeypatch):
    monkeypatch.setattr(feed, "MOST_BEHIND", 3)
    stream = Stream({}, "local")
    for sequence in range(1, 6):
        stream.put(event(sequence))
    assert await asyncio.wait_for(read(stream), 10) == []


async def test_a_busy_stream_has_its_beat_too(monkeypatch):
    monkeypatch.setattr(feed, "BEAT", 0.0)
    stream = Stream({}, "local")
    stream.put(event(1))
    chunks = stream.chunks(0)
    assert await anext(chunks) == HEARTBEAT
    await chunks.aclose()


async def test_a_stream_ends_with_the_key_that_began_it(monkeypatch):
    monkeypatch.setattr(feed, "BEAT", 0.001)
    engine = Engine(open_store("memory://"), SystemRandom())
    engine.do(c.DefineProject(project="p"))
    engine.do(c.Add(project="p", task=NewTask(title="t")))
    service = Service(engine)
    service.feed.start(asyncio.get_running_loop())
    is_good = True

    async def sign_in(request):
        return Principal(role="viewer", key="k")

    async def is_still_valid(principal):
        assert principal.key == "k"
        return is_good

    service.is_still_valid = is_still_valid
    app = App(service, sign_in)
    sent: asyncio.Queue = asyncio.Queue()

    async def receive():
        await asyncio.Event().wait()  # the reader stays

    headers = [(b"accept", b"text/event-stream"), (b"host", b"localhost")]
    path = "/api/v1/projects/p/events"
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"after=0",
        "headers": headers, "scheme": "http",
    }  # fmt: skip
    serving = asyncio.ensure_future(app(scope, receive, sent.put))
    while (await sent.get()).get("body") != HEARTBEAT:
        pass
    is_good = False
    await asyncio.wait_for(serving, 10)
    await service.close()


async def test_a_stream_that_catches_up_ends_with_its_key_too(monkeypatch):
    """Who reads slowly from the beginning never gets to the live part, and would be told everything new on the way."""
    monkeypatch.setattr(feed, "PAGE", 1)
    engine = Engine(open_store("memory://"), SystemRandom())
    engine.do(c.DefineProject(project="p"))
    for _ in range(3):
        engine.do(c.Add(project="p", task=NewTask(title="t")))
    service = Service(engine)
    service.feed.start(asyncio.get_running_loop())
    is_good = True

    async def is_still_valid(_):
        return is_good

    service.is_still_valid = is_still_valid
    app = App(service, lambda _: asyncio.sleep(0, Principal(role="viewer", key="k")))
    told: list[bytes] = []

    async def send(message):
        nonlocal is_good
        told.append(message.get("body", b""))
        is_good = b"task.created" not in told[-1]

    path = "/api/v1/projects/p/events"
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"after=0",
        "headers": [(b"accept", b"text/event-stream"), (b"host", b"localhost")], "scheme": "http",
    }  # fmt: skip
    await asyncio.wait_for(app(scope, asyncio.Event().wait, send), 10)
    assert sum(b"task.created" in body for body in told) == 1
    await service.close()


@pytest.mark.parametrize("command", [c.CreateKey(name="ci"), c.InviteMember(user="mia", role="viewer")])
async def test_news_of_a_key_or_a_member_lets_every_stream_look_up(command):
    engine = Engine(open_store("memory://"), SystemRandom())
    engine.do(c.DefineProject(project="p"))
    reading = feed.Feed(engine)
    reading.start(asyncio.get_running_loop())
    chunks = reading.subscribe("p", {}).chunks(0)
    await asyncio.to_thread(engine.do, command)
    assert await asyncio.wait_for(anext(chunks), 10) == HEARTBEAT  # long before its beat
    await chunks.aclose()
    reading.close()
    await asyncio.to_thread(reading.join)


async def test_a_store_that_is_away_at_the_start_is_waited_for(monkeypatch):
    monkeypatch.setattr(feed, "RETRY", 0.001)
    engine = Engine(open_store("memory://"), SystemRandom())
    engine.do(c.DefineProject(project="p"))
    mark, tries = engine.mark, iter(range(100))

    def away_at_first():
        if next(tries) < 3:
            raise StoreUnavailable("not yet")
        return mark()

    monkeypatch.setattr(engine, "mark", away_at_first)
    heard: asyncio.Queue = asyncio.Queue()
    reading = feed.Feed(engine)
    reading.listeners.append(lambda events: [heard.put_nowait(event.kind) for event in events])
    reading.start(asyncio.get_running_loop())
    while reading.position < 0:  # noqa: ASYNC110 its thread tells nobody
        await asyncio.sleep(0.001)
    await asyncio.to_thread(engine.do, c.Add(project="p", task=NewTask(title="t")))
    assert await asyncio.wait_for(heard.get(), 10) == "task.created"
    reading.close()
    await asyncio.to_thread(reading.join)


async def test_while_nobody_waits_pages_are_read_rarely_and_whoever_comes_ends_the_lull(monkeypatch):
    monkeypatch.setattr(feed, "LULL", 1000.0)
    engine = Engine(open_store("memory://"), SystemRandom())
    engine.do(c.DefineProject(project="p"))
    news = feed.Feed(engine)
    heard: asyncio.Queue = asyncio.Queue()
    news.listeners.append(heard.put_nowait)
    news.start(asyncio.get_running_loop())
    try:
        engine.do(c.Add(project="p", task=NewTask(title="first")))
        await asyncio.wait_for(heard.get(), 10)
        engine.do(c.Add(project="p", task=NewTask(title="second")))
        mark = news.position
        assert heard.empty()
        await asyncio.wait_for(news.beyond(mark, 10), 10)  # as long as the lull would have been without it
        assert news.position > mark
        stream = news.subscribe("p", {})
        for title in ("third", "fourth"):
            engine.do(c.Add(project="p", task=NewTask(title=title)))
            while engine.store.mark("local") > news.position:
                await asyncio.wait_for(heard.get(), 10)
        news.unsubscribe("p", stream)
        assert not news._reader.is_awaited.is_set()
    finally:
        news.close()
        await asyncio.to_thread(news.join)


class Lulls(threading.Event):
    def __init__(self) -> None:
        super().__init__()
        self.begun: queue.Queue = queue.Queue()

    def wait(self, timeout=None):
        self.begun.put(timeout)
        return super().wait(timeout)


async def test_behind_a_full_page_there_is_no_lull(monkeypatch):
    monkeypatch.setattr(feed, "LULL", 1000.0)
    monkeypatch.setattr(feed, "PAGE", 2)
    engine = Engine(open_store("memory://"), SystemRandom())
    engine.do(c.DefineProject(project="p"))
    news = feed.Feed(engine)
    news._reader.is_awaited = Lulls()
    heard: asyncio.Queue = asyncio.Queue()
    news.listeners.append(lambda events: [heard.put_nowait(event.key) for event in events])
    news.start(asyncio.get_running_loop())
    try:
        made = engine.run([c.Add(project="p", task=NewTask(title=f"t{n}")) for n in range(5)])
        assert [await asyncio.wait_for(heard.get(), 10) for _ in made] == [outcome.task["key"] for outcome in made]
        assert await asyncio.to_thread(news._reader.is_awaited.begun.get, timeout=10) == feed.LULL
        assert news._reader.is_awaited.begun.empty()
    finally:
        news.close()
        await asyncio.to_thread(news.join)


async def test_what_was_being_written_at_the_start_is_heard_though_others_were_first(postgres, tmp_path):
    store = Postgres(url_of(tmp_path))
    engine = Engine(store, SystemRandom())
    engine.do(c.DefineProject(project="p"))
    news = feed.Feed(engine)
    heard: asyncio.Queue = asyncio.Queue()
    news.listeners.append(lambda events: [heard.put_nowait(event.id) for event in events])
    with store.begin("local", write=True) as slow:
        slow.append([event_of(id="early", project="q")])
        assert slow.events({"project": "q"})  # it has its sequence by now
        write(store, events=[event_of(id="late", project="p")])
        news.start(asyncio.get_running_loop())
    try:
        assert [await asyncio.wait_for(heard.get(), 10) for _ in range(2)] == ["early", "late"]
    finally:
        news.close()
        await asyncio.to_thread(news.join)
        store.close()


def of_task(sequence: int, task: str, kind: str = "task.cancelled", project: str = "p") -> Event:
    return Event(sequence=sequence, id=f"e{sequence}", time=0, kind=kind, project=project, task=task)


async def test_a_worker_is_woken_for_its_own_tasks_only():
    news = feed.Feed(Engine(open_store("memory://"), SystemRandom()))
    waiting = asyncio.ensure_future(news.beyond_of(0, 10, "p", ["t1", "t2"]))
    others = [of_task(1, "t3"), of_task(2, "t1", project="q"), of_task(3, "t1", "task.progress")]
    for one in others:
        news._distribute([one])
        await asyncio.sleep(0)
        assert not waiting.done()
    news._distribute([of_task(4, "t2", "task.drain_requested")])
    assert await asyncio.wait_for(waiting, 10) is True
    assert news._by_task == {}
    assert await news.beyond_of(0, 10, "p", ["t2"]) is True  # it came before the wait began
    assert await news.beyond_of(4, 0.01, "p", ["t2"]) is False
    assert await news.beyond_of(4, 0.01, "p", ["t1"]) is False
    assert news._by_task == {}


async def test_one_who_asks_for_news_from_before_what_is_remembered_is_woken(monkeypatch):
    monkeypatch.setattr(feed, "RECENT", 2)
    news = feed.Feed(Engine(open_store("memory://"), SystemRandom()))
    news._distribute([of_task(number, f"t{number}") for number in range(1, 6)])
    assert await news.beyond_of(2, 10, "p", ["t9"]) is True
    assert await news.beyond_of(3, 0.01, "p", ["t9"]) is False
    waiting = asyncio.ensure_future(news.beyond_of(5, 10, "p", ["t9"]))
    await asyncio.sleep(0)
    news.close()
    assert await asyncio.wait_for(waiting, 10) is True
