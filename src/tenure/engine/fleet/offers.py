"""A free place gets a task: chosen, offered and recorded as a spawn in one transaction under the leader's term.

The choice is that of `claim_next`, judged for the name that will claim: its tracks, its cool-offs, the models it has.
What budgets must cover is counted with the offers that nobody has claimed yet, so that no process is started for money
that another one is about to reserve. The claim stays the gate: a choice that has become wrong costs one process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tenure.core import budgets, commands, lifecycle, pools
from tenure.core.records import Agent, Pool, Project, Spawn, Task, replace
from tenure.core.sealed import is_sealed
from tenure.engine.budgets import budget_guard
from tenure.engine.fleet.spawn_rows import new_key, record
from tenure.engine.reads.task_view import checkpoint_of, unpacked
from tenure.engine.runtime.rows import brief_of, project_of
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.claim import Search
from tenure.engine.verbs.claim_rules import denied_by_agent, denied_by_cool_off, denied_by_limit
from tenure.engine.verbs.claimant import KnownClaimant
from tenure.spawners.port import SpawnContext, SpawnRequest

SECOND = 1_000_000
CANDIDATES = 8  # affordable tasks that do not fit beside the open offers, before a place is left free
OF_AGENT = frozenset({"cooling", "offered"})  # obstacles that the agent of another place may not have
LABEL = 30  # characters of the title in a label


class Address(NamedTuple):
    """Where the agents of a leader find the store, and whether they need keys there."""

    url: str
    has_keys: bool = False


class Start(NamedTuple):
    """A spawn that is recorded; its spawner is called after the commit."""

    spawner: str
    request: SpawnRequest


class PoolClaimant(KnownClaimant):
    """The agent that will claim from a place; nothing is known of its session yet."""

    def may_not_claim(self) -> bool:
        """Whether the agent is terminated, drained, cooling off or at a limit: its place stays empty."""
        return (denied_by_cool_off(self) or denied_by_agent(self) or denied_by_limit(self)) is not None


def start_agents(
    work: UnitOfWork, project: str, address: Address, term: int, homes: Mapping[str, str], most: int
) -> list[Start]:
    """Fill the free places of the project's pools, in turn, with at most that many agents.

    `homes`: the spawners of the leader, and where each remembers what it has started.
    """
    row = project_of(work, project)
    waiting = [pool for pool in work.find(Pool, {"project": project}) if pools.may_start(pool, work.now)]
    started: list[Start] = []
    while waiting and len(started) < most:
        for pool in list(waiting):
            start = _start_one(work, row, pool.id, address, term, homes) if len(started) < most else None
            if start is None:
                waiting.remove(pool)
            else:
                started.append(start)
    return started


def _start_one(
    work: UnitOfWork, project: Project, name: str, address: Address, term: int, homes: Mapping[str, str]
) -> Start | None:
    pool = work.require(Pool, project.id, name)
    if pool.spawner not in homes:
        why = f"the leader's configuration has no spawner {pool.spawner}"
        if pool.error != why:
            work.put(replace(pool, error=why, error_at=work.now))
        return None
    spawns = work.find(Spawn, {"state": pools.OPEN})
    if _are_enough_claims(work, project, spawns):
        return None
    for place in _with_offers_first(work, pool, pools.free_places(pool, spawns, work.now)):
        claimant = PoolClaimant(work, project, _agent(work, pool, place))
        if claimant.may_not_claim():
            continue
        search = _search(work, pool, claimant)
        chosen = None if search is None else _chosen(work, search, spawns)
        if chosen is not None:
            return _offer(work, pool, place, claimant.agent, *chosen, address, term, homes[pool.spawner])
        if search is None or not (project.router or OF_AGENT.intersection(search.passed_over)):
            return None  # another place would find the same
    return None


def _with_offers_first(work: UnitOfWork, pool: Pool, places: list[int]) -> list[int]:
    """An operator may have assigned a task to the agent of one place."""
    names = tuple(pools.agent_of(pool.id, place) for place in places)
    offers = work.find(Task, {"project": pool.project, "state": lifecycle.READY, "offer_to": names}) if names else ()
    wanted = {task.offer_to for task in offers}
    return sorted(places, key=lambda place: pools.agent_of(pool.id, place) not in wanted)


def _agent(work: UnitOfWork, pool: Pool, place: int) -> Agent:
    """The agent of a place with the abilities of its pool; what operators decided about it stays."""
    name = pools.agent_of(pool.id, place)
    agent = work.get(Agent, pool.project, name)
    agent = agent or Agent(project=pool.project, id=name, registered_at=work.now, last_seen=work.now)
    return replace(
        agent, type=pools.agent_type(pool.program), capabilities=pool.capabilities, models=pool.models,
        tracks=pool.tracks, managed=True,
    )  # fmt: skip


# --- the choice -----------------------------------------------------------------------------------------------------


def _search(work: UnitOfWork, pool: Pool, claimant: PoolClaimant) -> Search | None:
    """What `claim_next` of this agent would go through; None where no budget covers anything."""
    wanted = commands.ClaimNext(
        project=pool.project, agent=claimant.agent.id, session="", types=pool.types, tracks=pool.tracks,
        capabilities=pool.capabilities or None,
    )  # fmt: skip
    search = Search(work, wanted, claimant)
    is_paid = claimant.project.funded or claimant.project.set_aside
    return None if is_paid and search.is_closed() else search


def _chosen(work: UnitOfWork, search: Search, spawns: Sequence[Spawn]) -> tuple[Task, dict[str, int]] | None:
    """The best task that the agent may take now, with what it would reserve in each budget."""
    for tried, task in enumerate(search):
        funds = _funds(work, search.claimant.project, task, search.claimant.agent.id, spawns)
        if funds is not None:
            return task, funds
        if tried == CANDIDATES:
            return None
    return None


def _are_enough_claims(work: UnitOfWork, project: Project, spawns: Sequence[Spawn]) -> bool:
    """Whether the project's live claims and the offers of its pools reach its limit."""
    most = work.limits_of(project).get("max_concurrent_claims")
    if most is None:
        return False
    held = work.tally(Task, {"project": project.id, "state": lifecycle.HELD}, most)
    offered = sum(s.project == project.id and s.state == pools.STARTING and pools.is_live(s, work.now) for s in spawns)
    return held + offered >= most


def _funds(
    work: UnitOfWork, project: Project, task: Task, agent: str, spawns: Sequence[Spawn]
) -> dict[str, int] | None:
    """What its claim would reserve; None where that does not fit beside the offers that nobody has claimed yet."""
    if not (project.funded or task.capped):
        return {}
    rows = budget_guard.rows_of(work, project, task, agent)
    prices = budget_guard.prices(work, task, rows, agent)
    amounts = {row.id: prices[row.id] or row.default_estimate for row in rows}
    rooms = {row.id: budgets.headroom(row, work.now) for row in rows}
    pending = pools.pending_funds(spawns, project.id, work.now)
    if any(row.throttle and (row.project, row.id) in pending for row in rows):
        return None  # the claim of that offer spaces out the next one
    return amounts if pools.fits(amounts, rooms, pending, project.id) else None


# --- offer and spawn ------------------------------------------------------------------------------------------------


def _offer(
    work: UnitOfWork,
    pool: Pool,
    place: int,
    agent: Agent,
    task: Task,
    funds: dict[str, int],
    address: Address,
    term: int,
    home: str,
) -> Start:
    before = work.get(Agent, pool.project, agent.id)
    if agent != before:
        work.record("agent.updated" if before else "agent.registered", agent, project=pool.project, agent=agent.id)
    if project_of(work, pool.project).router:
        from tenure.engine.verbs.track_router import assign_for_offer  # few projects route

        assign_for_offer(work, task, agent.id)
    until = work.now + pools.OFFER
    task = work.record(
        "task.offered",
        task=replace(task, offer_to=agent.id, offer_until=until, offer_term=None),
        details={"agent": agent.id, "until": until},
    )
    spawn = Spawn(
        project=pool.project, id=work.new_id("spawn"), pool=pool.id, place=place, agent=agent.id, task=task.id,
        task_key=task.key, spawner=pool.spawner, term=term, started_at=work.now, offer_until=until, funds=funds,
        home=home,
    )  # fmt: skip
    token = None
    if address.has_keys:
        key, token = new_key(work, spawn)
        spawn = replace(spawn, api_key=key.id)
    record(work, "spawn.starting", spawn)
    work.put(replace(pool, spawned=pool.spawned + 1))
    return Start(pool.spawner, _request(work, pool, spawn, task, address.url, token))


def _request(work: UnitOfWork, pool: Pool, spawn: Spawn, task: Task, url: str, token: str | None) -> SpawnRequest:
    brief = brief_of(work, task)
    description = unpacked(work, task.project, brief.description)
    checkpoint = checkpoint_of(work, task)
    context = SpawnContext(
        title=brief.title,
        description=description if isinstance(description, str) else "",
        input=_unsealed(unpacked(work, task.project, brief.spec)),
        checkpoint=None if checkpoint is None else _unsealed(checkpoint["data"]),
    )
    return SpawnRequest(
        spawn=spawn.id, tenant=work.context.tenant, project=pool.project, pool=pool.id, agent=spawn.agent,
        task=task.id, key=task.ref, label=f"task:{task.ref}:{brief.title[:LABEL]}", url=url, token=token,
        offer_seconds=pools.OFFER / SECOND, program=pool.program, context=context, models=pool.models,
        capabilities=pool.capabilities,
    )  # fmt: skip


def _unsealed(value: object) -> object:
    """The value without sealed parts: a spawner is another process, maybe on another machine."""
    if isinstance(value, dict):
        return {name: _unsealed(part) for name, part in value.items() if not is_sealed(part)}
    if isinstance(value, (list, tuple)):
        return [_unsealed(part) for part in value if not is_sealed(part)]
    return value
