"""Random small projects, in which every rule of claims can bite."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tenure.core import commands as c
from tenure.core import runners
from tenure.core.commands import Dependency, NewTask
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Session, Task, replace
from tenure.core.retry import CLASSES
from tenure.engine.runtime.tenancy import TenantLimits, check_open
from tenure.stores.memory import Memory
from tenure.testing.clock import FakeClock
from tenure.testing.factories import SECRETS, Scene

AGENTS = ("ann", "bo", "cy", "dee")
TRACKS = ("A", "B")
FILES = ("src/**", "src/a.py", "docs/**")
MODELS = ("opus", "haiku", "gpt-5")
STEPS = 28


class RandomScene(Scene):
    """A project after STEPS random commands. Every fourth is in a tenant with few claims and sessions."""

    def __init__(self, seed: int) -> None:
        self.dice_of_scene = random = Random(seed)
        clock = FakeClock()
        store = Memory(clock=clock)
        context = SECRETS
        if random.random() < 0.25:
            home = Scene(store, clock, seed)
            home.do(c.AddTenant, project="", tenant="acme")
            few = {"max_concurrent_claims": random.randint(1, 4), "max_active_sessions": random.choice((3, 9))}
            home.do(c.ChangeTenant, project="", tenant="acme", limits=few)
            limits = TenantLimits(store, check_open(store, "acme"), lambda: clock.now / 1e6)
            context = replace(SECRETS, tenant="acme", limits=limits)
        super().__init__(store, clock, seed, context)
        if context is not SECRETS:
            self.do(c.DefineProject, project="q")
            for _ in range(3):
                self.do(c.Add, project="q", task=NewTask(title="elsewhere"))
                answer = self.try_to(c.ClaimNext, project="q", agent="zed", session=f"z{random.randint(1, 2)}")
                if isinstance(answer, Outcome) and answer.receipt and random.random() < 0.5:
                    self.do(c.Release, project="q", receipt=answer.receipt)  # its share stays
        self.receipts: list[str] = []
        acts: list[Callable[[Random], None]] = [
            self._add, self._add, self._claim, self._claim, self._end, self._end, self._register, self._budget,
            self._budget,
            self._limit, self._operate, self._operate, self._agent, self._settings, self._wait,
        ]  # fmt: skip
        acts += [random.choice(acts)] * random.choice((0, 5, 10))  # what this project has more of
        for _ in range(3):
            self._add(random)
            self._register(random)
        for _ in range(STEPS):
            random.choice(acts)(random)

    # --- steps ------------------------------------------------------------------------------------------------

    def _add(self, random: Random) -> None:
        maybe = _maybe(random)
        constraints = {
            **maybe(0.15, required_capabilities=["rust"]), **maybe(0.1, region="eu"), **maybe(0.1, agent_type="codex"),
            **maybe(0.4, estimated_tokens=random.choice((20_000, 200_000, 900_000))),
            **maybe(0.15, max_cost_usd=random.choice(("1", "4"))),
            **maybe(0.2, model_preferences=[random.choice(MODELS)]),
        }  # fmt: skip
        keys = self._keys()
        new = NewTask(
            title="t", track=random.choice(TRACKS), type=random.choice(("code", "review")), constraints=constraints,
            priority=random.choice((5, 15, 50, 85)), max_attempts=random.choice((1, 2, 3)),
            touches=(random.choice(FILES),) if random.random() < 0.3 else (), draft=random.random() < 0.05,
            depends_on=(Dependency(task=random.choice(keys)),) if keys and random.random() < 0.15 else (),
            parent=random.choice(keys) if keys and random.random() < 0.1 else None,
            **maybe(0.1, not_before=self.now + 90_000_000),
        )  # fmt: skip
        self.try_to(c.Add, task=new)

    def _claim(self, random: Random) -> None:
        agent = random.choice(AGENTS)
        session = random.choice((f"s-{agent}", f"s-{agent}", f"t-{agent}"))
        fields: dict[str, Any] = {"agent": agent, "session": session, "lease": random.choice((60, 300))}
        if random.random() < 0.1:
            fields["metadata"] = runners.mark("a word", submits=False)
        if keys := self._keys() if random.random() < 0.5 else []:
            answer = self.try_to(c.ClaimTask, task=random.choice(keys), **fields)
        else:
            answer = self.try_to(c.ClaimNext, **fields)
        if isinstance(answer, Outcome) and answer.receipt:
            self.receipts.append(answer.receipt)

    def _end(self, random: Random) -> None:
        if not self.receipts:
            return
        receipt = self.receipts.pop(random.randrange(len(self.receipts)))
        act = random.choice(("submit", "fail", "fail", "fail", "release", "spend"))
        if act == "submit":
            self.try_to(c.Submit, receipt=receipt, data="done")
        elif act == "fail":
            self.try_to(c.Fail, receipt=receipt, error_class=random.choice(CLASSES))
        elif act == "release":
            self.try_to(c.Release, receipt=receipt)
        else:
            self.receipts.append(receipt)
            cost = random.choice(("0.3", "2"))
            self.try_to(c.ReportUsage, receipt=receipt, model=random.choice(MODELS), cost_usd=cost)

    def _register(self, random: Random) -> None:
        agent = random.choice(AGENTS)
        maybe = _maybe(random)
        fields = {
            **maybe(0.4, capabilities=("rust",)), **maybe(0.3, tracks=(random.choice(TRACKS),)),
            **maybe(0.3, region="eu"), **maybe(0.3, type="codex"), **maybe(0.3, max_concurrent_tasks=1),
            **maybe(0.4, models=(random.choice(MODELS),)), **maybe(0.6, session=f"s-{agent}"),
        }  # fmt: skip
        self.try_to(c.Register, agent=agent, **fields)

    def _budget(self, random: Random) -> None:
        keys = self._keys()
        dags = [task.dag for task in self.rows(Task)]
        scopes = ["project", f"agent:{random.choice(AGENTS)}", "tenant"]
        scopes += [f"task:{random.choice(keys)}", f"dag:{random.choice(dags)}"] if keys else []
        scope = random.choice(scopes)
        if random.random() < 0.15:
            self.try_to(c.RemoveBudget, scope=scope)
            return
        later = {"begins_at": self.now + 60_000_000, "ends_at": self.now + 600_000_000}
        self.try_to(
            c.SetBudget, scope=scope, usd=random.choice(("0", "1", "3", "20")),
            default_estimate=random.choice(("0.2", "1")), **_maybe(random)(0.2, throttle=True),
            **_maybe(random)(0.1, **later),
        )  # fmt: skip

    def _limit(self, random: Random) -> None:
        name = random.choice(("max_concurrent_claims", "max_generations_per_task", "max_active_sessions"))
        value = random.choice((2, 6, None) if name == "max_active_sessions" else (1, 2, 3, 6, None))
        self.try_to(c.DefineProject, change_limits={name: value})

    def _operate(self, random: Random) -> None:
        keys = self._keys()
        if not keys:
            return
        task, agent = random.choice(keys), random.choice(AGENTS)
        act = random.choice(("pause", "resume", "assign", "attempts", "touches", "publish", "retry", "cancel", "cap"))
        changes: dict[str, dict[str, Any]] = {
            "attempts": {"max_attempts": random.choice((1, 2))},
            "touches": {"touches": [random.choice(FILES)]},
            "cap": {"constraints": {"max_cost_usd": random.choice(("0.5", "5"))}},
        }
        if act == "pause":
            self.try_to(c.Pause, task=task)
        elif act == "resume":
            self.try_to(c.Resume, task=task, budget=random.random() < 0.5)
        elif act == "assign":
            self.try_to(c.Assign, task=task, agent=agent)
        elif act == "publish":
            self.try_to(c.Publish, task=task)
        elif act == "retry":
            self.try_to(c.Retry, task=task)
        elif act == "cancel":
            if random.random() < 0.3:
                self.try_to(c.Cancel, task=task)
        else:
            self.try_to(c.Edit, task=task, changes=changes[act])

    def _agent(self, random: Random) -> None:
        agent, act = (
            random.choice(AGENTS),
            random.choice(("drain", "terminate", "resume", "resume", "leave", "reserve")),
        )
        if act == "drain":
            self.try_to(c.Drain, agent=agent)
        elif act == "terminate":
            self.try_to(c.Terminate, agent=agent)
        elif act == "resume":
            self.try_to(c.ResumeAgent, agent=agent)
        elif act == "leave":
            self.try_to(c.Leave, session=f"s-{agent}")
        else:
            self.try_to(c.Reserve, agent=agent, session=f"s-{agent}", patterns=(random.choice(FILES),), lease=120)

    def _settings(self, random: Random) -> None:
        act = random.choice(("order", "router", "routing", "assign", "release", "stop", "stop", "go", "go"))
        agent, track = random.choice(AGENTS), random.choice(TRACKS)
        scopes = ["project:", f"agent:{agent}", f"track:{track}", "type:review"]
        scopes += [f"dag:{task.dag}" for task in self.rows(Task)[:1]]
        if act == "order":
            self.try_to(c.DefineProject, order=random.choice(("priority", "shortest")))
        elif act in ("router", "routing"):
            self.try_to(c.DefineProject, **{act: random.random() < 0.5})
        elif act == "assign":
            self.try_to(c.AssignTrack, code=track, agent=agent)
        elif act == "release":
            self.try_to(c.ReleaseTrack, code=track)
        elif act == "stop":
            self.try_to(c.StopLine, scope=random.choice(scopes))
        else:
            for scope in scopes:
                self.try_to(c.StartLine, scope=scope)

    def _wait(self, random: Random) -> None:
        self.pass_time(seconds=random.choice((1, 30, 90, 400)))

    # --- looks ------------------------------------------------------------------------------------------------

    def _keys(self) -> list[str]:
        return [task.key for task in self.rows(Task)]

    def session_of(self, agent: Agent) -> str:
        """The session that gave the agent's last sign of life; a new one where it has none."""
        own = [s for s in self.rows(Session) if s.agent == agent.id and s.ended_at is None]
        own.sort(key=lambda s: (s.last_activity, s.id))
        return own[-1].id if own else f"new-{agent.id}"


def _maybe(random: Random) -> Callable[..., dict[str, Any]]:
    return lambda share, **fields: fields if random.random() < share else {}
