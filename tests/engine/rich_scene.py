"""A project in which there is something of everything: each state, each kind of row, each way a claim ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core import signatures
from tenure.core.commands import Dependency, NewTask, NewTrack, Principal, Process, Template, Totals
from tenure.core.records import Delivery, RetryPolicy, Spawn, Watch, replace
from tenure.core.webhook_delivery import STATUS_CHANGED
from tenure.testing.factories import PROJECT, Scene

LONG = "x" * 5000  # kept apart from its row
OF_STORE = (
    q.Projects,
    q.Gauges,
    q.Spending,
    q.Keys,
    q.Relays,
    q.Tenants,
    q.ShowTenant,
    q.Members,
)  # looks at no project
OLD, NEW = "1" * 40, "2" * 40


class Rich(NamedTuple):
    """Names of what is there; `receipts` are of live claims, by key."""

    tasks: dict[str, str]  # state → key of a task that stands there
    dag: str
    lone_dag: str
    session: str
    agents: tuple[str, ...]
    message: str
    result: str
    commands: tuple[str, ...]
    receipts: dict[str, str]
    reservation: str
    archived: str
    term: int


def enrich(scene: Scene) -> Rich:
    """Fill the scene's project; two hours go by."""
    for name in ("ann", "bo", "cy"):
        scene.do(
            c.Register, agent=name, session=f"s-{name}", capabilities=("python",), models=("opus",), tracks=("A", "B"),
            host="host", boot="boot", pid=7, pid_start=1, user="mia",
        )  # fmt: skip
    archived = _archived(scene)
    planned = _planned(scene)
    held, receipts = _held(scene)
    message = _mail(scene)
    reservation = scene.do(c.Reserve, patterns=("src/**",), agent="bo", session="s-bo", mode="shared", lease=36000.0)
    scene.do(c.StopLine, scope="track:X", reason="not yet")
    scene.do(c.AuditOn)
    scene.do(c.Lead, project="", holder="server-1", lease=3600.0)
    leader = scene.do(c.Lead, holder="ann", agent=True, lease=3600.0)
    scene.do(c.Heartbeat, agent="ann", session="s-ann", health="degraded", step="thinking", memory_mb=12)
    scene.do(c.Drain, agent="cy")
    for name, role in (("boss", "admin"), ("robot", "agent")):
        scene.do(c.CreateKey, project="", name=name, role=role, expires_in=360000.0, projects=(PROJECT,))
    scene.do(c.RevokeKey, project="", key="robot")
    for user in ("mia", "gone"):
        scene.do(c.InviteMember, project="", user=user, projects=(PROJECT,))
    scene.do(c.RemoveMember, project="", user="gone")
    _sources(scene)
    _webhook(scene)
    _pool(scene)
    _budgets(scene)
    held["validating"] = _validated(scene)
    noted = scene.do(c.Edit, task=held["ready"], changes={"tags": ["seen"], "deadline": scene.now + 3_600_000_000})
    (result, *_) = scene.results(planned["completed"])
    return Rich(
        tasks=planned | held,
        dag=scene.task(planned["completed"]).dag,
        lone_dag=scene.task(held["ready"]).dag,
        session="s-ann",
        agents=("ann", "bo", "cy"),
        message=message,
        result=result.id,
        commands=(str(noted.command_id),),
        receipts=receipts,
        reservation=str(reservation.receipt),
        archived=archived,
        term=int(leader.term or 0),
    )


def with_long_lists(scene: Scene) -> Rich:
    """The same, with at least two of everything that is listed with a `limit`."""
    rich = enrich(scene)
    scene.do(c.Send, sender="bo", to="ann", text="and another thing")
    for scope in ("agent:ann", "agent:bo", f"dag:{rich.dag}"):
        scene.do(c.SetBudget, scope=scope, usd="100")
    (delivery,) = scene.rows(Delivery)
    scene.put(None, replace(delivery, id=f"{delivery.id}-later", sequence=delivery.sequence + 1))
    return rich


def _archived(scene: Scene) -> str:
    """A task that is over for so long that it is a row of the archive, with usage and a landing."""
    key = scene.add("long over", tags=("old",), description=LONG)
    receipt = scene.take(key, "bo")
    scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=10, output=2, cost_usd="0.01", duration=1.5)
    scene.do(c.Land, receipt=receipt, branch="main", old=OLD, new=NEW)
    scene.do(c.PutArtifact, receipt=receipt, name="old.txt", digest="e" * 64, size=7, since=scene.now)
    scene.submit(receipt, {"all": "done"})
    scene.do(c.DefineProject, limits={"archive_after": 60}, agents_may_operate=False)
    scene.pass_time(hours=1)
    scene.engine.sweep(PROJECT)
    scene.do(c.DefineProject, limits={"archive_after": 365 * 24 * 3600})
    return key


def _planned(scene: Scene) -> dict[str, str]:
    """A dag in which tasks are completed, pending, drafts and ready; its first one went through two hands."""
    first, second, draft = scene.plan(
        NewTask(
            title="first", name="first", track="B", spec={"prompt": LONG, "context_refs": ["task:A-001:output"]},
            metadata={"at": 1}, output={"type": "json", "summary": "all of it"}, touches=("src/a/**",),
            constraints={"required_capabilities": ["python"], "max_duration": 60, "fallback_models": ["haiku"]},
            retry=RetryPolicy(strategy="fixed", initial_delay=1),
        ),
        NewTask(title="second", name="second", depends_on=(Dependency(task="first", on_failure="ignore"),)),
        NewTask(title="draft", name="draft", draft=True, priority="critical"),
        title="A plan", name="plan", tracks=(NewTrack(code="Q", name="Quality", purpose="to be sure"),),
    )  # fmt: skip
    lost = scene.take(first, "ann", lease=30.0, user="mia", process=Process(host="h", boot="b", pid=9, start=1))
    scene.do(c.SaveCheckpoint, receipt=lost, data={"next": "go on", "at": 7})
    scene.do(c.ReportUsage, receipt=lost, model="opus", fresh=5, cached=3, cost_usd="0.000000001")
    scene.do(c.PutArtifact, receipt=lost, name="a/b.txt", type="text/plain", digest="d" * 64, size=7, since=scene.now)
    scene.pass_time(minutes=2)
    receipt = scene.take(first, "bo")
    scene.submit(lost, LONG)  # refused, and kept
    scene.do(c.ReportUsage, receipt=lost, model="opus", fresh=50)  # late
    for old, new in ((OLD, NEW), (NEW, OLD)):
        scene.do(c.Land, receipt=receipt, branch="main", old=old, new=new)
    scene.submit(receipt, {"made": LONG, "time": 5}, summary="made", usage=(Totals(model="haiku", fresh=3),))
    return {"completed": first, "ready_next": second, "created": draft}


def _held(scene: Scene) -> tuple[dict[str, str], dict[str, str]]:
    names = {
        state: scene.add(f"to be {state}", tags=("work",))
        for state in ("ready", "claimed", "running", "waiting", "paused", "asked", "cancelled", "hidden")
    }
    names["pending"] = scene.add("to be pending", depends_on=(names["ready"],), priority=5)
    names["retrying"] = scene.add("to be retrying", max_attempts=3)
    names["dead_lettered"] = scene.add("to be dead", max_attempts=1)
    names["retried"] = scene.add("to be retried", max_attempts=1)
    names["offered"] = scene.add("to be offered", type="research")
    names["delayed"] = scene.add("to be delayed", not_before=scene.now + 36_000_000_000)
    receipts = {
        names[state]: scene.take(names[state], "ann", lease=36000.0) for state in ("claimed", "running", "waiting")
    }
    process = Process(host="host", boot="boot", pid=77, start=5)
    hosted = names["hosted"] = scene.add("to be hosted")
    receipts[hosted] = scene.take(hosted, "bo", lease=36000.0, process=process)
    scene.do(c.Renew, receipt=receipts[hosted])
    scene.do(c.Progress, receipt=receipts[names["running"]], percent=40, step="half", done_in=600)
    spawned = NewTask(title="child", name="child")
    waits = scene.do(c.Spawn, receipt=receipts.pop(names["waiting"]), tasks=(spawned,), wait=True)
    names["child"] = str((waits.tasks or ())[0]["key"])
    asked = scene.take(names["asked"], "ann")
    scene.do(c.Ask, receipt=asked, question="which?")
    scene.do(c.Answer, task=names["asked"], text="that")
    scene.do(c.Pause, task=names["paused"], reason="later")
    scene.do(c.Cancel, task=names["cancelled"], reason="no")
    scene.do(c.Cancel, task=names["hidden"])
    scene.do(c.Archive, task=names["hidden"])
    scene.dice.next_fraction = 1.0
    failing = scene.take(names["retrying"], "ann")
    scene.fail(failing, message="boom", retry_after=36000.0)
    for buried in ("dead_lettered", "retried"):
        scene.fail(scene.take(names[buried], "bo"), message="it broke")
    scene.do(c.Retry, task=names["retried"], note="try again")
    term = scene.do(c.Lead, agent=True, holder="ann", lease=3600.0).term
    scene.do(c.Assign, task=names["offered"], agent="bo", seconds=36000.0, term=term)
    scene.do(c.Note, task=names["ready"], text="look here")
    return names, receipts


def _validated(scene: Scene) -> str:
    """Results with a verdict and without; the key of one that is being checked."""
    output = {"validation": "test-pass", "settings": {"command": "unit"}}
    refused, checked = scene.add("refused", output=output), scene.add("checked", output=output)
    for key in (refused, checked):
        scene.submit(scene.take(key, "bo"), LONG, summary="look at it")
    taken = scene.do(c.TakeValidation, checker="vera", task=refused)
    scene.do(c.Judge, receipt=taken.receipt, ok=False, reasons=("two tests fail",), details={"output": LONG})
    scene.do(c.TakeValidation, checker="vera", task=checked, lease=36000.0)
    scene.submit(scene.take(scene.add("to review", output={"validation": "review"}), "bo"), "x")
    return checked


def _budgets(scene: Scene) -> None:
    """A budget that is nearly used up and one that repeats; somebody was denied, and would be again."""
    scene.do(c.SetBudget, usd="1000", default_estimate="0.01", period="week", zone="Europe/Berlin")
    scene.do(c.SetBudget, scope="agent:dee", usd="1", default_estimate="1", throttle=True)
    capped = scene.add("to be paid", constraints={"max_cost_usd": "0.95"})
    receipt = scene.take(capped, "dee")
    scene.do(c.ReportUsage, receipt=receipt, model="opus", fresh=5, cost_usd="0.95")
    scene.submit(receipt)
    scene.claim(scene.add("too dear", constraints={"max_cost_usd": "5"}), "dee")


def _sources(scene: Scene) -> None:
    """A schedule and triggers that have fired, one of them signed."""
    template = Template(tasks=(NewTask(title="again"),), deadline_in=3600.0)
    scene.do(c.SetSchedule, schedule="hourly", cron="0 * * * *", zone="Europe/Berlin", template=template)
    scene.do(c.RunSchedule, schedule="hourly")
    scene.do(c.SetTrigger, trigger="noted", on="task.noted", where={"task.type": "code"}, template=template)
    scene.do(c.SetTrigger, trigger="pushed", on="webhook", template=template)
    scene.do(c.SetWatch, watch=Watch(least=1))


def _webhook(scene: Scene) -> None:
    """A webhook with one delivery, and the reader of the log for all webhooks."""
    key = signatures.spelled(signatures.STANDARD, b"k" * signatures.SECRET_BYTES)
    scene.do(c.SetWebhook, webhook="out", url="https://example.org/hook", where={"event.track": "A"}, secret=key)
    failed = Delivery(
        project=PROJECT, id="out:evt_1", webhook="out", message="evt_1", event="evt_1", sequence=1, kind=STATUS_CHANGED,
        state="failed", at=scene.now, tries=2, tried_at=scene.now, status=500, error="500", duration=1500,
    )  # fmt: skip
    scene.engine.transact((PROJECT,), lambda work: work.put(failed))


def _pool(scene: Scene) -> None:
    """A pool with one process that runs and one that ended."""
    scene.do(c.SetPool, pool="crew", program="claude", size=2, capabilities=("a",), types=("none",))
    running = Spawn(
        project=PROJECT, id="spawn_1", pool="crew", place=1, agent="crew-1", task="task_x", task_key="A-001",
        spawner="local", state="running", handle="1:2", session="s-crew", term=1, started_at=scene.now,
        offer_until=scene.now, running_at=scene.now, claimed_at=scene.now,
    )  # fmt: skip
    ended = replace(running, id="spawn_2", place=2, state="ended", why="its agent left", ended_at=scene.now)
    for spawn in (running, ended):
        scene.engine.transact((PROJECT,), lambda work, spawn=spawn: work.put(spawn))


def _mail(scene: Scene) -> str:
    sent = scene.do(c.Send, sender="ann", text="hello", to="@all")
    (message,) = sent.messages or ()
    scene.do(c.Read, agent="bo", by=Principal(role="agent", agent="bo"))
    scene.do(c.Send, sender="bo", text="hello yourself", to="ann", type="response", reply_to=message["id"])
    return str(message["id"])


def every_look(rich: Rich) -> Iterator[tuple[type[q.Query], dict[str, Any]]]:
    """Every look, in each way in which its answer may differ."""
    keys = [*rich.tasks.values(), rich.archived]
    for kind in (
        q.Projects,
        q.ShowProject,
        q.Limits,
        q.Status,
        q.Overview,
        q.Dags,
        q.Plans,
        q.Tracks,
        q.Agents,
        q.Messages,
        q.Reservations,
    ):
        yield kind, {}
    yield q.Gauges, {}
    yield q.Spending, {}
    yield q.Validations, {}
    yield q.Todo, {}
    yield q.AgentNews, {"agent": "ann"}
    for kind in (q.Schedules, q.Triggers, q.Watched, q.Relays, q.Webhooks):
        yield kind, {}
    yield q.ShowSchedule, {"schedule": "hourly"}
    for trigger in ("noted", "pushed"):
        yield q.ShowTrigger, {"trigger": trigger}
    yield q.ShowWebhook, {"webhook": "out"}
    yield q.Deliveries, {"webhook": "out"}
    yield q.Pools, {}
    yield q.ShowPool, {"pool": "crew"}
    yield q.Spawns, {}
    yield q.Spawns, {"pool": "crew", "state": ("running",)}
    yield q.Keys, {"ended": True}
    yield q.Tenants, {"closed": True}
    yield q.ShowTenant, {"tenant": "local"}
    yield q.Members, {"left": True}
    for kind in (q.AuditHead, q.VerifyAudit, q.Attest):
        yield kind, {}
        yield kind, {"store": True}
    for after in (None, "seals:", "events:0", "documents:", "pruned:"):
        yield q.AuditPage, {"after": after}
    yield q.Processes, {}
    for kind in (q.ShowSavings, q.Estimates, q.Models):
        yield kind, {}
    yield q.Tasks, {"limit": 1000}
    yield q.Tasks, {"limit": 1000, "archived": True, "text": "o"}
    yield q.Ready, {}
    for agent in rich.agents:
        yield q.Next, {"agent": agent, "session": f"s-{agent}"}
        yield q.Inbox, {"agent": agent, "unread": False}
        yield q.ShowSession, {"session": f"s-{agent}"}
        yield q.OwnClaims, {"session": f"s-{agent}", "agent": agent}
    yield q.Sessions, {}
    yield q.States, {"tasks": (*keys, "Z-999")}
    for key in keys:
        for kind in (q.Show, q.History, q.Results, q.Artifacts, q.Why, q.Briefing):
            yield kind, {"task": key}
        yield q.TaskLog, {"task": key, "limit": 1000}
    for dag in (rich.dag, rich.lone_dag):
        yield q.ShowDag, {"dag": dag}
    for by in ("task", "agent", "model", "session"):
        yield q.ShowSpending, {"by": by}
    for scope in (None, "task"):
        yield q.Budgets, {"scope": scope}
    for scope in ("project", "agent:dee"):
        yield q.ShowBudget, {"scope": scope}
        yield q.ShowProjection, {"scope": scope}
    yield q.Alerts, {}
    for agent in ("ann", "dee"):
        yield q.Headroom, {"agent": agent}
        for kind in (q.ShowAgent, q.AgentHealth, q.AgentTasks):
            yield kind, {"agent": agent}
    yield q.Forecast, {"runs": 5}
    for resolved in (False, True):
        yield q.DeadLetters, {"resolved": resolved}
    yield q.Log, {"limit": 10_000}
    yield q.Log, {"task": rich.archived}
