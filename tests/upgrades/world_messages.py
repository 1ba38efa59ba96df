"""The part of the fixture about messaging: webhooks, sinks, facts. As in `world.py`, only what the release offers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import commands as c
from tenure.core.commands import NewTask, Template
from tenure.core.records import Cycles, Sink
from tenure.core.webhook_delivery import Tried
from tenure.engine.duties.election import LeaderEngine, stand
from tenure.engine.relay.relay import Relay, Settings
from tenure.engine.relay.webhook_relay import WebhookRelay
from tenure.engine.sources import trigger_duty
from tenure.testing.memory_sink import MemorySink

if TYPE_CHECKING:
    from tests.upgrades.world import World

HOUR = 3600.0
RECEIVER = "https://ci.example.com/hook"


class Answering:
    """Stands for the HTTP of a receiver: the status of each try."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = iter(statuses)

    def send_round(self, url: str, keys: Any, lanes: Any, **_: Any) -> list[Any]:
        found: list[Any] = []
        for lane in lanes:
            for number, delivery in enumerate(lane):
                status = next(self.statuses)
                found.append((delivery, Tried(status, None if status < 300 else "no", None)))
                if status >= 300:
                    found += [(rest, None) for rest in lane[number + 1 :]]
                    break
        return found


def messages(world: World) -> None:
    """Webhooks that deliver, wait, rest and are disabled; sinks that are current, paused and cut off; facts."""
    world.enter("post")
    led = stand(world.engine, "host-1", HOUR, None, Cycles())
    leader = LeaderEngine(world.engine, "host-1", led.term, lambda: None)
    ticks = iter(range(1_000_000))

    def step(*parts: Any) -> None:
        for part in parts:
            for _ in range(20):
                pause = part.step()
                for under_way in list(getattr(part, "_under_way", {}).values()):
                    under_way.future.result(10)
                if pause and not getattr(part, "_under_way", {}):
                    break

    sinks = {name: MemorySink() for name in ("broker", "resting", "lost")}
    relays = [
        Relay(
            world.engine, Settings(name, f"nats://{name}:4222", projects=("post",)), partial(sinks.get, name),
            lambda: leader, lambda: float(next(ticks)),
        )
        for name in sinks
    ]  # fmt: skip
    step(*relays)
    for name, more in (("ci", {}), ("resting", {}), ("gone", {"kinds": ("task.completed",)})):
        world.do(c.SetWebhook, webhook=name, url=RECEIVER, **{"kinds": ("task.*",), **more})
    world.do(c.SetWebhook, webhook="chosen", url=RECEIVER, kinds=("task.status_changed",), where={"event.track": "B"})
    world.do(c.RotateWebhook, webhook="chosen")
    world.do(c.PauseWebhook, webhook="resting")
    hooks = WebhookRelay(world.engine, Answering(200, 500, 410, *[500] * 50), lambda: leader)  # type: ignore[arg-type]
    step(hooks)
    world.do(c.Register, agent="codex-1", session="s-codex", type="codex")
    typed = world.add("for a type of agent", constraints={"agent_type": "codex"})
    world.do(c.Send, sender="bo", to="@type:codex", text="look at it", action="review", expires=12 * HOUR)
    world.do(c.Emit, name="build_failed", data={"commit": "4f2a", "notes": "n" * 3000}, agent="codex-1")
    world.do(c.FilesChanged, paths=("src/a.py", "src/b.py"), more=3)
    fix = Template(tasks=(NewTask(title="Fix {event.details.data.commit}"),))
    named = {"event.details.name": "build_failed"}
    world.do(c.SetTrigger, trigger="fix", on="agent.emitted", where=named, template=fix)
    changed = {"event.details.paths": {"paths": ["src/**"]}}
    world.do(c.SetTrigger, trigger="files", on="source.files_changed", template=fix, where=changed)
    step(hooks, *relays)
    world.finish(world.add("delivered"), "bo")
    world.keep("by type", world.take(typed, "codex-1"), "ACCEPTED")
    step(hooks, relays[0])
    world.do(c.PauseRelay, project="", sink="resting")
    sinks["broker"].fails = True
    world.do(c.Emit, name="build_passed", agent="codex-1")
    step(relays[0])
    world.engine.transact((), cut_off_lost)
    trigger_duty.hear(world.engine, "post")
    for part in (hooks, *relays):
        part.close()


def cut_off_lost(work: Any) -> None:
    """As the duty does after seven days."""
    row = work.get(Sink, "", "lost")
    work.record("sink.behind", project="", level="error", details={"sink": "lost", "after": row.sequence})
    work.put(msgspec.structs.replace(row, cut_off_at=work.now))
