"""Runtime state as keys in Redis or Valkey, for programs outside that read them. Written from the log, never read back.

Keys begin with `tenure:TENANT:`; with the prefix of the sink's URL `tenure:PREFIX:TENANT:`.

| key | type | |
| --- | --- | --- |
| `agent:heartbeat:ID` | text | when it was last seen; goes 60 s after that |
| `agent:status:ID` | text | `active`, `stale`, `draining`, … |
| `agent:tasks:ID` | set | tasks that it holds |
| `tasks:ready` | sorted set | ready tasks; the lowest score is claimed first |
| `tasks:active` | hash | held task → its agent |
| `stale_agents` | set | |
| `session:context:ID` | JSON | its agent and tasks; goes after an hour |
| `usage:current` | hash | sums of the project or tenant, as the snapshot has them |
| `usage:task:ID` | hash | |
| `usage:alerts` | list | the last alerts of budgets, newest first |

Events of tasks and agents are also published on the channels `tenure:TENANT:tasks:events` and `…agents:events`.

The relay calls `apply` with each page that the sink has acknowledged, and `replace` with a snapshot when it starts,
when the sink has forgotten everything, after a rewind and every minute: only snapshots show who was seen and how
much was spent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import redis

from tenure.core import limits
from tenure.core.instants import format_instant
from tenure.core.lifecycle import HELD
from tenure.sinks import names
from tenure.sinks.port import Message
from tenure.sinks.redis_streams import Streams

HEARTBEAT_LIFETIME = limits.REDIS_HEARTBEAT
CONTEXT_LIFETIME = limits.REDIS_CONTEXT
ALERTS_KEPT = limits.REDIS_ALERTS
WRITING = 10.0  # seconds
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode

# Sets the status of an agent by the kind of its event.
_STATUSES = {
    "registered": "active", "updated": "active", "recovered": "active", "resumed": "active", "stale": "stale",
    "draining": "draining", "terminating": "terminating", "terminated": "terminated", "left": "left",
}  # fmt: skip


class Agent(NamedTuple):
    id: str
    status: str
    seen_at: int  # microseconds
    tasks: Sequence[str] = ()


class Snapshot(NamedTuple):
    """The state of one tenant at one moment, read by the relay in one transaction."""

    tenant: str
    now: int
    agents: Sequence[Agent] = ()
    ready: Mapping[str, float] = {}  # task → score
    active: Mapping[str, str] = {}  # task → agent
    contexts: Mapping[str, Mapping[str, Any]] = {}  # session → what it is about
    usage: Mapping[str, float | int | str] = {}
    usage_of_tasks: Mapping[str, Mapping[str, float | int | str]] = {}


class RuntimeKeys:
    def __init__(self, url: str) -> None:
        """`url`: as of the sink."""
        self._streams = Streams(url)

    def apply(self, messages: Sequence[Message]) -> None:
        """Follow the events of a page. Repeats change nothing. Raises SinkUnavailable."""
        bodies = [_decode(message.body) for message in messages if names.family_of(message.name) == names.EVENTS]
        followed = [body for body in bodies if body["kind"].split(".")[1] in ("task", "agent", "budget")]
        if followed:
            self._streams.asked(lambda client: self._follow(client, followed), WRITING)

    def replace(self, snapshot: Snapshot) -> None:
        """Make the keys show what the snapshot does, and no more. Raises SinkUnavailable."""
        self._streams.asked(lambda client: self._replace(client, snapshot), WRITING)

    def close(self) -> None:
        self._streams.close()

    def _start(self, tenant: str) -> str:
        return f"{self._streams.start}:{tenant}"

    def _follow(self, client: redis.Redis, bodies: Sequence[dict[str, Any]]) -> None:
        with client.pipeline(transaction=False) as together:
            for body in bodies:
                start, payload, kind = self._start(body["tenant"]), body["payload"], body["kind"].split(".")
                match kind[1]:
                    case "task":
                        self._task(together, start, payload)
                        together.publish(f"{start}:tasks:events", _encode(body))
                    case "agent":
                        self._agent(together, start, payload, kind[-1], body["emitted_at"])
                        together.publish(f"{start}:agents:events", _encode(body))
                    case "budget" if kind[-1] == "alert":
                        together.lrem(f"{start}:usage:alerts", 0, _alert(body))  # type: ignore[arg-type] # bytes are a value
                        together.lpush(f"{start}:usage:alerts", _alert(body))
                        together.ltrim(f"{start}:usage:alerts", 0, ALERTS_KEPT - 1)
            together.execute()

    def _task(self, together: Any, start: str, payload: Mapping[str, Any]) -> None:
        task, agent, state = payload["task_id"], payload["agent_id"], payload["new_state"]
        if task is None or state is None:
            return
        if state == "ready":
            together.zadd(f"{start}:tasks:ready", {task: 0}, nx=True)  # the next snapshot has its place
        else:
            together.zrem(f"{start}:tasks:ready", task)
        if state in HELD and agent is not None:
            together.hset(f"{start}:tasks:active", task, agent)
            together.sadd(f"{start}:agent:tasks:{agent}", task)
        else:
            together.hdel(f"{start}:tasks:active", task)
            if agent is not None:
                together.srem(f"{start}:agent:tasks:{agent}", task)

    def _agent(self, together: Any, start: str, payload: Mapping[str, Any], verb: str, seen: str) -> None:
        agent = payload["agent_id"]
        if agent is None or verb not in _STATUSES:
            return
        together.set(f"{start}:agent:status:{agent}", _STATUSES[verb])
        if verb == "stale":
            together.sadd(f"{start}:stale_agents", agent)
            return
        together.srem(f"{start}:stale_agents", agent)
        if verb in ("registered", "recovered"):
            together.set(f"{start}:agent:heartbeat:{agent}", seen, ex=int(HEARTBEAT_LIFETIME))

    def _replace(self, client: redis.Redis, snapshot: Snapshot) -> None:
        start = self._start(snapshot.tenant)
        own = [f"{start}:agent:{part}:{agent.id}" for agent in snapshot.agents for part in ("status", "tasks")]
        own += [f"{start}:usage:task:{task}" for task in snapshot.usage_of_tasks]
        found = [client.scan_iter(match=f"{start}:{part}") for part in ("agent:*", "usage:task:*")]
        known = {key.decode() for keys in found for key in keys}
        stale = [agent.id for agent in snapshot.agents if agent.status == "stale"]
        with client.pipeline(transaction=True) as together:  # readers see the state before or after
            for key in known - set(own):
                if ":agent:heartbeat:" not in key:  # these go by themselves
                    together.delete(key)
            for agent in snapshot.agents:
                self._agent_of(together, start, agent, snapshot.now)
            _set(together, f"{start}:tasks:ready", "zadd", dict(snapshot.ready))
            _set(together, f"{start}:tasks:active", "hset", dict(snapshot.active))
            _set(together, f"{start}:stale_agents", "sadd", stale)
            _set(together, f"{start}:usage:current", "hset", dict(snapshot.usage))
            for task, sums in snapshot.usage_of_tasks.items():
                _set(together, f"{start}:usage:task:{task}", "hset", dict(sums))
            for session, context in snapshot.contexts.items():
                together.set(f"{start}:session:context:{session}", _encode(context), ex=int(CONTEXT_LIFETIME))
            together.execute()

    def _agent_of(self, together: Any, start: str, agent: Agent, now: int) -> None:
        together.set(f"{start}:agent:status:{agent.id}", agent.status)
        _set(together, f"{start}:agent:tasks:{agent.id}", "sadd", list(agent.tasks))
        left = HEARTBEAT_LIFETIME - (now - agent.seen_at) / 1e6
        if left >= 1:
            together.set(f"{start}:agent:heartbeat:{agent.id}", format_instant(agent.seen_at), ex=int(left))
        else:
            together.delete(f"{start}:agent:heartbeat:{agent.id}")


def _alert(body: Mapping[str, Any]) -> bytes:
    payload = body["payload"]
    return _encode({"at": body["emitted_at"], **{part: payload[part] for part in ("budget", "threshold", "percent")}})


def _set(together: Any, key: str, verb: str, values: Any) -> None:
    """Make the key have exactly these values."""
    together.delete(key)
    if not values:
        return
    match verb:
        case "zadd":
            together.zadd(key, values)
        case "hset":
            together.hset(key, mapping=values)
        case _:
            together.sadd(key, *values)
