"""Runtime state as keys in Redis or Valkey, for programs outside that read them. Written from the log, never read back.

Keys begin with `tenure:TENANT:`; with the prefix of the sink's URL `tenure:PREFIX:TENANT:`. Agents, sessions and tasks
are those of one project, whose keys begin with `tenure:TENANT:PROJECT:`.

| key | type | |
| --- | --- | --- |
| `PROJECT:agent:heartbeat:ID` | text | when it was last seen; goes 60 s after that |
| `PROJECT:agent:status:ID` | text | `active`, `stale`, `draining`, … |
| `PROJECT:agent:tasks:ID` | set | tasks that it holds |
| `PROJECT:tasks:ready:BOOST` | sorted set | ready tasks that age alike; the lowest score is claimed first |
| `PROJECT:tasks:active` | hash | held task → its agent |
| `PROJECT:stale_agents` | set | |
| `PROJECT:session:context:ID` | JSON | its agent and tasks; goes after an hour |
| `PROJECT:usage:current` | hash | its sums; of its budget `allocated`, `remaining` and `currency` |
| `PROJECT:usage:task:ID` | hash | the same of a held task |
| `usage:alerts` | list | the alerts of all budgets that are over a threshold now, newest first |

Tasks are comparable where they age alike, so there is one queue a BOOST, in hundredths of a point a minute (1 where a
project orders by length). Events of tasks and agents are also published on the channels `tenure:TENANT:tasks:events`
and `…agents:events`.

The relay calls `apply` with each page that the sink has acknowledged, and `replace` with a snapshot when it starts,
when the sink has forgotten everything, after a rewind and every minute: only snapshots show who was seen and how
much was spent. What an event alone does not show, the order of a queue and the alerts, is read again soon after it:
`replace_queues`, `replace_alerts`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import redis

from tenure.core import limits, priority
from tenure.core.instants import format_instant
from tenure.core.lifecycle import HELD
from tenure.sinks import names
from tenure.sinks.port import Message
from tenure.sinks.redis_streams import Streams

HEARTBEAT_LIFETIME = limits.REDIS_HEARTBEAT
CONTEXT_LIFETIME = limits.REDIS_CONTEXT
ALERTS_KEPT = limits.REDIS_ALERTS
BOOSTS = tuple(priority.BOOSTS.values())
WRITING = 10.0  # seconds
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
# Keys that a snapshot replaces.
_LASTING = re.compile(
    r"[^:]+:(?:agent:(?:status|tasks):[^:]+|tasks:(?:ready:\d+|active)|stale_agents|usage:(?:current|task:[^:]+))"
)

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


Queues = Mapping[int, Sequence[str]]  # boost → tasks, in the order in which they are claimed
Sums = Mapping[str, float | int | str]


class OfProject(NamedTuple):
    agents: Sequence[Agent] = ()
    ready: Queues = MappingProxyType({})
    active: Mapping[str, str] = {}  # task → agent
    contexts: Mapping[str, Mapping[str, Any]] = {}  # session → what it is about
    usage: Sums = MappingProxyType({})
    usage_of_tasks: Mapping[str, Sums] = {}


class Snapshot(NamedTuple):
    """The state of one tenant at one moment, read by the relay in one transaction."""

    tenant: str
    now: int
    projects: Mapping[str, OfProject] = {}
    alerts: Sequence[Mapping[str, Any]] = ()  # newest first


class Reordered(NamedTuple):
    """What has changed by a page and must be read again."""

    queues: set[str]  # of these projects
    alerts: bool


class RuntimeKeys:
    def __init__(self, url: str) -> None:
        """`url`: as of the sink."""
        self._streams = Streams(url)

    def apply(self, messages: Sequence[Message]) -> Reordered:
        """Follow the events of a page; says what they do not show. Repeats change nothing. Raises SinkUnavailable."""
        bodies = [_decode(message.body) for message in messages if names.family_of(message.name) == names.EVENTS]
        followed = [body for body in bodies if body["kind"].split(".")[1] in ("task", "agent")]
        if followed:
            self._streams.asked(lambda client: self._follow(client, followed), WRITING)
        ready = {body["project"] for body in followed if body["payload"]["new_state"] == "ready"}
        return Reordered(ready, any(body["kind"].startswith("evt.budget.") for body in bodies))

    def replace(self, snapshot: Snapshot) -> None:
        """Make the keys show what the snapshot does, and no more. Raises SinkUnavailable."""
        self._streams.asked(lambda client: self._replace(client, snapshot), WRITING)

    def replace_queues(self, tenant: str, queues: Mapping[str, Queues]) -> None:
        """Make the queues of these projects show this order. Raises SinkUnavailable."""

        def follow(client: redis.Redis) -> None:
            for project, ready in queues.items():
                start = f"{self._start(tenant)}:{_part(project)}"
                known = {key.decode() for key in client.scan_iter(match=f"{start}:tasks:ready:*")}
                with client.pipeline(transaction=True) as together:
                    _set_queues(together, start, ready, known)
                    together.execute()

        self._streams.asked(follow, WRITING)

    def replace_alerts(self, tenant: str, alerts: Sequence[Mapping[str, Any]]) -> None:
        """Make the list have these alerts alone. Raises SinkUnavailable."""

        def follow(client: redis.Redis) -> None:
            with client.pipeline(transaction=True) as together:
                _set(together, f"{self._start(tenant)}:usage:alerts", "rpush", [_encode(one) for one in alerts])
                together.execute()

        self._streams.asked(follow, WRITING)

    def close(self) -> None:
        self._streams.close()

    def _start(self, tenant: str) -> str:
        return f"{self._streams.start}:{tenant}"

    def _follow(self, client: redis.Redis, bodies: Sequence[dict[str, Any]]) -> None:
        with client.pipeline(transaction=False) as together:
            for body in bodies:
                start, payload, kind = self._start(body["tenant"]), body["payload"], body["kind"].split(".")
                of_project = f"{start}:{_part(body['project'])}"
                if kind[1] == "task":
                    self._task(together, of_project, payload)
                    together.publish(f"{start}:tasks:events", _encode(body))
                else:
                    self._agent(together, of_project, payload, kind[-1], body["emitted_at"])
                    together.publish(f"{start}:agents:events", _encode(body))
            together.execute()

    def _task(self, together: Any, start: str, payload: Mapping[str, Any]) -> None:
        task, state = payload["task_id"], payload["new_state"]
        agent = payload.get("holder") or payload["agent_id"]  # whose claim it is
        if task is None or state is None:
            return
        if state != "ready":  # a ready one comes with its queue
            for boost in BOOSTS:
                together.zrem(f"{start}:tasks:ready:{boost}", task)
        if state in HELD and agent is not None:
            together.hset(f"{start}:tasks:active", task, agent)
            together.sadd(f"{start}:agent:tasks:{_part(agent)}", task)
        else:
            together.hdel(f"{start}:tasks:active", task)
            if agent is not None:
                together.srem(f"{start}:agent:tasks:{_part(agent)}", task)

    def _agent(self, together: Any, start: str, payload: Mapping[str, Any], verb: str, seen: str) -> None:
        agent = payload["agent_id"]
        if agent is None or verb not in _STATUSES:
            return
        together.set(f"{start}:agent:status:{_part(agent)}", _STATUSES[verb])
        if verb == "stale":
            together.sadd(f"{start}:stale_agents", agent)
            return
        together.srem(f"{start}:stale_agents", agent)
        if verb in ("registered", "recovered"):
            together.set(f"{start}:agent:heartbeat:{_part(agent)}", seen, ex=int(HEARTBEAT_LIFETIME))

    def _replace(self, client: redis.Redis, snapshot: Snapshot) -> None:
        start = self._start(snapshot.tenant)
        known = {key.decode() for key in client.scan_iter(match=f"{start}:*")}
        with client.pipeline(transaction=True) as together:  # readers see the state before or after
            for key in known:
                if _LASTING.fullmatch(key.removeprefix(f"{start}:")):  # heartbeats and contexts go by themselves
                    together.delete(key)
            for project, state in snapshot.projects.items():
                self._project(together, f"{start}:{_part(project)}", state, snapshot.now)
            _set(together, f"{start}:usage:alerts", "rpush", [_encode(one) for one in snapshot.alerts])
            together.execute()

    def _project(self, together: Any, start: str, state: OfProject, now: int) -> None:
        for agent in state.agents:
            self._agent_of(together, start, agent, now)
        _set_queues(together, start, state.ready, ())
        _set(together, f"{start}:tasks:active", "hset", dict(state.active))
        _set(together, f"{start}:stale_agents", "sadd", [one.id for one in state.agents if one.status == "stale"])
        _set(together, f"{start}:usage:current", "hset", dict(state.usage))
        for task, sums in state.usage_of_tasks.items():
            _set(together, f"{start}:usage:task:{task}", "hset", dict(sums))
        for session, context in state.contexts.items():
            together.set(f"{start}:session:context:{_part(session)}", _encode(context), ex=int(CONTEXT_LIFETIME))

    def _agent_of(self, together: Any, start: str, agent: Agent, now: int) -> None:
        id = _part(agent.id)
        together.set(f"{start}:agent:status:{id}", agent.status)
        _set(together, f"{start}:agent:tasks:{id}", "sadd", list(agent.tasks))
        left = HEARTBEAT_LIFETIME - (now - agent.seen_at) / 1e6
        if left >= 1:
            together.set(f"{start}:agent:heartbeat:{id}", format_instant(agent.seen_at), ex=int(left))
        else:
            together.delete(f"{start}:agent:heartbeat:{id}")


def _part(name: str) -> str:
    """A name as one part of a key."""
    return name.replace("~", "~7e").replace(":", "~3a")


def _set_queues(together: Any, start: str, ready: Queues, known: Collection[str]) -> None:
    """`known`: the keys of queues that are there, of which those without a task go."""
    keys = {boost: f"{start}:tasks:ready:{boost}" for boost in ready}
    for key in set(known).difference(keys.values()):
        together.delete(key)
    for boost, tasks in ready.items():
        _set(together, keys[boost], "zadd", {task: float(place) for place, task in enumerate(tasks)})


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
        case "rpush":
            together.rpush(key, *values)
        case _:
            together.sadd(key, *values)
