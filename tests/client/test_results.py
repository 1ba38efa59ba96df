"""Typed answers, times as people write them, many tasks at once, and waiting for a task: on every kind of store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tenure
from tenure import AsyncClient, Client, Grant, NewTask, Outcome, Worker
from tenure.client.results import Result
from tenure.core import commands
from tenure.core.errors import InvalidInput, NotFound, TenureError
from tests.client.test_worker import PATIENCE, running
from tests.sampling import places
from tests.servers.postgres import url_of
from tests.servers.tenure import TenureServer


@pytest.fixture(params=places("memory", "sqlite", "postgresql", "http"))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    store = str(tmp_path / "store.db")
    if request.param == "postgresql":
        request.getfixturevalue("postgres")
        store = url_of(tmp_path)
    if request.param == "memory":
        store = f"memory://{tmp_path.name}"
    with Client(store, "shop", create=True):  # kept open: the last one to close it ends a store in memory
        if request.param != "http":
            yield store
            return
        with TenureServer(store) as served:
            yield served.url


@pytest.fixture
def mia(url: str) -> Iterator[Client]:
    with Client(url, "shop", agent="mia") as client:
        yield client


# --- answers ------------------------------------------------------------------------------------------------


def test_an_answer_is_an_outcome_with_a_short_text(mia: Client) -> None:
    added = mia.add("Sweep the floor")
    assert isinstance(added, (Outcome, Result))
    assert added.task["title"] == "Sweep the floor"
    assert repr(added) == "<Added CREATED A-001-sweep-the-floor ready: A-001-sweep-the-floor is ready>"
    claimed = mia.claim()
    assert isinstance(claimed, Grant)
    assert len(repr(claimed)) < 100
    assert claimed.receipt.partition("@")[2] not in repr(claimed)  # a receipt is a secret


def test_a_check_passes_what_was_done_and_raises_what_was_refused(mia: Client, url: str) -> None:
    mia.add("One")
    grant = mia.claim().check()
    assert (grant.attempt, grant.generation, grant.grants[0].receipt) == (1, 1, grant.receipt)
    with Client(url, "shop", agent="bo") as bo:
        with pytest.raises(tenure.HeldByAnother, match="held by agent mia") as held:
            bo.claim("A-001").check()
        assert (held.value.code, held.value.outcome.holder) == ("DENIED_ACTIVE_CLAIM", "mia")
        with pytest.raises(tenure.NothingToClaim):
            bo.claim().check()
    assert mia.submit(grant.receipt, 1).check().outcome == "ACCEPTED"
    with pytest.raises(tenure.StaleReceipt):
        mia.progress(grant.receipt, 5).check()
    with pytest.raises(tenure.Denied):
        mia.pause("A-001").check()
    with pytest.raises(tenure.NotAccepted):
        mia.update("A-001", 1, title="Never").check()
    with pytest.raises(tenure.NoSuchTask):
        Result.of(Outcome(outcome="NOT_FOUND", message="no such task")).check()


def test_every_kind_of_refusal_is_an_error() -> None:
    from tenure.core.outcomes import CODES

    for code, about in CODES.items():
        answer = Result.of(Outcome(outcome=code))
        if about.kind == "ok":
            assert answer.check() is answer
        else:
            with pytest.raises(tenure.Refused) as refused:
                answer.check()
            assert refused.value.code == code


def test_several_claims_are_several_grants(mia: Client) -> None:
    for n in range(3):
        mia.add(f"T{n}")
    assert [grant.task["title"] for grant in mia.claim(n=3).check().grants] == ["T0", "T1", "T2"]
    assert mia.claim(n=2).grants == []


def test_the_hint_is_in_the_text_of_an_error(mia: Client) -> None:
    with pytest.raises(InvalidInput) as error:
        mia.add("x", deadline="soon")
    assert str(error.value) == "deadline 'soon': not a time (as in 2026-03-01T18:00:00Z, or 2h, or 3d)"


def test_every_command_and_every_answer_can_be_imported() -> None:
    assert {kind.__name__ for kind in commands.ALL} <= set(tenure.__all__)
    assert [name for name in tenure.__all__ if getattr(tenure, name, None) is None] == []


def test_every_method_has_a_docstring() -> None:
    for kind in (Client, AsyncClient, Worker, tenure.Context):
        names = [name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))]
        assert [name for name in names if not getattr(kind, name).__doc__] == []


# --- times --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lease", [90, 90.0, "90s", "1m 30s", timedelta(seconds=90)])
def test_a_duration_is_seconds_a_timedelta_or_a_text(mia: Client, lease: Any) -> None:
    mia.add("One")
    grant = mia.claim(lease=lease).check()
    assert 60 < (grant.lease or 0) <= 90
    assert 60 < (mia.renew(grant.receipt, lease).lease or 0) <= 90


def test_an_instant_is_a_datetime_a_text_or_a_number(mia: Client) -> None:
    at = datetime(2100, 1, 1, 12, tzinfo=UTC)
    micros = round(at.timestamp() * 1e6)
    for given in (at, at.astimezone(), "2100-01-01T12:00:00Z", micros):
        assert mia.add("x", deadline=given).task["deadline"] == micros
    edited = mia.add("edited").task["key"]
    mia.update(edited, deadline=at)
    assert mia.show(edited)["deadline"] == micros
    assert mia.log(since=at) == []
    assert mia.tasks(created_until=at, created_from="2020-01-01T00:00:00Z", limit=1)
    raw = mia.do(tenure.Add(project="shop", task=NewTask(title="raw", deadline=at)))  # type: ignore[arg-type]
    assert (raw.task or {})["deadline"] == micros


@pytest.mark.parametrize("given", ["2h", timedelta(hours=2)])
def test_a_deadline_may_be_a_duration_from_now(mia: Client, given: Any) -> None:
    left = (mia.add("x", deadline=given).task["deadline"] - mia.now()) / 1e6
    assert 7000 < left <= 7200
    assert mia.add_many([NewTask(title="later", not_before=given)])[0]["state"] == "pending"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"deadline": datetime(2100, 1, 1)}, "the time zone is missing"),  # noqa: DTZ001 - that is the point
        ({"deadline_in": "two hours"}, "'two hours' is not a duration"),
        ({"deadline_in": object()}, "must be a duration"),
        ({"not_before": []}, "must be a time"),
        ({"constraints": {"max_duration": "x"}}, "'x' is not a duration"),
    ],
)
def test_a_bad_time_is_refused_with_its_value(mia: Client, fields: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        mia.add("x", **fields)


# --- many at once -------------------------------------------------------------------------------------------


def test_many_tasks_are_created_in_batches_of_a_thousand(mia: Client) -> None:
    lines = mia.add_many(NewTask(title=f"T{n}") for n in range(2100))
    assert [line["title"] for line in lines] == [f"T{n}" for n in range(2100)]
    assert mia.status()["tasks"] == {"ready": 2100}
    created = mia.log(last=False, limit=1000, kind="task.created")
    batches = {event["causation_id"] for event in created}
    assert len(batches) == 1  # the first thousand events are of one command


def test_a_batch_is_created_whole_or_not_at_all(mia: Client) -> None:
    tasks = [NewTask(title=f"T{n}") for n in range(1200)]
    tasks[1100] = NewTask(title="")
    with pytest.raises(TenureError) as error:
        mia.add_many(tasks)
    assert error.value.__notes__ == ["tasks 1001 to 1200 were not created; those before were"]
    assert mia.status()["tasks"] == {"ready": 1000}


def test_a_repeated_call_creates_nothing_twice(mia: Client) -> None:
    tasks = [NewTask(title=f"T{n}") for n in range(1001)]
    assert mia.add_many(tasks, request_id="once") == mia.add_many(tasks, request_id="once")
    assert mia.status()["tasks"] == {"ready": 1001}


# --- waiting ------------------------------------------------------------------------------------------------


def test_a_caller_waits_for_the_end_of_a_task(mia: Client, url: str) -> None:
    added = mia.add("Long", type="t")
    ends: list[Any] = []
    with Client(url, "shop") as other:
        waiting = threading.Thread(target=lambda: ends.append(other.wait("A-001", timeout=PATIENCE)))
        waiting.start()
        mia.submit(mia.claim().check().receipt, {"n": 1}, "done it").check()
        waiting.join(PATIENCE)
    (ended,) = ends
    assert (ended.ok, ended.state, ended.data, ended.summary) == (True, "completed", {"n": 1}, "done it")
    assert mia.handle(added.task["id"]).result(timeout="5s") == {"n": 1}


def test_a_wait_ends_with_a_failure_or_its_time(mia: Client) -> None:
    mia.add("One")
    mia.add("Two")
    with pytest.raises(TimeoutError, match="A-001-one is ready"):
        mia.wait("A-001", timeout=0.01)
    mia.cancel("A-001", "no need")
    mia.fail(mia.claim("A-002").check().receipt, "broken", "permanent")
    for key, why in (("A-001", "no need"), ("A-002", "broken")):
        ended = mia.wait(key)
        assert not ended.ok
        with pytest.raises(tenure.TaskFailed, match=why):
            ended.check()
    with pytest.raises(NotFound):
        mia.wait("A-404")


def test_an_async_caller_waits_too(url: str) -> None:
    async def play() -> Any:
        async with AsyncClient(url, "shop", agent="mia", create=True) as client:
            lines = await client.add_many([NewTask(title="One"), NewTask(title="Two")])
            waiting = asyncio.create_task(client.wait(lines[0]["id"], timeout=PATIENCE))
            grant = (await client.claim("A-001")).check()
            (await client.submit(grant.receipt, 7)).check()
            return (await waiting).data

    assert asyncio.run(play()) == 7


# --- the store ----------------------------------------------------------------------------------------------


def test_a_store_in_memory_is_shared_by_name_until_the_last_one_closes_it() -> None:
    with Client("memory://one", create=True) as first:
        with Client("memory://one") as second, Client("memory://two", create=True) as other:
            first.add("One")
            assert len(second.tasks()) == 1
            assert other.tasks() == []
            receipt = second.claim().check().receipt
            second.put_artifact(receipt, "a.txt", b"bytes")
        assert first.get_artifact("A-001", "a.txt").read() == b"bytes"
    with Client("memory://one", create=True) as again:
        assert again.tasks() == []
    with Client("memory://", create=True) as mine, Client("memory://", create=True) as yours:
        mine.add("Mine")
        assert yours.tasks() == []


def test_a_project_is_created_where_that_is_asked_for(url: str) -> None:
    with Client(url, "new") as client, pytest.raises(NotFound):
        client.add("One")
    with Client(url, "new", create=True) as client:
        client.add("One")
    with Client(url, "new", create=True) as client:
        assert len(client.tasks()) == 1


# --- functions ----------------------------------------------------------------------------------------------


def test_a_call_of_a_function_is_enqueued_with_its_arguments(mia: Client, url: str) -> None:
    worker = Worker(url, "shop", concurrency=2)

    @worker.task("resize")
    def resize(ctx: tenure.Context, image: str, width: int = 100, *, tags: list[str] | None = None) -> dict[str, Any]:
        """Make it smaller."""
        return {"image": image, "width": width, "tags": tags, "attempt": ctx.attempt}

    @worker.task("greet")
    async def greet(ctx: tenure.AsyncContext, name: str) -> str:
        return f"hello {name}"

    handle = resize.configure(priority="high", tags=["images"]).enqueue("a.png", tags=["x"])
    shown = mia.show(handle.id)
    assert (shown["title"], shown["type"], shown["priority"], list(shown["tags"])) == (
        "resize", "resize", 20, ["images"],
    )  # fmt: skip
    hello = asyncio.run(greet.enqueue_async("mia"))
    with running(worker):
        assert handle.result(timeout=PATIENCE) == {"image": "a.png", "width": 100, "tags": ["x"], "attempt": 1}
        assert asyncio.run(hello.result_async(timeout=PATIENCE)) == "hello mia"
    assert (resize.__name__, resize.__doc__, repr(handle)) == ("resize", "Make it smaller.", f"<Handle {handle.key}>")


def test_no_argument_is_in_the_title_or_the_key_of_a_call(mia: Client, url: str) -> None:
    worker = Worker(url, "shop")

    @worker.task("login")
    def login(ctx: tenure.Context, user: str, code: str = "") -> None:
        """Sign in."""

    first = login.enqueue("ann", code="hunter2")
    named = login.configure(title="Sign ann in").enqueue("ann", code="hunter2")
    assert [mia.show(one.id)["title"] for one in (first, named)] == ["login", "Sign ann in"]
    for one in (first, named):
        assert mia.show(one.id)["spec"]["arguments"] == {"user": "ann", "code": "hunter2"}
        assert "hunter2" not in f"{one!r} {one.key} {mia.task_log(one.id)}"
    worker.close()


def test_arguments_that_do_not_fit_are_refused(mia: Client, url: str) -> None:
    worker = Worker(url, "shop")

    @worker.task("add")
    def add(ctx: tenure.Context, a: int, b: int) -> int:
        return a + b

    with pytest.raises(InvalidInput, match="missing a required argument: 'b'"):
        add.enqueue(1)  # type: ignore[call-arg]
    worker.task()(lambda ctx: None)
    bad = mia.add("by hand", type="add", spec={"arguments": {"a": 1, "c": 2}})
    worker.run(until_empty=True)
    worker.close()
    with pytest.raises(tenure.TaskFailed, match="do not fit add"):
        mia.handle(bad.task["id"]).result()


def test_a_failed_function_leaves_its_trace(mia: Client, url: str) -> None:
    worker = Worker(url, "shop")

    @worker.task("t")
    def work(ctx: tenure.Context) -> None:
        raise ValueError("password=hunter2 is wrong")

    mia.add("Work", type="t", max_attempts=1)
    worker.run(until_empty=True)
    worker.close()
    (entry,) = mia.history("A-001")
    assert "in work" in entry["trace"]
    assert "attempt.py" not in entry["trace"]
    assert "hunter2" not in entry["trace"]
