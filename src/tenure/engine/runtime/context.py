"""What an engine works with besides its store: fixed when the engine is made, the same in all its transactions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from tenure.core import limits
from tenure.core.errors import NotHome
from tenure.core.task_defaults import SHIPPED, TaskDefaults

if TYPE_CHECKING:
    from tenure.artifacts.port import Artifacts
    from tenure.core.commands import Process
    from tenure.core.sealed import Sealer
    from tenure.engine.reads.task_counts import TaskCounts
    from tenure.engine.runtime.optimistic import Optimism
    from tenure.engine.runtime.tenancy import TenantLimits
    from tenure.sealing.signing import SigningKey
    from tenure.stores.port import Store


class Random(Protocol):
    """The source of randomness; injected, so that a history can be replayed."""

    def token(self, size: int) -> bytes:
        """This many random bytes."""

    def fraction(self) -> float:
        """A number in [0, 1)."""


class UserTables(msgspec.Struct, frozen=True):
    """Paths of a user's price and tier tables, which override the shipped ones. None: only the shipped table."""

    prices: str | None = None
    tiers: str | None = None


SHIPPED_TABLES = UserTables()


class HostProcesses(Protocol):
    """The process table of the host: see `processes/table.py`."""

    @property
    def place(self) -> str:
        """What the texts of its processes begin with, as claims have them."""

    def has_ended(self, process: Process) -> bool:
        """Whether it is certain that the process has ended; of one elsewhere it never is."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """`pause` waits between attempts of a transaction; the clock is the store's.

    `artifacts` gives a project its artifact store; None: none is configured. Without `fast_path` plain tasks take the
    slow path too, even where the store has a fast one. `optimism` decides when the fast path is tried first; by default
    each engine learns this for itself. `sealer` seals secrets; None: this process has no master key. `signer` gives the
    key of this process, for attestations. `allow_http`:
    webhooks may have URLs without TLS. `networks`: private ones that webhooks may be sent to, as in 10.0.0.0/8.
    `task_defaults`: of new tasks that name no priority, attempts or `on_lost`. `leader_lease`: of an agent that its
    commands elect, in microseconds.
    `elects`: the first agent of a project that joins or claims leads it, unless the project is set otherwise. `counts`:
    the tasks by state, of a process that follows the log; None: they are counted each time. `keeps_tenants`: the store
    keeps tenants beside `local`, `keeps_schemas`: also in schemas of theirs; the engine sets both. `limits`: those of a
    tenant beside `local`; None: it has none. `elsewhere`: what each write is refused with, where this process is not at
    the tenant's home. `open_store` opens a store by its URL, to prove that of a new tenant; None: it is not proven.
    `table`: the processes of this host; None: nothing is known of any.
    """

    tenant: str = "local"
    pause: Callable[[float], None] = lambda _: None
    artifacts: Callable[[str], Artifacts] | None = None
    tables: UserTables = SHIPPED_TABLES
    task_defaults: TaskDefaults = SHIPPED
    leader_lease: int = limits.AGENT_LEADER_LEASE
    sealer: Sealer | None = None
    signer: Callable[[], SigningKey] | None = None
    allow_http: bool = False
    networks: tuple[str, ...] = ()
    fast_path: bool = True
    optimism: Optimism | None = None
    elects: bool = False
    counts: TaskCounts | None = None
    keeps_tenants: bool = False
    keeps_schemas: bool = False
    limits: TenantLimits | None = None
    elsewhere: Callable[[], NotHome] | None = None
    open_store: Callable[[str], Store] | None = None
    table: HostProcesses | None = None


DEFAULT = Context()
