"""Bad input: a typed error that names what and where, and not a byte stored. On real SQLite."""

from pathlib import Path
from typing import Any

import pytest

from tenure.core import commands as c
from tenure.core import inputs
from tenure.core.commands import Command, Dependency, NewTask
from tenure.core.errors import TenureError, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.records import Claim, RetryPolicy
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene, forged

KIB = 1024
NAN, INFINITE = float("nan"), float("inf")


def refused(scene: Scene, command: Command, code: str, *words: str) -> TenureError:
    """The error of a command that must change nothing."""
    before = scene.tables()
    (answer,) = scene.run(command)
    assert isinstance(answer, TenureError), answer
    assert answer.code == code, answer
    assert answer.definite
    for word in words:
        assert word in answer.message, answer.message
    assert len(answer.message) < 1000
    assert scene.tables() == before
    return answer


def add(**fields: Any) -> Command:
    return c.Add(project=PROJECT, task=NewTask(**{"title": "x", **fields}))


def claim(**fields: Any) -> Command:
    return c.ClaimTask(**{"project": PROJECT, "task": "A-001", "agent": "ann", "session": "s", **fields})


# --- sizes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code", "word"),
    [
        ({"title": "x" * 256}, "INVALID_INPUT", "title"),
        ({"title": ""}, "INVALID_INPUT", "title"),
        ({"title": " \n"}, "INVALID_INPUT", "title"),
        ({"description": "x" * (64 * KIB + 1)}, "TOO_LARGE", "description"),
        ({"description": "é" * (32 * KIB + 1)}, "TOO_LARGE", "description"),
        ({"spec": {"prompt": "x" * 256 * KIB}}, "TOO_LARGE", "spec"),
        ({"metadata": {"x": "y" * 64 * KIB}}, "TOO_LARGE", "metadata"),
        ({"tags": ("x",) * 101}, "TOO_LARGE", "tag"),
        ({"tags": ("x" * 201,)}, "INVALID_INPUT", "tag"),
        ({"tags": ("",)}, "INVALID_INPUT", "tag"),
        ({"touches": tuple(f"a{n}" for n in range(101))}, "TOO_LARGE", "touches"),
        ({"type": "x" * 201}, "INVALID_INPUT", "type"),
        ({"type": ""}, "INVALID_INPUT", "type"),
        ({"depends_on": ("A-001",) * 1001}, "TOO_LARGE", "depends_on"),
        ({"idempotency_key": ""}, "INVALID_INPUT", "idempotency_key"),
        ({"idempotency_key": "x" * 256}, "INVALID_INPUT", "idempotency_key"),
        ({"name": "x" * 256}, "INVALID_INPUT", "name"),
        ({"key": f"B-001-{'x' * 51}"}, "INVALID_INPUT", "slug"),
        ({"constraints": {"required_capabilities": ["x"] * 101}}, "TOO_LARGE", "required_capabilities"),
        ({"output": {"summary": "x" * 70 * KIB}}, "TOO_LARGE", "output"),
    ],
)
def test_a_task_over_its_size_is_refused(scene: Scene, fields: dict[str, Any], code: str, word: str) -> None:
    refused(scene, add(**fields), code, word)


def test_what_is_just_within_its_size_is_taken(scene: Scene) -> None:
    key = scene.add(
        "x" * 255, description="x" * 64 * KIB, spec={"p": "x" * (256 * KIB - 8)}, metadata={"m": "x" * (64 * KIB - 8)},
        tags=("x" * 200,), depends_on=("A-001",), idempotency_key="x" * 255,
    )  # fmt: skip
    assert scene.state(key) == "pending"


@pytest.mark.parametrize(
    ("command", "word"),
    [
        (lambda r: c.SaveCheckpoint(project=PROJECT, receipt=r, data={"x": "y" * 64 * KIB}), "checkpoint"),
        (lambda r: c.Submit(project=PROJECT, receipt=r, data="x" * KIB * KIB), "result"),
        (lambda r: c.Submit(project=PROJECT, receipt=r, data=1, summary="x" * (64 * KIB + 1)), "summary"),
        (lambda r: c.Fail(project=PROJECT, receipt=r, message="x" * (64 * KIB + 1)), "message"),
        (lambda r: c.Release(project=PROJECT, receipt=r, reason="x" * (64 * KIB + 1)), "reason"),
        (lambda r: c.Ask(project=PROJECT, receipt=r, question="x" * (64 * KIB + 1)), "question"),
        (lambda r: c.Progress(project=PROJECT, receipt=r, step="x" * 1001), "step"),
        (lambda r: c.Note(project=PROJECT, task="A-001", text="x" * (64 * KIB + 1)), "note"),
        (lambda r: c.Answer(project=PROJECT, task="A-001", text="x" * (64 * KIB + 1)), "answer"),
        (lambda r: c.Cancel(project=PROJECT, task="A-001", reason="x" * 1001), "reason"),
        (lambda r: c.Pause(project=PROJECT, task="A-001", reason="x" * 1001), "reason"),
        (lambda r: c.Retry(project=PROJECT, task="A-001", note="x" * (64 * KIB + 1)), "note"),
        (lambda r: c.Send(project=PROJECT, sender="a", text="x" * (64 * KIB + 1)), "message"),
        (lambda r: c.StopLine(project=PROJECT, scope="project:", reason="x" * 1001), "reason"),
        (lambda r: c.StopLine(project=PROJECT, scope="track:" + "B" * 1000), "scope"),
        (lambda r: c.Plan(project=PROJECT, tasks=(NewTask(title="x"),), title="x" * 1001), "title"),
        (lambda r: c.DefineTrack(project=PROJECT, code="Q", name="x" * 256), "name"),
        (lambda r: c.DefineTrack(project=PROJECT, code="Q", name="x", purpose="x" * (64 * KIB + 1)), "purpose"),
        (lambda r: c.Note(project=PROJECT, task="A-001", text="x", request_id="x" * 300), "request_id"),
        (lambda r: c.Note(project=PROJECT, task="A-001", text="x", trace_id="x" * 300), "trace_id"),
        (lambda r: c.ClaimTask(project=PROJECT, task="A-002", agent="a", session="s", user="x" * 300), "user"),
        (lambda r: c.Register(project=PROJECT, agent="a", host="x" * 300), "host"),
        (lambda r: c.Register(project=PROJECT, agent="a", type="x" * 300), "type"),
        (lambda r: c.Register(project=PROJECT, agent="a", region="x" * 300), "region"),
        (lambda r: c.Register(project=PROJECT, agent="a", capabilities=("x",) * 101), "capabilities"),
        (lambda r: c.Heartbeat(project=PROJECT, agent="a", step="x" * 1001), "step"),
        (lambda r: c.Fail(project=PROJECT, receipt=r, error_class="rate_limit", model="x" * 300), "model"),
        (lambda r: c.Reserve(project=PROJECT, patterns=("x",) * 101, agent="a", session="s"), "pattern"),
        (lambda r: c.Note(project=PROJECT, task="x" * 10**6, text="x"), "task"),
    ],
)
def test_a_text_over_its_size_is_refused(scene: Scene, command: Any, word: str) -> None:
    receipt = scene.take("A-002")
    refused(scene, command(receipt), "TOO_LARGE", word)


def test_a_command_over_eight_megabytes_is_refused(scene: Scene) -> None:
    refused(scene, c.Submit(project=PROJECT, receipt="x", data="x" * 9 * KIB * KIB), "TOO_LARGE", "submit")


def test_a_batch_over_its_bounds_is_refused(scene: Scene) -> None:
    before = scene.tables()
    with pytest.raises(TooLarge, match=r"at most 500 commands \(got 501\)"):
        scene.run(*[add()] * 501)
    receipt = scene.take("A-001")
    before = scene.tables()
    with pytest.raises(TooLarge, match="batch"):
        scene.run(*[c.Submit(project=PROJECT, receipt=receipt, data="x" * 1000 * KIB)] * 9)
    assert scene.tables() == before
    assert len([a for a in scene.run(*[add()] * 500) if isinstance(a, Outcome)]) == 500


def test_a_plan_with_a_hundred_thousand_tasks_is_refused(scene: Scene) -> None:
    tasks = tuple(NewTask(title=f"t{n}") for n in range(100_000))
    refused(scene, c.Plan(project=PROJECT, tasks=tasks), "TOO_LARGE", "plan")


def test_a_plan_over_its_count_is_refused_with_the_way_on(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "LARGEST_PLAN", 50)
    tasks = tuple(NewTask(title=f"t{n}") for n in range(51))
    error = refused(scene, c.Plan(project=PROJECT, tasks=tasks), "TOO_LARGE", "51", "50")
    assert error.hint


# --- text that is no text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["\ud800", "a\udfffb"])
@pytest.mark.parametrize(
    "make",
    [
        lambda t: add(title=t),
        lambda t: add(spec={"prompt": t}),
        lambda t: add(metadata={t: 1}),
        lambda t: add(tags=(t,)),
        lambda t: claim(agent=t),
        lambda t: claim(task=t),
        lambda t: claim(request_id=t),
        lambda t: c.Submit(project=PROJECT, receipt="x", data=[{"a": t}]),
        lambda t: c.Send(project=PROJECT, sender="a", text=t),
        lambda t: c.Edit(project=PROJECT, task="A-001", changes={"title": t}),
        lambda t: c.Note(project=t, task="A-001", text="x"),
    ],
)
def test_text_that_is_not_unicode_is_refused(scene: Scene, make: Any, bad: str) -> None:
    refused(scene, make(bad), "INVALID_INPUT", "UTF-8")


@pytest.mark.parametrize(
    "make",
    [
        lambda t: add(title=t),
        lambda t: add(description=t),
        lambda t: add(spec={"prompt": [t]}),
        lambda t: add(metadata={t: 1}),
        lambda t: claim(session=t),
        lambda t: c.SaveCheckpoint(project=PROJECT, receipt="x", data={"a": {"b": [t]}}),
        lambda t: c.Note(project=PROJECT, task="A-001", text=t),
    ],
)
def test_a_nul_is_refused_wherever_it_hides(scene: Scene, make: Any) -> None:
    refused(scene, make("a\0b"), "INVALID_INPUT", "NUL")


def test_text_that_speaks_of_a_nul_is_no_nul(scene: Scene) -> None:
    key = scene.add("the escape \\u0000 in JSON")
    assert scene.state(key) == "ready"


@pytest.mark.parametrize("make", [lambda d: add(spec={"x": d}), lambda d: add(metadata={"x": d})])
@pytest.mark.parametrize("depth", [120, 900, 50_000])
@pytest.mark.parametrize("kind", ["list", "dict"])
def test_json_that_is_nested_too_deep_is_refused(scene: Scene, make: Any, depth: int, kind: str) -> None:
    refused(scene, make(nested(depth, kind)), "INVALID_INPUT")


@pytest.mark.parametrize("kind", ["list", "dict"])
@pytest.mark.parametrize("depth", [120, 900, 50_000])
def test_a_result_that_is_nested_too_deep_is_refused_and_the_claim_stays(scene: Scene, kind: str, depth: int) -> None:
    receipt = scene.take("A-001")
    refused(scene, c.Submit(project=PROJECT, receipt=receipt, data=nested(depth, kind)), "INVALID_INPUT", "deep")
    assert scene.submit(receipt, nested(60, kind)).outcome == "ACCEPTED"


def nested(depth: int, kind: str) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"x": value}
    return value


# --- numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lease", [-1, 0, 0.5, NAN, INFINITE, -INFINITE, 1e300, 31 * 86400, 2**62])
def test_a_lease_that_cannot_be_is_refused(scene: Scene, lease: float) -> None:
    refused(scene, claim(lease=lease), "INVALID_INPUT", "lease")
    refused(scene, c.ClaimNext(project=PROJECT, agent="a", session="s", lease=lease), "INVALID_INPUT", "lease")
    refused(
        scene,
        c.Reserve(project=PROJECT, patterns=("a",), agent="a", session="s", lease=lease),
        "INVALID_INPUT",
        "lease",
    )
    receipt = scene.take("A-001")
    refused(scene, c.Renew(project=PROJECT, receipt=receipt, lease=lease), "INVALID_INPUT", "lease")


@pytest.mark.parametrize("number", [NAN, INFINITE, -1, 1e18])
@pytest.mark.parametrize(
    "make",
    [
        lambda r, n: c.Fail(project=PROJECT, receipt=r, retry_after=n),
        lambda r, n: c.Progress(project=PROJECT, receipt=r, done_in=n),
        lambda r, n: c.Assign(project=PROJECT, task="A-002", agent="a", seconds=n),
        lambda r, n: c.Reassign(project=PROJECT, task="A-002", agent="a", seconds=n),
        lambda r, n: c.Lead(project=PROJECT, holder="a", lease=n),
        lambda r, n: c.Register(project=PROJECT, agent="a", heartbeat=n),
        lambda r, n: c.Register(project=PROJECT, agent="a", stale_after=n),
        lambda r, n: c.DefineProject(project=PROJECT, boost=n),
        lambda r, n: add(boost=n),
        lambda r, n: add(constraints={"max_duration": n}),
        lambda r, n: c.Plan(project=PROJECT, tasks=(NewTask(title="x", boost=n),)),
        lambda r, n: c.Spawn(project=PROJECT, receipt=r, tasks=(NewTask(title="x", boost=n),)),
        lambda r, n: c.Edit(project=PROJECT, task="A-001", changes={"boost": n}),
        lambda r, n: add(retry=RetryPolicy(multiplier=n)),
        lambda r, n: add(retry=RetryPolicy(jitter=n)),
    ],
)
def test_a_duration_that_cannot_be_is_refused(scene: Scene, make: Any, number: float) -> None:
    receipt = scene.take("A-001")
    refused(scene, make(receipt, number), "INVALID_INPUT")


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, 2**64, 10**40, -(2**63) - 1])
@pytest.mark.parametrize(
    "make",
    [
        lambda r, n: c.Heartbeat(project=PROJECT, agent="a", memory_mb=n),
        lambda r, n: c.Register(project=PROJECT, agent="a", pid=n),
        lambda r, n: c.Register(project=PROJECT, agent="a", pid_start=n),
        lambda r, n: c.Register(project=PROJECT, agent="a", max_concurrent_tasks=n),
        lambda r, n: c.ClaimNext(project=PROJECT, agent="a", session="s", n=n),
        lambda r, n: c.Progress(project=PROJECT, receipt=r, percent=n),
        lambda r, n: c.DefineProject(project=PROJECT, limits={"max_concurrent_claims": n}),
        lambda r, n: add(deadline=n),
        lambda r, n: add(not_before=n),
        lambda r, n: add(max_attempts=n),
        lambda r, n: add(priority=n),
        lambda r, n: add(retry=RetryPolicy(cap=n)),
        lambda r, n: c.Lead(project=PROJECT, holder="a", term=n),
    ],
)
def test_a_number_beyond_all_columns_is_refused(scene: Scene, make: Any, number: int) -> None:
    receipt = scene.take("A-001")
    refused(scene, make(receipt, number), "INVALID_INPUT")


def test_huge_numbers_in_free_data_come_back_or_are_refused(scene: Scene) -> None:
    receipt = scene.take("A-001")
    refused(scene, c.Submit(project=PROJECT, receipt=receipt, data=10**5000), "INVALID_INPUT")
    assert scene.submit(receipt, {"n": 10**40}).outcome == "ACCEPTED"
    assert scene.results("A-001")[0].data == {"n": 10**40}


@pytest.mark.parametrize("number", [NAN, INFINITE])
def test_what_json_cannot_say_is_refused_in_free_data(scene: Scene, number: float) -> None:
    receipt = scene.take("A-001")
    for data in (number, [1, {"x": number}]):
        refused(scene, c.Submit(project=PROJECT, receipt=receipt, data=data), "INVALID_INPUT", "finite")
    refused(scene, c.SaveCheckpoint(project=PROJECT, receipt=receipt, data={"x": [number]}), "INVALID_INPUT", "finite")
    refused(scene, add(metadata={"x": number}), "INVALID_INPUT", "finite")


@pytest.mark.parametrize("value", [-1, 101, "101", "urgent", "", "1.5", True, [], "00050"])
def test_a_priority_that_cannot_be_is_refused(scene: Scene, value: Any) -> None:
    refused(scene, add(priority=value), "INVALID_INPUT")
    refused(scene, c.Edit(project=PROJECT, task="A-001", changes={"priority": value}), "INVALID_INPUT")


@pytest.mark.parametrize("value", [0.2, 0.05, 11, -0.1])
def test_a_boost_that_cannot_be_is_refused(scene: Scene, value: float) -> None:
    refused(scene, add(boost=value), "INVALID_INPUT", "boost")


@pytest.mark.parametrize(
    ("limits", "word"),
    [
        ({"max_claims": 5}, "max_claims"),
        ({"max_lease": 0}, "max_lease"),
        ({"max_lease": -1}, "max_lease"),
        ({"max_lease": "many"}, "limits"),
        ({"max_lease": 1.5}, "limits"),
        ({"min_lease": 100, "max_lease": 50}, "min_lease"),
        ({"min_lease": 40 * 86400}, "min_lease"),
    ],
)
def test_a_limit_that_cannot_be_is_refused(scene: Scene, limits: dict[str, Any], word: str) -> None:
    refused(scene, c.DefineProject(project=PROJECT, limits=limits), "INVALID_INPUT", word)


# --- values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"track": "b"}, "track"),
        ({"track": "QQ"}, "QQ"),
        ({"key": "B-003"}, "key"),
        ({"key": "B-000-zero"}, "key"),
        ({"key": "B-003-x::1"}, "key"),
        ({"key": "b-003-x"}, "key"),
        ({"key": "B-99999999999-x"}, "key"),
        ({"key": "B-003-x", "track": "C"}, "track"),
        ({"key": "B-003-x", "parent": "A-001"}, "key"),
        ({"on_lost": "panic"}, "on_lost"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"max_attempts": 1001}, "max_attempts"),
        ({"deadline": -1}, "deadline"),
        ({"not_before": -1}, "not_before"),
        ({"retry": RetryPolicy(strategy="linear")}, "strategy"),
        ({"retry": RetryPolicy(initial_delay=-1)}, "initial_delay"),
        ({"retry": RetryPolicy(multiplier=0.5)}, "multiplier"),
        ({"retry": RetryPolicy(jitter=1.5)}, "jitter"),
        ({"retry": RetryPolicy(retry_on=("bad luck",))}, "bad luck"),
        ({"constraints": {"max_coast_usd": 1}}, "did you mean max_cost_usd"),
        ({"constraints": {"region": 5}}, "region"),
        ({"constraints": {"max_duration": "1h"}}, "max_duration"),
        ({"constraints": {"max_duration": True}}, "max_duration"),
        ({"constraints": {"needs": ["a|b"]}}, "needs"),
        ({"constraints": {"required_capabilities": [1]}}, "required_capabilities"),
        ({"constraints": {"model_preferences": "opus"}}, "model_preferences"),
        ({"output": {"type": "pdf"}}, "output.type"),
        ({"output": {"validation": "json-schema"}}, "schema"),
        ({"output": {"validation": "jsonschema"}}, "json-schema"),
        ({"output": {"validation": ""}}, "validation"),
        ({"output": {"colour": "blue"}}, "colour"),
        ({"spec": {"context_refs": "task:A-001:output"}}, "context_refs"),
        ({"spec": {"context_refs": [1]}}, "context_refs"),
        ({"touches": ("/etc/passwd",)}, "/etc/passwd"),
        ({"touches": ("../other",)}, "../other"),
        ({"constraints": {"needs": ["../other"]}}, "../other"),
        ({"depends_on": ("A-999",)}, "A-999"),
        ({"depends_on": ("",)}, "''"),
        ({"depends_on": (Dependency(task="A-001", on_failure="explode"),)}, "on_failure"),
    ],
)
def test_a_value_that_cannot_be_is_named(scene: Scene, fields: dict[str, Any], word: str) -> None:
    refused(scene, add(**fields), "INVALID_INPUT", word)
    plan = c.Plan(project=PROJECT, tasks=(NewTask(title="good"), NewTask(**{"title": "bad", **fields})))
    refused(scene, plan, "INVALID_INPUT", word)


@pytest.mark.parametrize(
    ("command", "code", "word"),
    [
        (add(parent="A-999"), "NOT_FOUND", "A-999"),
        (add(depends_on=("A-0",)), "AMBIGUOUS", "A-0"),
        (claim(task="A-999"), "NOT_FOUND", "A-999"),
        (claim(task="A-" + "9" * 250), "NOT_FOUND", "A-9"),
        (claim(task="A-001::" + "9" * 200), "NOT_FOUND", "A-001"),
        (claim(task="A-" + "9" * 5000), "TOO_LARGE", "task"),
        (c.DefineTrack(project=PROJECT, code="Q" * 33, name="x"), "INVALID_INPUT", "track"),
        (claim(agent=""), "INVALID_INPUT", "agent"),
        (claim(agent="a b"), "INVALID_INPUT", "agent"),
        (claim(agent="x" * 129), "INVALID_INPUT", "agent"),
        (claim(session="a/b"), "INVALID_INPUT", "session"),
        (c.ClaimNext(project=PROJECT, agent="a", session="s", n=0), "INVALID_INPUT", "got 0"),
        (c.ClaimNext(project=PROJECT, agent="a", session="s", n=101), "INVALID_INPUT", "got 101"),
        (c.Publish(project=PROJECT), "INVALID_INPUT", "publish"),
        (c.Publish(project=PROJECT, task="A-001", dag="d"), "INVALID_INPUT", "publish"),
        (c.Publish(project=PROJECT, dag="dag_nothing"), "NOT_FOUND", "dag_nothing"),
        (c.Plan(project=PROJECT, tasks=()), "INVALID_INPUT", "plan"),
        (c.Plan(project=PROJECT, tasks=(NewTask(title="x"),), name="a b"), "INVALID_INPUT", "plan"),
        (c.Plan(project=PROJECT, tasks=(NewTask(title="x"),) * 2, name="p"), "INVALID_INPUT", "'x'"),
        (c.Link(project=PROJECT, task="A-001", needs="A-002", on_failure="x"), "INVALID_INPUT", "on_failure"),
        (c.Unlink(project=PROJECT, task="A-001", needs="A-002"), "NOT_FOUND", "A-002"),
        (c.Edit(project=PROJECT, task="A-001", changes={}), "INVALID_INPUT", "no changes"),
        (c.Edit(project=PROJECT, task="A-001", changes={"state": "completed"}), "INVALID_INPUT", "state"),
        (c.Edit(project=PROJECT, task="A-001", changes={"titel": "x"}), "INVALID_INPUT", "did you mean title"),
        (c.Edit(project=PROJECT, task="A-001", changes={"title": 5}), "INVALID_INPUT", "title"),
        (c.Edit(project=PROJECT, task="A-001", changes={"touches": ["../x"]}), "INVALID_INPUT", "../x"),
        (c.Edit(project=PROJECT, task="A-001", changes={"spec": []}), "INVALID_INPUT", "spec"),
        (c.Note(project=PROJECT, task="A-001", text=" "), "INVALID_INPUT", "note"),
        (c.Answer(project=PROJECT, task="A-001", text=""), "INVALID_INPUT", "answer"),
        (c.Send(project=PROJECT, sender="a", text=""), "INVALID_INPUT", "message"),
        (c.Send(project=PROJECT, sender="a b", text="x"), "INVALID_INPUT", "sender"),
        (c.Send(project=PROJECT, sender="a", text="x", to="@everyone"), "INVALID_INPUT", "@everyone"),
        (c.Send(project=PROJECT, sender="a", text="x", to=""), "INVALID_INPUT", "recipient"),
        (c.Send(project=PROJECT, sender="a", text="x", type="shout"), "INVALID_INPUT", "shout"),
        (c.Heartbeat(project=PROJECT, agent="a", health="great"), "INVALID_INPUT", "health"),
        (c.Heartbeat(project=PROJECT, agent=""), "INVALID_INPUT", "agent"),
        (c.Register(project=PROJECT, agent="a", max_concurrent_tasks=0), "INVALID_INPUT", "max_concurrent_tasks"),
        (c.Register(project=PROJECT, agent="@all"), "INVALID_INPUT", "@all"),
        (c.Leave(project=PROJECT, session="nobody"), "NOT_FOUND", "nobody"),
        (c.Reserve(project=PROJECT, patterns=(), agent="a", session="s"), "INVALID_INPUT", "pattern"),
        (c.Reserve(project=PROJECT, patterns=("/x",), agent="a", session="s"), "INVALID_INPUT", "/x"),
        (c.Reserve(project=PROJECT, patterns=("x",), agent="a", session="s", mode="greedy"), "INVALID_INPUT", "mode"),
        (c.StopLine(project=PROJECT, scope="everything"), "INVALID_INPUT", "everything"),
        (c.StopLine(project=PROJECT, scope="track:"), "INVALID_INPUT", "track:"),
        (c.StopLine(project=PROJECT, scope="project:x"), "INVALID_INPUT", "project:x"),
        (c.DefineTrack(project=PROJECT, code="b", name="x"), "INVALID_INPUT", "track"),
        (c.DefineTrack(project=PROJECT, code="Q", name=""), "INVALID_INPUT", "name"),
        (c.DefineProject(project="a b"), "INVALID_INPUT", "project"),
        (c.DefineProject(project=""), "INVALID_INPUT", "project"),
        (c.DefineProject(project=PROJECT, default_track="Q"), "INVALID_INPUT", "default_track"),
        (c.Lead(project=PROJECT, holder=""), "INVALID_INPUT", "holder"),
        (c.Undo(project=PROJECT, command_id=""), "NOT_FOUND", "command"),
        (c.Adopt(project=PROJECT, task="A-001"), "NOT_FOUND", "A-001"),
    ],
)
def test_a_command_that_cannot_be_is_named(scene: Scene, command: Command, code: str, word: str) -> None:
    refused(scene, command, code, word)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda r: c.Fail(project=PROJECT, receipt=r, error_class="bad luck"), "bad luck"),
        (lambda r: c.Progress(project=PROJECT, receipt=r, percent=101), "percent"),
        (lambda r: c.Progress(project=PROJECT, receipt=r, percent=-1), "percent"),
        (lambda r: c.Ask(project=PROJECT, receipt=r, question=""), "question"),
        (lambda r: c.Spawn(project=PROJECT, receipt=r, tasks=()), "spawn"),
        (lambda r: c.Spawn(project=PROJECT, receipt=r, tasks=(NewTask(title="x"),) * 2), "'x'"),
        (lambda r: c.Spawn(project=PROJECT, receipt=r, tasks=(NewTask(title="x", parent="A-002"),)), "parent"),
        (lambda r: c.Spawn(project=PROJECT, receipt=r, tasks=(NewTask(title="x", key="B-001-x"),)), "key"),
        (lambda r: c.Spawn(project=PROJECT, receipt=r, tasks=(NewTask(title="x", idempotency_key="k"),)), "k"),
    ],
)
def test_a_holders_command_that_cannot_be_leaves_the_claim(scene: Scene, make: Any, word: str) -> None:
    scene.add(idempotency_key="k")
    receipt = scene.take("A-001")
    refused(scene, make(receipt), "INVALID_INPUT", word)
    assert scene.submit(receipt).outcome == "ACCEPTED"


# --- types ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        claim(lease="300"),
        claim(lease=[300]),
        claim(task=5),
        claim(agent=None),
        c.ClaimNext(project=PROJECT, agent="a", session="s", n="2"),  # type: ignore[arg-type]
        c.ClaimNext(project=PROJECT, agent="a", session="s", tracks="B"),  # type: ignore[arg-type]
        c.Progress(project=PROJECT, receipt="x", percent=5.5),  # type: ignore[arg-type]
        c.Renew(project=PROJECT, receipt=b"x"),  # type: ignore[arg-type]
        c.SaveCheckpoint(project=PROJECT, receipt="x", data=[1]),  # type: ignore[arg-type]
        c.SaveCheckpoint(project=PROJECT, receipt="x", data={"x": object()}),
        c.Submit(project=PROJECT, receipt="x", data={1, 2}),
        c.Submit(project=PROJECT, receipt="x", data={(1, 2): 3}),
        c.Submit(project=PROJECT, receipt="x", data=lambda: 1),
        c.Add(project=PROJECT, task="x"),  # type: ignore[arg-type]
        c.Add(project=PROJECT, task=None),  # type: ignore[arg-type]
        c.Plan(project=PROJECT, tasks="x"),  # type: ignore[arg-type]
        c.Plan(project=PROJECT, tasks=(None,)),  # type: ignore[arg-type]
        c.Note(project=5, task="A-001", text="x"),  # type: ignore[arg-type]
        c.Note(project=None, task="A-001", text="x"),  # type: ignore[arg-type]
        c.Edit(project=PROJECT, task="A-001", changes="title=x"),  # type: ignore[arg-type]
        c.Edit(project=PROJECT, task="A-001", changes={5: "x"}),  # type: ignore[dict-item]
        add(depends_on="A-001"),
        add(tags="x"),
        add(max_attempts="3"),
        add(draft="yes"),
        add(retry={"strategy": "fixed", "colour": "blue"}),
        c.DefineProject(project=PROJECT, agents_may_operate="yes"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_type_is_refused(scene: Scene, command: Command) -> None:
    refused(scene, command, "INVALID_INPUT")


def test_what_is_no_command_is_refused(scene: Scene) -> None:
    for thing in (None, 5, "claim", NewTask(title="x"), Command(project=PROJECT), Claim):
        refused(scene, thing, "INVALID_INPUT", "is not a command")  # type: ignore[arg-type]


# --- receipts of others ---------------------------------------------------------------------------------------


def test_a_foreign_receipt_is_refused_by_every_holders_verb(scene: Scene, tmp_path: Path) -> None:
    clock = FakeClock()
    (tmp_path / "other").mkdir()
    other = Scene(Sqlite(str(tmp_path / "other" / "store.db"), clock=clock), clock, seed=7)
    other.add()
    foreign = other.take("A-001")
    scene.take("A-001")
    before = scene.tables()
    for kind in (c.Renew, c.Start, c.Submit, c.Release, c.Wait, c.Progress, c.Fail):
        assert scene.do(kind, receipt=foreign).outcome == "STALE_EPOCH"
    own_epoch = scene.last_claim("A-001").epoch
    assert scene.do(c.Renew, receipt=forged(foreign, epoch=own_epoch)).outcome == "SESSION_MISMATCH"
    assert scene.tables() == before
    other.store.close()


@pytest.mark.parametrize(
    "text",
    ["", "x", "A-001@1", "A-001@1:", "A-001@1:" + "0" * 31, "@", "A-001@one:" + "0" * 32, "A" * 10**6, "A-001@1:é"],
)
def test_a_malformed_receipt_is_an_error(scene: Scene, text: str) -> None:
    for kind in (c.Renew, c.Submit, c.Unreserve, c.RenewReservation):
        refused(scene, kind(project=PROJECT, receipt=text), "INVALID_INPUT", "receipt")  # type: ignore[call-arg]
