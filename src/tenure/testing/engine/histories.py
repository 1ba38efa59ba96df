"""Long mixed histories, drawn from a seed, that can be played again on other stores, in batches, or with sweeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from tenure.core import commands as c
from tenure.core.commands import Command, Dependency, NewTask, Process, Totals
from tenure.core.land_request import LandRequest
from tenure.core.records import Archived, RetryPolicy, Task
from tenure.core.retry import CLASSES
from tenure.engine import Answer
from tenure.testing.factories import PROJECT, Scene, comparable

AGENTS = ("ann", "bo", "cy")
WAITS = (0, 1, 20, 31, 61, 100, 301, 660, 3601, 90_000)
COMMITS = ("a" * 40, "b" * 40, "c" * 40)
GLOBS = ("src/**", "src/a.py", "docs/*", "env:staging")


class Player:
    """A scene in which a history is played: what its steps may refer to by number."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.receipts: list[str] = []
        self.holds: list[str] = []
        self.takers: list[str] = []  # receipts of those who land
        self.undoable: list[str] = []
        self.messages: list[str] = []

    def learn(self, command: Command, answer: Answer) -> None:
        if isinstance(answer, Exception):
            return
        for claim in (answer, *(answer.claims or ())):
            if claim.receipt is not None and not claim.again:
                lists: dict[type[Command], list[str]] = {c.Reserve: self.holds, c.TakeValidation: self.takers}
                lists.get(type(command), self.receipts).append(claim.receipt)
        if answer.command_id is not None and not answer.again:
            self.undoable.append(answer.command_id)

    def keys(self) -> list[str]:
        """Every task, in the order in which they were made; read as stored, so that looking settles nothing."""
        wanted = {"project": PROJECT}
        tasks: list[Any] = self.scene.engine.read(
            lambda tx: [*tx.find(Task, wanted), *tx.find(Archived, wanted | {"out": False})]
        )
        return [t.key for t in sorted(tasks, key=lambda t: (t.created_at, t.track, len(t.ref), t.ref))]


Step = Callable[[Player], Command]


class History:
    """Steps from a seed. A step is made into a command when it is its turn, by what the player knows by then."""

    def __init__(self, seed: int, length: int) -> None:
        self.dice = Random(seed)  # noqa: S311 - a history, not a secret
        self.length = length

    def __iter__(self) -> Iterator[Step | float]:
        """Commands to be, and seconds that pass."""
        for _ in range(6):
            yield self.add()
        for _ in range(self.length):
            if self.dice.random() < 0.2:
                yield self.dice.choice(WAITS)
            else:
                yield self.dice.choices(MAKERS, WEIGHTS)[0](self)

    def number(self) -> int:
        return self.dice.randrange(1 << 30)

    def recent(self) -> Callable[[list[str]], str]:
        """One of a list, more often one of the newest."""
        number, newest = self.number(), self.dice.random() < 0.7

        def pick(items: list[str]) -> str:
            some = items[-4:] if newest else items
            return some[number % len(some)] if some else "A-999@1:" + "0" * 32

        return pick

    def agent(self) -> dict[str, Any]:
        name = self.dice.choice(AGENTS)
        return {"agent": name, "session": f"{name}-{self.dice.randrange(2)}"}

    # --- makers of steps ---

    def _new_task(self, title: str) -> Callable[[Player], NewTask]:
        dice = self.dice
        needs = [(self.number(), dice.choice(("block", "cancel", "ignore"))) for _ in range(dice.choice((0, 0, 1, 2)))]
        fields: dict[str, Any] = {
            "priority": dice.choice((5, 20, 50, 90)),
            "boost": dice.choice((None, 0, 1)),
            "max_attempts": dice.choice((1, 2, 3)),
            "on_lost": dice.choice(("retry", "retry", "back_off", "hold")),
            "touches": (dice.choice(GLOBS),) if dice.random() < 0.3 else (),
            "track": dice.choice(("A", "B")),
            "draft": dice.random() < 0.1,
            "constraints": dice.choice(({}, {}, {"max_duration": 200}, {"model_preferences": ["opus"]})),
            "retry": dice.choice((RetryPolicy(), RetryPolicy(strategy="immediate"))),
        }
        deadline, later = dice.choice((None, None, 50, 9000)), dice.choice((None, None, None, 40))

        def make(player: Player) -> NewTask:
            keys, now = player.keys(), player.scene.clock.now
            edges = {keys[n % len(keys)]: on_failure for n, on_failure in needs} if keys else {}
            times: dict[str, Any] = {
                "deadline": None if deadline is None else now + deadline * 1_000_000,
                "not_before": None if later is None else now + later * 1_000_000,
            }
            depends_on = tuple(Dependency(task=k, on_failure=f) for k, f in edges.items())
            return NewTask(title=title, depends_on=depends_on, **fields, **times)

        return make

    def add(self) -> Step:
        make, key = self._new_task("added"), self.dice.choice((None, None, "k1", "k2"))
        return lambda p: c.Add(project=PROJECT, task=replaced(make(p), idempotency_key=key))

    def subtask(self) -> Step:
        make, pick = self._new_task("subtask"), self.recent()
        return lambda p: c.Add(project=PROJECT, task=replaced(make(p), parent=pick(p.keys()), track=None))

    def plan(self) -> Step:
        makers = [self._new_task(f"t{n}") for n in range(self.dice.randrange(1, 4))]
        name, prune = self.dice.choice((None, "release")), self.dice.random() < 0.3

        def plan(p: Player) -> Command:
            tasks = [replaced(make(p), name=f"t{n}") for n, make in enumerate(makers)]
            needs = (*tasks[-1].depends_on, *(f"t{n}" for n in range(len(tasks) - 1)))
            tasks[-1] = replaced(tasks[-1], depends_on=needs)
            return c.Plan(project=PROJECT, tasks=tuple(tasks), name=name, prune=prune)

        return plan

    def claim(self) -> Step:
        pick, who, lease = self.recent(), self.agent(), self.dice.choice((30, 60, 600))
        request = self.dice.choice((None, None, f"r{self.dice.randrange(20)}"))
        who["process"] = self.process()
        return lambda p: c.ClaimTask(project=PROJECT, task=pick(p.keys()), lease=lease, request_id=request, **who)

    def claim_next(self) -> Step:
        who, lease, n = self.agent(), self.dice.choice((30, 60, 600)), self.dice.choice((1, 1, 2, 3))
        who["process"] = self.process()
        return lambda p: c.ClaimNext(project=PROJECT, lease=lease, n=n, **who)

    def process(self) -> Process | None:
        pid = self.dice.choice((None, 1, 2, 3))
        return None if pid is None else Process(host="h", boot="b", pid=pid, start=1)

    def gone(self) -> Step:
        process = self.process()
        return lambda p: c.Gone(project=PROJECT, processes=() if process is None else (process,))

    def _receipted(self, make: Callable[[str], Command]) -> Step:
        pick = self.recent()
        return lambda p: make(pick(p.receipts))

    def renew(self) -> Step:
        lease = self.dice.choice((None, 45))
        return self._receipted(lambda r: c.Renew(project=PROJECT, receipt=r, lease=lease))

    def progress(self) -> Step:
        percent, done_in = self.dice.randrange(101), self.dice.choice((None, 0, 100))
        return self._receipted(lambda r: c.Progress(project=PROJECT, receipt=r, percent=percent, done_in=done_in))

    def checkpoint(self) -> Step:
        data = {"next": "x" * self.dice.choice((3, 5000))}
        return self._receipted(lambda r: c.SaveCheckpoint(project=PROJECT, receipt=r, data=data))

    def usage(self) -> Step:
        fields: dict[str, Any] = {
            "model": self.dice.choice(("opus", "haiku")), "fresh": self.dice.randrange(100),
            "cost_usd": self.dice.choice((None, "0.01", "0.5", "1.25")),
        }  # fmt: skip
        return self._receipted(lambda r: c.ReportUsage(project=PROJECT, receipt=r, **fields))

    def land(self) -> Step:
        old, new = self.dice.sample(COMMITS, 2)
        return self._receipted(lambda r: c.Land(project=PROJECT, receipt=r, branch="main", old=old, new=new))

    def submit(self) -> Step:
        data = self.dice.choice(("a", {"b": 1}, "c" * 5000))
        usage = self.dice.choice(((), (), (Totals(model="opus", output=self.dice.randrange(100)),)))
        return self._receipted(lambda r: c.Submit(project=PROJECT, receipt=r, data=data, usage=usage))

    def submit_to_land(self) -> Step:
        wanted = LandRequest(commit=self.dice.choice(COMMITS), onto="main")
        return self._receipted(lambda r: c.Submit(project=PROJECT, receipt=r, data="d", land=wanted))

    def take_landing(self) -> Step:
        lease, who, pick = self.dice.choice((30, 60, 600)), self.dice.choice(AGENTS), self.recent()
        fields: dict[str, Any] = {"checker": who, "lease": lease, "phase": "land"}
        if self.dice.random() < 0.8:
            return lambda p: c.TakeValidation(project=PROJECT, **fields)
        return lambda p: c.TakeValidation(project=PROJECT, task=pick(p.keys()), **fields)

    def _taken(self, make: Callable[[str], Command]) -> Step:
        pick = self.recent()
        return lambda p: make(pick(p.takers))

    def record_landing(self) -> Step:
        old, new = self.dice.sample(COMMITS, 2)
        return self._taken(lambda r: c.Land(project=PROJECT, receipt=r, branch="main", old=old, new=new))

    def settle_landing(self) -> Step:
        fields: dict[str, Any] = self.dice.choice(
            ({"ok": True}, {"ok": True}, {"ok": False, "conflict": True}, {"ok": False})
        )
        reasons = () if fields["ok"] else ("README.md",)
        return self._taken(lambda r: c.Judge(project=PROJECT, receipt=r, reasons=reasons, **fields))

    def block_landing(self) -> Step:
        fields: dict[str, Any] = {"blocked": self.dice.random() < 0.5, "retry_after": self.dice.choice((None, 0, 60))}
        return self._taken(lambda r: c.Undecide(project=PROJECT, receipt=r, reason="lib.py is changed", **fields))

    def keep_landing(self) -> Step:
        return self._taken(lambda r: c.RenewValidation(project=PROJECT, receipt=r))

    def fail(self) -> Step:
        error_class, after = self.dice.choice(CLASSES), self.dice.choice((None, 0, 15))
        return self._receipted(
            lambda r: c.Fail(project=PROJECT, receipt=r, error_class=error_class, retry_after=after, message="no")
        )

    def release(self) -> Step:
        return self._receipted(lambda r: c.Release(project=PROJECT, receipt=r))

    def ask(self) -> Step:
        return self._receipted(lambda r: c.Ask(project=PROJECT, receipt=r, question="Why?"))

    def spawn(self) -> Step:
        name, wait = self.dice.choice(("x", "y")), self.dice.random() < 0.5
        return self._receipted(
            lambda r: c.Spawn(project=PROJECT, receipt=r, tasks=(NewTask(title="part", name=name),), wait=wait)
        )

    def wait(self) -> Step:
        return self._receipted(lambda r: c.Wait(project=PROJECT, receipt=r))

    def reserve(self) -> Step:
        pattern, who, pick = self.dice.choice(GLOBS), self.agent(), self.recent()
        if self.dice.random() < 0.5:
            return lambda p: c.Reserve(project=PROJECT, patterns=(pattern,), lease=60, **who)
        return lambda p: c.Reserve(project=PROJECT, patterns=(pattern,), receipt=pick(p.receipts), **who)

    def keep_reserved(self) -> Step:
        pick, kind = self.recent(), self.dice.choice((c.RenewReservation, c.Unreserve))
        return lambda p: kind(project=PROJECT, receipt=pick(p.holds))

    def operate(self) -> Step:
        kind = self.dice.choice(
            (c.Pause, c.Pause, c.Resume, c.Resume, c.Cancel, c.Retry, c.Retry, c.Reset, c.Adopt, c.Archive, c.Recover,
             c.Abort, c.Publish)
        )  # fmt: skip
        pick = self.recent()
        return lambda p: kind(project=PROJECT, task=pick(p.keys()))

    def cascading_reset(self) -> Step:
        pick = self.recent()
        return lambda p: c.Reset(project=PROJECT, task=pick(p.keys()), cascade=True)

    def edit(self) -> Step:
        pick, supersede = self.recent(), self.dice.random() < 0.5
        changes = self.dice.choice(
            ({"priority": 7}, {"spec": {"prompt": "x"}}, {"touches": ["docs/*"]}, {"title": "x"}, {"on_lost": "retry"})
        )
        return lambda p: c.Edit(project=PROJECT, task=pick(p.keys()), changes=changes, supersede=supersede)

    def offer(self) -> Step:
        pick, agent, kind = self.recent(), self.dice.choice(AGENTS), self.dice.choice((c.Assign, c.Reassign))
        return lambda p: kind(project=PROJECT, task=pick(p.keys()), agent=agent)

    def link(self) -> Step:
        one, other, kind = self.recent(), self.recent(), self.dice.choice((c.Link, c.Link, c.Unlink))
        return lambda p: kind(project=PROJECT, task=one(p.keys()), needs=other(p.keys()))

    def undo(self) -> Step:
        pick = self.recent()
        return lambda p: c.Undo(project=PROJECT, command_id=pick(p.undoable))

    def line(self) -> Step:
        kind = self.dice.choice((c.StopLine, c.StartLine, c.StartLine))
        scope = self.dice.choice(("track:B", "agent:bo"))
        return lambda p: kind(project=PROJECT, scope=scope)

    def people(self) -> Step:
        who = self.agent()
        command = self.dice.choice(
            (
                c.Register(project=PROJECT, stale_after=300, max_concurrent_tasks=self.dice.choice((None, 2)), **who),
                c.Heartbeat(project=PROJECT, **who),
                c.Leave(project=PROJECT, session=who["session"]),
                c.Terminate(project=PROJECT, agent=who["agent"], graceful=False),
                c.Send(project=PROJECT, sender=who["agent"], text="hi", to=self.dice.choice(("@all", "@idle", "bo"))),
                c.Read(project=PROJECT, agent=who["agent"]),
                c.Lead(project=PROJECT, holder=who["agent"], agent=True, lease=30),
            )
        )
        return lambda p: command


def replaced(new: NewTask, **changes: Any) -> NewTask:
    return NewTask(**{f: getattr(new, f) for f in new.__struct_fields__} | changes)


_WEIGHTS: dict[Callable[[History], Step], int] = {
    History.add: 5, History.subtask: 2, History.plan: 3, History.claim: 8, History.claim_next: 8, History.renew: 4,
    History.progress: 3, History.checkpoint: 2, History.submit: 8, History.fail: 7, History.release: 2, History.ask: 1,
    History.spawn: 3, History.wait: 1, History.reserve: 2, History.keep_reserved: 1, History.operate: 12,
    History.cascading_reset: 1, History.edit: 3, History.offer: 2, History.link: 3, History.undo: 3, History.line: 1,
    History.people: 4, History.usage: 4, History.land: 2, History.gone: 2,
    History.submit_to_land: 6, History.take_landing: 6, History.record_landing: 3, History.settle_landing: 4,
    History.block_landing: 2, History.keep_landing: 1,
}  # fmt: skip
MAKERS, WEIGHTS = list(_WEIGHTS), list(_WEIGHTS.values())


def play(scene: Scene, seed: int, length: int, *, sweeps: int = 0) -> list[Any]:
    """The answers of a history, one command at a time, without what chance gave them.

    With `sweeps` each wait is cut into so many parts of different length, with a sweep at the end of each.
    """
    player, answers = Player(scene), []
    dice = Random(seed)  # noqa: S311 - a history, not a secret
    for turn, step in enumerate(History(seed, length)):
        if not callable(step):
            until = scene.clock.now + round(step * 1_000_000)
            for moment in sorted(dice.randint(scene.clock.now, until) for _ in range(sweeps - 1)):
                scene.clock.now = moment
                scene.engine.sweep()
            scene.clock.now = until
            if sweeps:
                scene.engine.sweep()
            continue
        command = step(player)
        (answer,) = scene.run(command)
        player.learn(command, answer)
        answers.append((turn, type(command).__name__, comparable(answer)))
    return answers


def play_in_batches(scene: Scene, seed: int, length: int, size: int, *, one_by_one: bool) -> list[Any]:
    """The same, with the commands between two waits made beforehand, and sent together or each alone."""
    player, answers = Player(scene), []
    batch: list[Command] = []

    def send() -> None:
        got = [a for command in batch for a in scene.run(command)] if one_by_one else scene.run(*batch)
        for command, answer in zip(batch, got, strict=True):
            player.learn(command, answer)
            answers.append((type(command).__name__, comparable(answer)))
        batch.clear()

    for step in History(seed, length):
        if not callable(step):
            send()
            scene.clock.advance(seconds=step)
            continue
        batch.append(step(player))
        if len(batch) == size:
            send()
    send()
    return answers


def standing(scene: Scene) -> list[tuple[Any, ...]]:
    """Where every task stands, without what chance gave it."""
    shown = (
        "key", "state", "state_before", "run", "generation", "attempts", "given_back", "priority", "retry_at", "agent",
        "session", "lease_until", "late_submit_open", "unmet", "waits_on", "dependents", "children", "height",
        "offer_to", "band", "rank", "due_at", "version", "ready_at", "started_at", "completed_at", "failed_at",
        "dead_lettered_at", "missed",
    )  # fmt: skip
    return sorted(tuple(getattr(t, f) for f in shown) for t in scene.rows(Task))
