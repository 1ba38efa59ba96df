"""What a store of the fixture holds: every kind of row, and tasks in every state that a release can leave behind.

`fill` plays the same commands on any store. Time stands still but where it is moved, and chance is seeded, so two runs
give the same rows. It uses only what the released `tenure` on the path offers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from tenure.core import commands as c
from tenure.core import signatures
from tenure.core.commands import Dependency, NewTask, Principal, Template, Totals
from tenure.core.keys import parse_key
from tenure.core.records import Cycles, Watch
from tenure.engine import Context, Engine
from tenure.engine.archive import mover
from tenure.engine.duties.election import LeaderEngine, stand
from tenure.engine.sources import failure_watch, schedules, trigger_duty
from tenure.engine.verbs import web_sessions
from tenure.sealing.cipher import Cipher
from tenure.sealing.master_key import KeySource
from tenure.stores.port import FAST_PATH, Store
from tenure.testing.clock import FakeClock

OWNER = Principal(role="owner", user="olaf")
MEMBER = Principal(role="member", user="mia")
TESTS = {"validation": "test-pass", "settings": {"command": "unit"}}
REVIEW = {"validation": "review"}
HOUR = 3600.0
MASTER_KEY = "5a" * 32
RECEIVER = "https://ci.example.com/hook"


class Dice:
    """Seeded chance; numbers for ids only grow, so that what is made later sorts later."""

    def __init__(self, seed: str) -> None:
        self.seed, self.rolls = seed, 0

    def token(self, size: int) -> bytes:
        self.rolls += 1
        if size == 10:
            return (self.rolls << 48).to_bytes(size, "big")
        return hashlib.shake_256(f"{self.seed}:{self.rolls}".encode()).digest(size)

    def fraction(self) -> float:
        return 0.5


class World:
    """One store, one project at a time, and notes of what was handed out."""

    def __init__(self, store: Store, clock: FakeClock, seed: str, tenant: str = "local") -> None:
        self.store, self.clock = store, clock
        sealer: Any = Cipher(KeySource({"TENURE_MASTER_KEY": MASTER_KEY}))
        self.engine = Engine(store, Dice(seed), Context(tenant=tenant, sealer=sealer))
        self.project = ""
        self.receipts: dict[str, dict[str, Any]] = {}
        self.repeats: list[dict[str, Any]] = []

    def enter(self, project: str, **settings: Any) -> None:
        self.project = project
        self.do(c.DefineProject, **settings)

    def do(self, kind: type[c.Command], /, *, by: Principal = OWNER, **fields: Any) -> Any:
        command = kind(**{"project": self.project, **fields})
        outcome = self.engine.do(command, by)
        self._note(command, by, outcome)
        return outcome

    def batch(self, commands: Sequence[c.Command]) -> list[Any]:
        """Several commands in one transaction."""
        outcomes: list[Any] = self.engine.run(commands, OWNER)
        for command, outcome in zip(commands, outcomes, strict=True):
            self._note(command, OWNER, outcome)
        return outcomes

    def _note(self, command: c.Command, by: Principal, outcome: Any) -> None:
        if command.request_id is not None:
            told = {"command": command, "principal": by, "outcome": outcome}
            self.repeats.append(msgspec.json.decode(msgspec.json.encode(told)))

    def add(self, title: str, /, **fields: Any) -> str:
        return str(self.do(c.Add, task=NewTask(title=title, **fields)).task["key"])

    def plan(self, *tasks: NewTask, **fields: Any) -> list[str]:
        return [str(task["key"]) for task in self.do(c.Plan, tasks=tasks, **fields).tasks]

    def take(self, task: str, agent: str = "ann", **fields: Any) -> str:
        outcome = self.do(
            c.ClaimTask, task=task, agent=agent, **{"session": f"s-{agent}", "lease": 12 * HOUR, **fields}
        )
        assert outcome.outcome == "GRANTED", outcome
        return str(outcome.receipt)

    def finish(self, task: str, agent: str = "ann", data: Any = "done", **fields: Any) -> str:
        receipt = self.take(task, agent)
        outcome = self.do(c.Submit, receipt=receipt, data=data, **fields)
        assert outcome.outcome in ("ACCEPTED", "VALIDATING"), outcome
        return receipt

    def bury(self, task: str, attempts: int = 3) -> None:
        for n in range(attempts):
            agent = ("ann", "bo")[n % 2]
            self.do(c.Fail, receipt=self.take(task, agent), message=f"broke {n}", retry_after=0)
        assert self.state(task) == "dead_lettered", self.state(task)

    def state(self, name: str) -> str:
        return str(self.row(name).state)

    def row(self, name: str) -> Any:
        from tenure.engine.runtime.rows import task_named

        def ask(work: Any) -> Any:
            return task_named(work, self.project, name)

        if hasattr(self.engine, "read_settled"):
            return self.engine.read_settled((self.project,), ask)
        with self.engine.reading((self.project,)) as work:  # up to schema 4
            return ask(work)

    def keep(self, name: str, receipt: str, answer: str, **fields: Any) -> None:
        """Note a receipt, and what a submission with it must be answered after every upgrade."""
        self.receipts[name] = {"project": self.project, "receipt": receipt, "answer": answer, **fields}

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds)


def fill(world: World) -> None:
    """Everything, the oldest first: what is archived, then what is finished, then what is open and due last."""
    from tests.upgrades.world_fleet import fleet, short_way
    from tests.upgrades.world_messages import messages

    attic(world)
    world.wait(48 * HOUR)
    short_way(world)
    shop(world)
    money(world)
    lab(world)
    auto(world)
    team(world)
    messages(world)
    fleet(world)
    fast(world)
    open_work(world)
    lapsed(world)
    found = world.engine.verify()
    assert found == [], found


def attic(world: World) -> None:
    """Archived tasks, alone and as a dag; some that were brought back, one shown again by an undo."""
    world.enter("attic", limits={"archive_after": 0})
    forked = world.take(world.add("held when the epoch changed"), lease=12 * HOUR)
    world.engine.new_epoch("restored from a backup")
    world.keep("of an earlier epoch", forked, "STALE_EPOCH")
    done = [world.add(f"old {n}", tags=("old",), idempotency_key=f"old-{n}") for n in range(4)]
    for key in done:
        receipt = world.finish(key, data={"big": key * 700}, usage=(Totals(model="haiku", fresh=9, cost_usd="0.01"),))
    world.keep("accepted, then archived", receipt, "ACCEPTED", data={"big": done[-1] * 700})
    stale_task = world.add("lost and found")
    stale = world.take(stale_task, lease=60)
    world.wait(61)
    world.finish(stale_task, "bo")
    world.keep("superseded, then archived", stale, "STALE_GENERATION")
    first, second, third = world.plan(
        NewTask(title="a", name="a"),
        NewTask(title="b", name="b", depends_on=("a",)),
        NewTask(title="c", name="c", depends_on=("b",)),
        title="an old dag", name="old-plan",
    )  # fmt: skip
    for key in (first, second, third):
        world.finish(key)
    world.do(c.Cancel, task=world.add("never mind"), reason="not wanted")
    family(world)
    moved = mover.move_all(world.engine, "attic")
    assert (moved.tasks, moved.failed) == (11, {})
    world.do(c.Reset, task=done[0])  # brought back, and open
    world.do(c.Note, task=done[1], text="brought back by a note")
    shown = world.do(c.Archive, task=finished(world, "hidden"))
    world.do(c.Undo, command_id=shown.command_id)
    world.do(c.Archive, task=finished(world, "hidden for good"))


def finished(world: World, title: str) -> str:
    key = world.add(title)
    world.finish(key)
    return key


def family(world: World) -> str:
    """A task that made a subtask, waited for it and ended."""
    parent = world.add("a family")
    made = world.do(c.Spawn, receipt=world.take(parent), tasks=(NewTask(title="child", name="child"),), wait=True)
    world.finish(str(made.tasks[0]["key"]), "bo")
    world.finish(parent)
    return parent


def shop(world: World) -> None:
    """Tracks, dags that ended and that did not, dead letters, undo, requests of the last day."""
    world.enter("shop", default_track="A", agents_may_operate=True)
    world.do(c.DefineTrack, code="B", name="back end", purpose="all that is not seen")
    for n in range(12):
        world.do(c.Add, task=NewTask(title=f"asked {n}", tags=("asked",)), request_id=f"add-{n}")
    noted = world.add("to be noted")
    world.do(c.Note, task=noted, text="once", request_id="note", by=MEMBER)
    world.do(c.Edit, task=noted, changes={"title": "noted", "priority": 70}, request_id="edit")
    world.do(c.Pause, task=noted, reason="wait for the customer", request_id="pause")
    world.do(c.Resume, task=noted, request_id="resume")
    world.do(c.Cancel, task=world.add("by request"), reason="not wanted", request_id="cancel")
    steps = (
        NewTask(title="design", name="design", key="B-003-design", track="B"),
        NewTask(title="build", name="build", depends_on=("design",), touches=("src/**",)),
        NewTask(title="ship", name="ship", depends_on=(Dependency(task="build", on_failure="cancel"),)),
    )
    end = {"completed": Template(tasks=(NewTask(title="celebrate"),), title="after")}
    named = {"title": "release", "name": "release", "on_end": end, "budget": "50", "request_id": "plan"}
    design, build, _ = world.plan(*steps, **named)
    claimed = world.do(c.ClaimTask, task=design, agent="ann", session="s-ann", lease=12 * HOUR, request_id="claim")
    world.do(c.SaveCheckpoint, receipt=claimed.receipt, data={"next": "draw", "notes": "n" * 9000})
    world.do(c.Submit, receipt=claimed.receipt, data={"drawing": "d" * 6000}, summary="drawn", request_id="submit")
    world.keep("accepted before", claimed.receipt, "ACCEPTED", data={"drawing": "d" * 6000})
    world.finish(build)
    ended = world.plan(NewTask(title="one", name="one"), NewTask(title="two", name="two"), title="an ended dag")
    for key in ended:
        world.finish(key)
    family(world)
    world.bury(world.add("a dead letter", max_attempts=3))
    resolved = world.add("a dead letter that was retried", max_attempts=1)
    world.bury(resolved, 1)
    world.do(c.Retry, task=resolved, note="with more light", changes={"description": "with more light"})
    adopted = world.add("a dead letter whose result was adopted", max_attempts=1)
    lost = world.take(adopted, lease=60)
    world.wait(61)
    assert world.do(c.Submit, receipt=lost, data="late and kept").work_lost
    world.do(c.Adopt, task=adopted, note="it is good enough")
    top = world.add("the top")
    below = world.add("below", depends_on=(Dependency(task=top, on_failure="cancel"),))
    part = world.add("a part", parent=top)
    world.do(c.Cancel, task=top, reason="not wanted")
    assert [world.state(key) for key in (top, below, part)] == ["cancelled"] * 3
    made = world.do(c.Plan, tasks=(NewTask(title="by mistake", name="x"),), title="a mistake")
    world.do(c.Undo, command_id=made.command_id)
    back = world.do(c.Cancel, task=world.add("cancelled and back"))
    world.do(c.Undo, command_id=back.command_id)
    again = finished(world, "started over")
    world.do(c.Reset, task=again)
    undone = world.do(c.Reset, task=finished(world, "started over by mistake"))
    world.do(c.Undo, command_id=undone.command_id)
    linked = world.add("linked")
    world.do(c.Link, task=linked, needs=again)
    world.do(c.Unlink, task=linked, needs=again)
    world.do(c.StopLine, scope="track:B", reason="the line is hot")


def money(world: World) -> None:
    """A budget of each scope, reservations in flight, usage that came late, tasks that a budget paused or set aside."""
    world.enter("money")
    world.do(c.SetBudget, scope="tenant", usd="5000", default_estimate="0.01")
    world.do(c.SetBudget, scope="project", usd="400", default_estimate="0.5")
    world.do(c.SetBudget, scope="agent:ann", usd="100", default_estimate="0.1", throttle=True)
    world.do(c.SetBudget, scope="agent:bo", usd="1", default_estimate="0.1", period="week", zone="Europe/Berlin")
    world.do(c.SetBudget, scope="agent:cy", tokens=90_000, default_estimate="1000", period="day")
    made = world.do(c.Plan, tasks=(NewTask(title="dear", name="dear"),), title="a dear dag")
    world.do(c.SetBudget, scope=f"dag:{made.tasks[0]['dag']}", usd="20")
    capped = world.add("capped", constraints={"max_cost_usd": "3"})
    world.do(c.SetBudget, scope=f"task:{capped}", usd="3")
    spent = world.take(capped)
    world.do(c.ReportUsage, receipt=spent, model="opus", fresh=100, cached=50, written=5, output=9, cost_usd="0.75")
    broke = world.add("paused by a budget")
    receipt = world.take(broke, "bo")
    assert world.do(c.ReportUsage, receipt=receipt, model="opus", fresh=10, cost_usd="1.50").state == "paused"
    assert world.row(broke).pauses[0].until is not None
    owing = world.add("paused by the tenant's words")
    world.do(c.Fail, receipt=world.take(owing, "eve"), error_class="budget_exceeded", message="no money")
    world.keep("paused by a budget", receipt, "ACCEPTED")
    late = world.add("late usage")
    stale = world.take(late, "cy", lease=60)
    world.wait(61)
    world.finish(late, usage=(Totals(model="haiku", fresh=70, output=7, cost_usd="0.02"),))
    assert world.do(c.ReportUsage, receipt=stale, model="haiku", fresh=50, cost_usd="0.01").late
    world.do(c.SetBudget, scope="agent:dee", usd="0.2", default_estimate="0.15")
    world.take(world.add("reserves"), "dee")
    dear = [world.add(f"too dear {n}", constraints={"max_cost_usd": "900"}, priority=10) for n in range(3)]
    world.do(c.ClaimNext, agent="gil", session="s-gil", lease=12 * HOUR)
    assert all(world.row(key).set_aside_for for key in dear)
    world.keep("holds money", spent, "ACCEPTED")


def lab(world: World) -> None:
    """Validations in every state, a review for thin work, models in trouble, what was learnt of tasks."""
    world.enter("lab", limits={"tokens_per_line": 150})
    waiting = {}
    for name in ("open", "taken", "passed", "refused", "withdrawn", "undecided", "paused", "cancelled"):
        waiting[name] = world.add(f"validation {name}", output=TESTS)
        world.finish(waiting[name], data=f"work of {name}")

    def taken(name: str) -> str:
        outcome = world.do(c.TakeValidation, checker="vera", task=waiting[name], lease=HOUR)
        assert outcome.outcome == "GRANTED", outcome
        return str(outcome.receipt)

    world.do(c.Judge, receipt=taken("passed"), ok=True, details={"ran": 12})
    world.do(c.Judge, receipt=taken("refused"), ok=False, reasons=("two tests fail",))
    world.do(c.Cancel, task=waiting["cancelled"])
    world.do(c.Edit, task=waiting["withdrawn"], changes={"output": REVIEW}, supersede=True)
    world.do(c.Undecide, receipt=taken("undecided"), reason="the runner is away", retry_after=HOUR)
    for _ in range(9):
        if world.state(waiting["paused"]) == "paused":
            break
        world.do(c.Undecide, receipt=taken("paused"), reason="the runner is away", retry_after=0)
    assert world.state(waiting["paused"]) == "paused"
    world.receipts["a check"] = {"project": "lab", "judge": taken("taken"), "answer": "ACCEPTED"}
    held_back = world.add("paused once it is judged", output=TESTS)
    receipt = world.take(held_back)
    world.do(c.Pause, task=held_back, drain=True, reason="soon")
    assert world.do(c.Submit, receipt=receipt, data="work").outcome == "VALIDATING"
    reviewed = world.add("reviewed", output=REVIEW)
    world.finish(reviewed, data="please look")
    world.do(c.Approve, task=reviewed, note="fine", by=MEMBER)
    thin = world.add("thin")
    outcome = world.do(
        c.Submit, receipt=world.take(thin), data="a comma", lines=1, usage=(Totals(model="opus", fresh=90_000),)
    )
    assert outcome.outcome == "REVIEW", outcome
    for agent, model, seconds in (("rita", "opus", 60), ("rob", "sonnet", 12 * HOUR)):
        world.do(c.Register, agent=agent, type="claude", models=(model,))
        receipt = world.take(world.add("rate limited"), agent)
        world.do(c.Fail, receipt=receipt, error_class="rate_limit", message="429", retry_after=seconds)
    world.wait(61)
    world.take(world.add("tries the model again"), "rita")
    for n in range(6):
        world.finish(world.add(f"like others {n}"), usage=(Totals(model="haiku", fresh=1000 + n, cost_usd="0.01"),))
    kept = world.add("with artifacts")
    receipt = world.take(kept)
    for name, content in (("report.md", b"# Done"), ("log/out.txt", b"fine"), ("log/again.txt", b"fine")):
        digest = hashlib.sha256(content).hexdigest()
        world.do(c.PutArtifact, receipt=receipt, name=name, digest=digest, size=len(content), since=world.clock.now)
    world.do(c.Land, receipt=receipt, branch="main", old="a" * 40, new="b" * 40)
    world.do(c.Submit, receipt=receipt, data="see the report", artifacts=("report.md",))
    landing = world.take(world.add("about to land"), "bo")
    world.do(c.Land, receipt=landing, branch="main", old="b" * 40, new="c" * 40)


def auto(world: World) -> None:
    """Schedules, triggers with secrets and a place in the log, a watch that has found something, keys, leaders."""
    world.enter("auto")
    nightly = Template(tasks=(NewTask(title="Nightly of {tick.date}"),))
    world.do(c.SetSchedule, schedule="nightly", cron="0 3 * * *", template=nightly, zone="Europe/Berlin")
    world.do(c.SetSchedule, schedule="minutely", cron="* * * * *", template=nightly, misfire="all")
    world.do(c.SetSchedule, schedule="resting", cron="0 4 * * 1", template=nightly)
    world.do(c.PauseSchedule, schedule="resting", reason="holidays")
    look = Template(tasks=(NewTask(title="Look at {event.key}"),))
    world.do(c.SetTrigger, trigger="post-mortem", on="task.dead_lettered", template=look)
    world.do(c.SetTrigger, trigger="silent", on="task.*", template=look, where={"event.key": {"prefix": "Z"}})
    world.do(c.PauseTrigger, trigger="silent")
    world.do(c.SetTrigger, trigger="over-its-limit", on="task.dead_lettered", template=look, most=1)
    body = Template(tasks=(NewTask(title="Review {body.title}"),))
    secret = world.do(c.SetTrigger, trigger="pulls", on="webhook", template=body).secret
    raw = b'{"title": "the parser"}'
    headers = signatures.signed_headers("standard", signatures.key_of("standard", secret), "m1", raw, world.clock.now)
    assert world.do(c.Deliver, trigger="pulls", headers=headers, body=raw).outcome == "CREATED"
    world.do(c.RotateSecret, trigger="pulls")
    world.do(c.SetWatch, watch=Watch(window=HOUR, threshold=0.5, least=3, by=("tag",)))
    for _ in range(3):
        world.bury(world.add("fragile", max_attempts=1, tags=("fragile",)), 1)
    world.wait(130)
    trigger_duty.hear(world.engine, "auto")
    schedules.fire(world.engine, "auto")
    failure_watch.investigate(world.engine, "auto")
    for name, more in (("laptop", {}), ("build", {"agent": "ann", "projects": ("shop",)}), ("gone", {})):
        world.do(c.CreateKey, project="", name=name, role="agent" if "agent" in more else "member", **more)
    keys = [world.do(c.CreateKey, project="", name=n, role="member", expires_in=900 * HOUR) for n in ("r", "v")]
    world.do(c.RotateKey, project="", key=keys[0].key["id"])
    world.do(c.RevokeKey, project="", key=keys[1].key["id"])
    signed_in = parse_key(world.do(c.CreateKey, project="", name="browser", role="member").secret)
    assert signed_in is not None
    web_sessions.begin(world.engine, "5e" * 32, signed_in.id, signed_in.secret)
    led = stand(world.engine, "host-1", HOUR, None, Cycles(count=3, last_at=world.clock.now))
    assert LeaderEngine(world.engine, "host-1", led.term, lambda: None).begin_tick("schedules", world.clock.now)
    world.do(c.Lead, holder="ann", agent=True, lease=HOUR)


def team(world: World) -> None:
    """Agents in every status, sessions, mail read and unread, reservations alone and with a claim, work set aside."""
    world.enter("team")
    world.do(c.Register, agent="stale", session="s-stale", heartbeat=10, stale_after=30)
    world.wait(31)
    world.engine.sweep("team")
    for name in ("busy", "idle", "draining", "left", "terminated", "ill", "cooling"):
        world.do(
            c.Register, agent=name, session=f"s-{name}", user="mia", type="claude", capabilities=("code", "python"),
            region="eu", tracks=("A",), max_concurrent_tasks=2, host="h", boot="b", pid=7, pid_start=70,
        )  # fmt: skip
    world.take(world.add("keeps busy"), "busy")
    world.do(c.Drain, agent="draining")
    world.do(c.Leave, session="s-left")
    world.do(c.Terminate, agent="terminated", graceful=False)
    world.do(c.Heartbeat, agent="ill", health="degraded", memory_mb=900, cpu_percent=80, step="thinking")
    for n in range(3):
        receipt = world.take(world.add(f"trouble {n}"), "cooling")
        world.do(c.Fail, receipt=receipt, error_class="environment", message="no disk")
    first = world.do(c.Send, sender="busy", to="idle", text="are you there?", request_id="mail")
    world.do(c.Send, sender="idle", to="busy", text="yes", reply_to=first.messages[0]["id"] if first.messages else None)
    world.do(c.Send, sender="busy", to="@all", text="lunch", type="chat")
    world.do(c.Read, agent="idle")
    one = world.do(c.Reserve, patterns=("docs/**",), agent="idle", session="s-idle", lease=12 * HOUR)
    assert one.outcome == "GRANTED", one
    world.receipts["a reservation"] = {"project": "team", "unreserve": one.receipt, "answer": "OK"}
    for agent in ("busy", "ill"):
        world.do(c.Reserve, patterns=("lib/**",), mode="shared", agent=agent, session=f"s-{agent}", lease=12 * HOUR)
    guarded = world.add("guarded", touches=("src/**",), priority=10)
    holder = world.take(guarded, "ann")
    world.do(c.Reserve, patterns=("etc/*",), agent="ann", session="s-ann", receipt=holder)
    world.keep("holds reservations", holder, "ACCEPTED")
    waiting = world.add("set aside", touches=("src/x.py",), priority=10)
    world.do(c.ClaimNext, agent="bo", session="s-bo", lease=12 * HOUR)
    assert world.row(waiting).set_aside_for is not None
    offered = world.add("offered")
    world.do(c.Assign, task=offered, agent="idle", seconds=12 * HOUR)


def fast(world: World) -> None:
    """Plain tasks, claimed, renewed and completed in batches: where a store has its short way, by that."""
    world.enter("fast")
    for n in range(24):
        world.add(f"plain {n}")
    receipts = []
    for _ in range(3):  # a short way is learnt: the first batch may go the long way
        agents = [f"f{n}" for n in range(6)]
        claims = [c.ClaimNext(project="fast", agent=a, session=f"s-{a}", lease=12 * HOUR) for a in agents]
        answers: list[Any] = world.engine.run(claims, OWNER)
        receipts += [str(answer.receipt) for answer in answers]
        world.wait(1)
        world.engine.run([c.Renew(project="fast", receipt=r, lease=12 * HOUR) for r in receipts], OWNER)
        done, receipts = receipts[:4], receipts[4:]
        answers = world.engine.run([c.Submit(project="fast", receipt=r, data={"n": 1}) for r in done], OWNER)
        assert {answer.outcome for answer in answers} == {"ACCEPTED"}
    if FAST_PATH in world.store.features:
        with world.store.begin(world.engine.tenant, write=False) as tx:
            assert tx.events({"project": "fast"}, limit=10_000)
    for n, receipt in enumerate(receipts):
        world.keep(f"plain {n}", receipt, "ACCEPTED")


def open_work(world: World) -> None:
    """A task in every state that is open at the end, and every cause of a pause."""
    world.enter("open")
    world.add("a draft", draft=True)
    world.add("pending", depends_on=(world.add("ready"),))
    world.add("later", not_before=world.clock.now + 3_600_000_000, deadline=world.clock.now + 7_200_000_000)
    world.keep("claimed", world.take(world.add("claimed")), "ACCEPTED")
    running = world.take(world.add("running"), "bo")
    world.do(c.Start, receipt=running)
    world.do(c.Progress, receipt=running, percent=40, step="half", done_in=60)
    world.do(c.SaveCheckpoint, receipt=running, data={"next": "more", "notes": "long " * 3000})
    world.keep("running", running, "ACCEPTED")
    process = c.Process(host="h", boot="b", pid=8, start=80)
    world.keep("with a process", world.take(world.add("by a process"), "cy", process=process), "ACCEPTED")
    world.do(c.Pause, task=world.add("paused by a person"), reason="not now")
    held = world.add("paused by a person while held")
    receipt = world.take(held, "dee")
    world.do(c.Pause, task=held, reason="not now")
    world.keep("paused by a person", receipt, "ACCEPTED")
    for reason in ("budget project: 100 % used", "question: is it mine?", "lease lost; on_lost = hold"):
        world.do(c.Pause, task=world.add("a person's own words"), reason=reason)
    cancelled = world.add("cancelled while held")
    receipt = world.take(cancelled, "dee")
    world.do(c.Cancel, task=cancelled)
    world.keep("cancelled", receipt, "TASK_CANCELLED")
    hung = world.add("aborted")
    world.take(hung, "dee")
    world.do(c.Abort, task=hung, reason="it hangs")
    asked = world.add("paused by a question")
    receipt = world.take(asked, "eve")
    world.do(c.Ask, receipt=receipt, question="which colour?")
    answered = world.add("answered")
    world.do(c.Ask, receipt=world.take(answered, "eve"), question="which size?")
    world.do(c.Answer, task=answered, text="large")
    draining = world.add("drain asked for")
    receipt = world.take(draining, "fay")
    world.do(c.Pause, task=draining, drain=True, reason="soon")
    assert world.row(draining).wanted == "pause"
    world.keep("drain asked for", receipt, "ACCEPTED")
    drained = world.add("drain done")
    receipt = world.take(drained, "gus")
    world.do(c.Pause, task=drained, drain=True)
    world.do(c.Release, receipt=receipt)
    assert world.state(drained) == "paused"
    lost = world.add("paused when lost", on_lost="hold")
    world.take(lost, "hal", lease=60)
    retrying = world.add("retrying")
    world.do(c.Fail, receipt=world.take(retrying, "ida"), message="broke", retry_after=12 * HOUR)
    limited = world.add("given back")
    world.do(c.Fail, receipt=world.take(limited, "ida"), error_class="upstream_timeout", retry_after=12 * HOUR)
    parent = world.add("waits for subtasks")
    world.do(c.Spawn, receipt=world.take(parent, "jo"), tasks=(NewTask(title="sub", name="sub"),), wait=True)
    open_parent = world.add("has spawned and goes on")
    world.do(c.Spawn, receipt=world.take(open_parent, "jo"), tasks=(NewTask(title="sub", name="sub"),))
    late = world.add("late window")
    receipt = world.take(late, "kim", lease=60)
    twice = world.add("held by the second")
    stale = world.take(twice, "lee", lease=60)
    superseded = world.add("taken away")
    away = world.take(superseded, "moe")
    world.do(c.Recover, task=superseded, reason="it hangs")
    world.keep("taken away", away, "NO_CLAIM")
    world.do(c.Register, agent="nan")
    world.do(c.Reassign, task=superseded_by(world), agent="nan", seconds=12 * HOUR)
    world.wait(61)
    world.keep("late", receipt, "ACCEPTED")
    world.keep("stale", stale, "STALE_GENERATION")
    world.keep("held by the second", world.take(twice, "ann"), "ACCEPTED")
    assert world.row(late).late_submit_open
    assert world.state(lost) == "paused"


def superseded_by(world: World) -> str:
    key = world.add("reassigned")
    world.take(key, "moe")
    return key


def lapsed(world: World) -> None:
    """Leases and a wait that are over by the clock, and that nobody has settled."""
    world.enter("lapsed")
    receipt = world.take(world.add("lapsed"), "ann", lease=60)
    world.take(world.add("lapsed, its last attempt", max_attempts=1), "bo", lease=60)
    world.do(c.Fail, receipt=world.take(world.add("retry due"), "cy"), retry_after=30)
    world.do(c.Reserve, patterns=("x",), agent="ann", session="s-ann", lease=60)
    world.keep("lapsed", receipt, "ACCEPTED")
    world.wait(61)
