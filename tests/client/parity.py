"""One story with every verb and every look, told by any client; and what it answered, made comparable."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from tenure.client import AsyncClient, Client
from tenure.client.handles import Ended
from tenure.client.verbs import Verbs
from tenure.core import commands as c
from tenure.core.commands import NewTask, NewTrack, Process, Totals
from tenure.core.errors import TenureError
from tenure.core.land_request import LandRequest
from tenure.core.records import Watch

OWN = {"do", "query", "claim_or_wait"}  # under every other
VERBS = {name for name in dir(Verbs) if not name.startswith("_")} - OWN - {"project", "agent", "session", "user"}

_ID = re.compile(r"\b([a-z]+)_[0-9A-HJKMNP-TV-Z]{26}\b")
_TOKEN = re.compile(r"@(\d+):[0-9A-Za-z]{40}")
_PRODUCT = re.compile(r"(-gen\d+)-[0-9a-f]{6}\b")
_TICK = re.compile(r"\d{4}-\d\d-\d\d(T[0-9:.]+(Z|[+-]\d\d:\d\d))?")
_SEQUENCE = re.compile(r"\bsequence \d+")
_MEASURED = frozenset({
    "lease", "retry_in", "age_minutes", "effective", "duration", "duration_ms", "processing_ms", "backoff_ms",
    "epoch", "sequence", "next_in", "lag", "lag_events", "seconds", "silent_for",
})  # fmt: skip
_OF_THE_WAY = frozenset({"address", "trace_id", "request_trace_id", "coordinator", "sent_at"})  # only where a server is
YEAR_2001 = 10**15  # in microseconds: no other number is as large


class Teller:
    """Calls a client, whichever it is, and keeps each answer or error by the name of the call."""

    def __init__(self, client: Client | AsyncClient) -> None:
        self.client = client
        self.told: list[tuple[str, Any]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        if isinstance(client, AsyncClient):
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever)
            self._thread.start()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            try:
                answer = self._awaited(getattr(self.client, name)(*args, **options))
            except TenureError as error:
                answer = error
            self.told.append((name, answer))
            return answer

        return call

    def _awaited(self, answer: Any) -> Any:
        if self._loop is None or not inspect.isawaitable(answer):
            return answer

        async def ended() -> Any:
            return await answer

        return asyncio.run_coroutine_threadsafe(ended(), self._loop).result(60)

    def close(self) -> None:
        self._awaited(self.client.close())
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def told_by(client: Client | AsyncClient) -> list[tuple[str, Any]]:
    """The story as this client tells it, comparable."""
    teller = Teller(client)
    try:
        tell(teller)
    finally:
        teller.close()
    bugs = [(name, answer) for name, answer in teller.told if isinstance(answer, TenureError) and answer.code == "BUG"]
    assert not bugs, "the same internal error on each way is still one"
    names: dict[str, str] = {}
    # A server takes nobody's word for the end of a process.
    return [(name, comparable(answer, names)) for name, answer in teller.told if name != "gone"]


def comparable(value: Any, names: dict[str, str], field: str = "") -> Any:
    """Without what differs from run to run: ids by the order of their coming, no tokens, times or measures."""
    if isinstance(value, TenureError):
        return [type(value).__name__, value.code, comparable(value.message, names), value.definite]
    if isinstance(value, Ended):
        value = value.task
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {
            comparable(key, names): comparable(part, names, str(key))
            for key, part in value.items()
            if key not in _OF_THE_WAY
        }
    if isinstance(value, (list, tuple)):
        return [comparable(part, names) for part in value]
    if isinstance(value, str):
        value = _ID.sub(lambda found: names.setdefault(found[0], f"{found[1]}_{len(names)}"), value)
        value = _TICK.sub("instant", value)
        value = _SEQUENCE.sub("sequence N", value)  # a server writes events of its own
        return _PRODUCT.sub(r"\1-hash", _TOKEN.sub(r"@\1:TOKEN", value))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return "measured" if field in _MEASURED else "instant" if value > YEAR_2001 else value
    return value


def checked(ann: Any) -> None:
    """Results that wait for a verdict, and what becomes of them."""
    tests = {"validation": "test-pass", "settings": {"command": "unit", "at": 1}}
    ann.add("Checked", track="C", output=tests)
    tests["settings"] = {"command": "unit"}
    ann.add("Checked", track="C", output=tests)
    ann.submit(_of_another(ann, "C-001"), {"time": 7})
    ann.validations()
    taken = ann.take_validation(validators=["test-pass"], lease=60.0, checker="vera")
    ann.renew_validation(taken.receipt, 90.0)
    ann.undecided(taken.receipt, "away", 0.0)
    taken = ann.take_validation("C-001", request_id="one")
    ann.take_validation("C-001", request_id="one")
    ann.judge(taken.receipt, False, ["two fail"], {"at": 5})
    ann.judge(taken.receipt, True)
    for title in ("good", "bad"):
        ann.add(title, track="C", output={"validation": "review"})
    for task in ("C-002", "C-003"):
        ann.submit(_of_another(ann, task), "look")
    ann.approve("C-002", "fine")
    ann.reject("C-003", "say more")
    ann.approve("C-003")
    ann.confirm_usage("C-001")
    ann.reject_usage("C-001")
    ann.add("Landed", track="C")
    landing = _of_another(ann, "C-004")
    ann.submit(landing, "work", land=LandRequest(commit="7" * 40, onto="main"))
    ann.validations()
    taken = ann.take_landing()
    ann.land(taken.receipt, "main", "1" * 40, "2" * 40)
    ann.cancel("C-004")
    ann.undecided(taken.receipt, "lib.py is changed", 0.0, blocked=True)
    ann.todo()
    taken = ann.take_landing("C-004", lease=60.0, lander="lee", request_id="two")
    ann.judge(taken.receipt, False, ["README.md"], conflict=True)
    ann.add("Matched", track="C", output={"validation": "regex", "settings": {"pattern": "^ok"}})
    matched = ann.claim("C-005")
    ann.submit(matched.receipt, "no")
    ann.submit(matched.receipt, "ok")
    ann.history("C-001")


def _of_another(ann: Any, task: str) -> str:
    """The receipt of a claim that is not Ann's own: over HTTP nobody judges its own work."""
    return str(ann.do(c.ClaimTask(project="shop", task=task, agent="bo", session="s-bo")).receipt)


def made_by_itself(ann: Any) -> None:
    """Schedules, triggers and the watch."""
    nightly = NewTask(title="Nightly {tick.date}")
    ann.set_schedule("nightly", "0 2 30 2 *", nightly)  # there is no such day
    ann.set_schedule("nightly", "0 2 * * *", nightly, zone="Europe/Berlin", misfire="all", deadline_in=3600.0)
    ann.pause_schedule("nightly", "holidays")
    ann.resume_schedule("nightly")
    ann.schedules()
    ann.schedule("nightly", ticks=2)
    ann.run_schedule("nightly")
    ann.remove_schedule("nightly")
    ann.schedule("nightly")
    post_mortem = NewTask(title="Find out why {event.key} failed", metadata={"at": "{event.time}"})
    ann.set_trigger("why", "task.dead_lettered", post_mortem, where={"event.track": {"in": ["A", "B"]}}, most=3)
    ann.try_trigger("why", {"event": {"key": "A-001", "time": 1, "track": "A"}})
    ann.pause_trigger("why")
    ann.resume_trigger("why")
    ann.triggers()
    ann.trigger("why")
    secret = "whsec_" + "c2VjcmV0" * 4
    ann.set_trigger("pulls", "webhook", NewTask(title="Review {body.title}"), secret=secret)
    ann.rotate_secret("pulls", secret[:-8] + "bmV3ZXIh", grace=60.0)
    ann.deliver("pulls", {"webhook-id": "one"}, b"{}")
    ann.remove_trigger("why")
    ann.set_watch(Watch())
    ann.watched()
    ann.set_watch(None)


def sent_out(ann: Any) -> None:
    """Facts, webhooks and relays."""
    ann.emit("build_passed", {"commit": "abc", "at": 5})
    ann.emit("Build Passed")
    ann.send("look", "@type:generic", action="review", expires=60.0)
    secret = "whsec_" + "c2VjcmV0" * 4
    ann.set_webhook(
        "ci", "https://example.org/hook", kinds=["task.completed"], where={"event.track": "A"}, secret=secret
    )
    ann.set_webhook("ci", "http://example.org/hook")
    ann.pause_webhook("ci", "holidays")  # a server would send at once
    ann.test_webhook("ci")
    ann.rotate_webhook("ci", secret[:-8] + "bmV3ZXIh", grace=60.0)
    ann.replay_webhook("ci", since=1)
    ann.replay_webhook("ci", "evt_none")
    ann.webhooks()
    ann.webhook("ci")
    ann.deliveries("ci", state="failed")
    ann.resume_webhook("ci")
    ann.remove_webhook("ci")
    ann.webhook("ci")
    ann.relays()
    ann.pause_relay("webhooks")
    ann.rewind_relay("webhooks", 0)
    ann.rewind_relay("webhooks", since=1)
    ann.rewind_relay("webhooks")
    ann.resume_relay("webhooks")
    ann.remove_relay("webhooks")
    ann.remove_relay("webhooks")


def pooled(ann: Any) -> None:
    """Pools: without a size wherever they are not paused, so that a server's leader never writes to one."""
    ann.set_pool("crew", size=2)  # a new pool needs a program
    takes: dict[str, Any] = {"capabilities": ["gpu"], "types": ["docs"], "models": ["opus"]}
    ann.set_pool("crew", "claude", size=0, spawner="none", idle=30.0, **takes)
    ann.pause_pool("crew", "lunch")
    ann.set_pool("crew", size=2, tracks=["Q"])
    ann.pools()
    ann.pool("crew")
    ann.spawns("crew", state=["running", "lost"], limit=10)
    ann.spawns(state=["asleep"])
    ann.set_pool("crew", size=0)
    ann.resume_pool("crew")
    ann.remove_pool("crew")
    ann.pool("crew")


def joined(ann: Any) -> None:
    """Members, and the tenants of a store that keeps one."""
    ann.add_tenant("acme", tier="enterprise")
    ann.change_tenant("acme", tier="default", limits={"max_lease": None})
    ann.close_tenant("local", "no")
    ann.reopen_tenant("acme")
    ann.tenants(closed=True)
    ann.tenant("local")
    ann.tenant("acme")
    ann.invite_member("mia", "owner")
    ann.invite_member("bo", projects=["shop"])
    ann.invite_member("bo", "chief")
    ann.change_member("bo", "viewer", projects=[])
    ann.remove_member("mia")
    ann.remove_member("bo")
    ann.remove_member("bo")
    ann.members(left=True)


def audited(ann: Any) -> None:
    """The sealed log, before there is one: afterwards its hashes are those of each store."""
    ann.audit_head()
    ann.verify_audit()
    ann.verify_audit(head="x")
    ann.attest()
    ann.audit_page()
    ann.export_audit(os.devnull)
    ann.init(compliance="soc2")
    ann.init(compliance="iso")
    ann.audit_on()
    ann.audit_on()
    ann.verify_audit(head="x")


def kept_secret(ann: Any) -> None:
    made = ann.add("Deploy", spec={"context": {"db": {"$secret": "long enough to hide"}}})
    receipt = ann.claim(made.task["key"]).receipt
    ann.open_secrets(receipt)
    ann.rotate_data_key()
    ann.rotate_data_key(master=True)
    ann.rotate_data_key(lost=True)
    ann.reseal()
    ann.reseal(after="x")
    ann.open_secrets("Z-999@1:53Z70T9DQ1FPZ2RDF81842BXPTNRVB1Y")
    ann.submit(receipt, {"said": "it was: long enough to hide"})


def tell(ann: Any) -> None:
    """Every verb and every look at least once, and refusals and errors among them."""
    ann.status()  # no such project yet
    ann.init(limits={"max_lease": 3600}, lead="off")  # a server would elect a leader
    ann.settings()
    ann.init(change_limits={"max_active_sessions": 50, "max_lease": 7200})
    ann.init(change_limits={"max_active_sessions": None})
    ann.init(change_limits={"max_sessions": 1})
    ann.project_limits()
    ann.define_track("Q", "Quality", "to be sure")
    ann.define_track("M", "Many")
    ann.projects()
    one = ann.add("Größe prüfen", tags=("a", "b"), touches=("src/*.py",), metadata={"at": "noon", "n": [1, 2.5, None]})
    two = ann.add("Two", after=["A-001"], priority="high", request_id="r-two")
    ann.add("Two", after=["A-001"], priority="high", request_id="r-two")  # again
    ann.add("Other", request_id="r-two")  # the id was used
    ann.add("", track="A")
    ann.add("Late", deadline=4_000_000_000_000_000)
    ann.add_many([NewTask(title="Many", track="M", idempotency_key="m"), NewTask(title="More", track="M")])
    ann.add_many([NewTask(title="Many", track="M", idempotency_key="m")])
    ann.add_many([NewTask(title="Fine", track="M"), NewTask(title="")])
    ann.add_many([])
    ann.wait("Z-404")
    plan = ann.plan(
        [NewTask(title="First", name="f"), NewTask(title="Second", name="s", depends_on=("f",), track="Q")],
        title="A plan", name="plan", tracks=[NewTrack(code="R", name="Rest")],
    )  # fmt: skip
    ann.plan([NewTask(title="x", name="x", depends_on=("y",)), NewTask(title="y", name="y", depends_on=("x",))])
    ann.plan([NewTask(title="Dry", name="d")], dry_run=True)
    ann.link("A-003", "A-001")
    ann.unlink("A-003", "A-001")
    ann.add("Draft", draft=True, key="D-009-draft")
    ann.publish("D-009")
    ann.register(type="generic", capabilities=("python",), max_concurrent_tasks=5)
    ann.heartbeat(step="busy")
    ann.ready()
    ann.ready(track="Q", limit=1)
    ann.next(tracks=("A",))
    got = ann.claim(tracks=["A"], lease=600.0, request_id="r-claim")
    ann.claim(tracks=["A"], lease=600.0, request_id="r-claim")
    ann.claim("A-001")
    ann.claim("A-777")
    ann.claim(n=2, tags=("none",))
    ann.claim(wait=0.01, types=("none",))
    receipt = got.receipt
    ann.start(receipt)
    ann.renew(receipt, 700.0, background=True)
    ann.renew("nonsense")
    ann.progress(receipt, 40, "half / way?", done_in=60.0)
    ann.progress(receipt, 400)
    ann.checkpoint(receipt, {"next_action": "go on", "at": "later", "time": 3})
    ann.usage(receipt, "opus", fresh=10, output=5, cost_usd="0.25")
    ann.land(receipt, "main", "0" * 40, "1" * 40)
    ann.put_artifact(receipt, "dir/größe.txt", b"kept")
    ann.put_artifact(receipt, "dir/größe.txt", b"kept")  # again
    ann.put_artifact(receipt, "../elsewhere", b"x")
    ann.put_artifact("nonsense", "a", b"x")
    ann.artifacts("A-001")
    ann.artifacts("A-001", generation=9)
    ann.reserve("docs/**", receipt=receipt)
    hold = ann.reserve("port:8080", mode="exclusive", lease=60.0)
    ann.renew_reservation(hold.receipt, 90.0)
    ann.reservations()
    ann.unreserve(hold.receipt)
    spawned = ann.spawn(receipt, [NewTask(title="Child", name="c", output={"type": "json"})])
    ann.note("A-001", "a note")
    ann.show("A-001")
    ann.show("A-00")
    ann.show("Z-404")
    ann.submit(
        receipt, {"at": 1, "until": "x", "nested": [{"time": 5}]}, "fine", usage=[Totals(model="opus", fresh=11)]
    )
    ann.submit(receipt, {"other": 1})
    ann.wait("A-001", timeout="5s")
    ann.results("A-001")
    ann.history("A-001")
    ann.why("A-001")
    ann.update("A-002", title="Zwei", priority=3)
    ann.update("A-002", 1, title="Never")
    ann.update("A-002", colour="red")
    ann.assign("A-002", "bo", 60.0)
    ann.claim("A-002")
    ann.reassign("A-002", "me", 60.0)
    held = ann.claim("A-002")
    ann.fail(held.receipt, "rate", "rate_limit", retry_after=30.0, model="opus")
    ann.fail(held.receipt, "again", "nonsense")
    waiting = ann.claim("A-003")
    ann.wait_for_subtasks(waiting.receipt)
    waiting = ann.claim("A-003")
    ann.ask(waiting.receipt, "which one?")
    ann.answer("A-003", "the blue one")
    ann.pause("A-003", "wait")
    ann.resume("A-003")
    ann.resume("A-003")
    dead = ann.claim("A-003")
    ann.fail(dead.receipt, "hopeless", "permanent")
    ann.dead_letters()
    ann.retry("A-003", "try", {"title": "Again"})
    ann.dead_letters(resolved=True)
    let = ann.claim("A-003")
    ann.release(let.receipt, "not now")
    ann.recover("A-003")
    busy = ann.claim("A-003")
    ann.recover("A-003", "lost")
    ann.submit(busy.receipt, 1)
    ann.abort("A-003")
    ann.reset("A-001", cascade=True)
    ann.adopt("A-001", note="it was good")
    checked(ann)
    made_by_itself(ann)
    sent_out(ann)
    pooled(ann)
    kept_secret(ann)
    joined(ann)
    audited(ann)
    gone = ann.cancel("Q-001", "no need")
    ann.undo(gone.command_id)
    ann.cancel("Q-001")
    ann.archive("Q-001")
    ann.stop_line("track:Q", "quiet")
    ann.start_line("track:Q")
    ann.drain("nobody")
    ann.drain()
    ann.terminate("me", graceful=True, reason="enough")
    ann.resume_agent("me")
    ann.send("hello", "bo", type="request")
    sent = ann.send("to me", "me")
    ann.inbox()
    ann.read([m["id"] for m in ann.inbox()])
    ann.inbox(unread=False, sender="me")
    ann.messages()
    ann.lead(lease=60.0)
    ann.step_down(1)
    ann.gone([Process(host="elsewhere", boot="b", pid=1, start=1)])
    ann.processes()
    ann.agents()
    ann.agent_details("nobody")
    ann.agent_health("ann")
    ann.agent_tasks("ann")
    ann.agents(status="active")
    ann.task_log("A-001", level="info")
    ann.assign_track("Q", "me")
    ann.release_track("Q")
    ann.reorder()
    ann.forecast(agents=0)
    ann.briefing("A-001")
    ann.agent_news()
    ann.todo()
    ann.sessions()
    ann.own_claims()
    ann.session_claims("nobody")
    ann.memory()
    ann.memory("nobody")
    ann.dag(one.task["dag"])
    ann.dag("dag_none")
    ann.dags()
    ann.plans(plan="plan")
    ann.plans()
    ann.tracks()
    ann.tasks(order="key")  # ids of one millisecond have no order that two runs share
    ann.tasks(state=("ready", "completed"), track="A", order="-key", limit=2)
    page = ann.tasks(limit=2, order="key")
    ann.tasks(order="key", after=(page[-1]["key"], page[-1]["id"]), archived=True)
    ann.tasks(priority_range=(0, 49), text="zwei")
    ann.tasks(created_from=1, created_until=5)
    ann.tasks(state="reddy")
    ann.states(["A-001", "Z-404", two.task["id"], spawned.tasks[0]["key"]])
    ann.states([])
    ann.spent(by="model")
    ann.set_budget("agent:zoe", usd="5", default_estimate=1)
    ann.set_budget("agent:bo", tokens=500, period="day")
    ann.set_budget("agent:bo", usd=1)
    ann.set_budget("agent:yan", usd="1")
    ann.move_budget("agent:zoe", "agent:yan", "2.50")
    ann.move_budget("agent:zoe", "agent:yan", 250)
    ann.budgets()
    ann.budgets("task")
    ann.budget("agent:yan")
    ann.budget()
    ann.alerts()
    ann.projection("agent:zoe")
    ann.headroom()
    ann.remove_budget("agent:zoe")
    ann.remove_budget("agent:zoe")
    ann.savings()
    ann.estimates()
    ann.models()
    ann.status()
    ann.log(limit=1000)
    ann.log(task="A-001", kind=("task.claimed", "task.completed"))
    ann.log(last=False, limit=4)
    ann.log(since=4_000_000_000_000_000)
    ann.batch([
        c.Note(project="shop", task="A-001", text="one"), c.Note(project="shop", task="Z-404", text="two"),
        c.Submit(project="shop", receipt=receipt, data={"other": 1}),
    ])  # fmt: skip
    ann.preview([c.Cancel(project="shop", task="A-002"), c.Cancel(project="shop", task="Z-1")])
    ann.batch([])
    ann.show("A-002")
    ann.leave()
    assert plan.ok, plan
    assert sent.ok, sent
