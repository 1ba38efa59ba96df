"""The engine's suite, put together: subclass it for a store, and all that the engine promises is proven there.

class TestMine(EngineSuite):
    def open_store(self, tmp_path, clock):
        return Mine(tmp_path / "store", clock=clock)
"""

from __future__ import annotations

from tenure.testing.engine.actors import Actors
from tenure.testing.engine.agent_leaders import AgentLeaders
from tenure.testing.engine.answered import AnsweredRequests
from tenure.testing.engine.archive import Archive
from tenure.testing.engine.artifacts import Artifacts
from tenure.testing.engine.attempts import Attempts
from tenure.testing.engine.audits import Audits
from tenure.testing.engine.both_ways import BothWays
from tenure.testing.engine.briefings import Briefings
from tenure.testing.engine.budget_checks import BudgetChecks
from tenure.testing.engine.budgets import Budgets
from tenure.testing.engine.bulk import Bulk
from tenure.testing.engine.changes import Changes
from tenure.testing.engine.clocks import Clocks
from tenure.testing.engine.coordinators import Coordinators
from tenure.testing.engine.crowded import Crowded
from tenure.testing.engine.deliveries import Deliveries
from tenure.testing.engine.denials import Denials
from tenure.testing.engine.doubtful_costs import DoubtfulCosts
from tenure.testing.engine.ended_holders import EndedHoldersFirst
from tenure.testing.engine.endings import Endings
from tenure.testing.engine.forecasts import Forecasts
from tenure.testing.engine.gauges import Gauges
from tenure.testing.engine.graphs import Graphs
from tenure.testing.engine.health import Health
from tenure.testing.engine.hooks_and_notices import HooksAndNotices
from tenure.testing.engine.keys import Keys
from tenure.testing.engine.known_secrets import KnownSecrets
from tenure.testing.engine.landing_phase import LandingPhase
from tenure.testing.engine.landings import Landings
from tenure.testing.engine.lengths import Lengths
from tenure.testing.engine.losses import Losses
from tenure.testing.engine.members import Members
from tenure.testing.engine.models import Models
from tenure.testing.engine.moved_money import MovedMoney
from tenure.testing.engine.operators import Operators
from tenure.testing.engine.order import Order
from tenure.testing.engine.overview import Overview
from tenure.testing.engine.own_claims import OwnClaims
from tenure.testing.engine.past import Past
from tenure.testing.engine.pauses import Pauses
from tenure.testing.engine.pools import Pools
from tenure.testing.engine.processes import Processes
from tenure.testing.engine.quick_checks import QuickChecks
from tenure.testing.engine.reach import Reach
from tenure.testing.engine.readers import LogReaders
from tenure.testing.engine.reads import Reads
from tenure.testing.engine.recalling import Recalling
from tenure.testing.engine.receipts import Receipts
from tenure.testing.engine.relays import Relays
from tenure.testing.engine.repeats import Repeats
from tenure.testing.engine.reservations import Reservations
from tenure.testing.engine.runners import Runners
from tenure.testing.engine.schedules import Schedules
from tenure.testing.engine.secrets import Secrets
from tenure.testing.engine.setting_aside import SettingAside
from tenure.testing.engine.signing import Signing
from tenure.testing.engine.spawn_endings import SpawnEndings
from tenure.testing.engine.spending import Spending
from tenure.testing.engine.store_epochs import Epochs
from tenure.testing.engine.task_counts import KeptCounts
from tenure.testing.engine.team import Team
from tenure.testing.engine.tenant_limits import LimitsOfTenants
from tenure.testing.engine.tenants_led import TenantsLed
from tenure.testing.engine.terminating import Terminating
from tenure.testing.engine.timelines import Timelines
from tenure.testing.engine.tracks import Tracks
from tenure.testing.engine.triggers import Triggers
from tenure.testing.engine.undo import Undo
from tenure.testing.engine.unsaved_spawns import UnsavedSpawns
from tenure.testing.engine.upkeep import Upkeep
from tenure.testing.engine.validations import Validations
from tenure.testing.engine.verdicts import Verdicts
from tenure.testing.engine.watches import Watches
from tenure.testing.engine.webhooks import Webhooks


class EngineSuite(
    Timelines,
    EndedHoldersFirst,
    Endings,
    Attempts,
    Pauses,
    Changes,
    Receipts,
    Spending,
    Budgets,
    DoubtfulCosts,
    Bulk,
    BudgetChecks,
    SettingAside,
    MovedMoney,
    Models,
    Landings,
    LandingPhase,
    Runners,
    Reads,
    Artifacts,
    Repeats,
    AnsweredRequests,
    Reservations,
    Graphs,
    Order,
    Lengths,
    Losses,
    Tracks,
    Team,
    Actors,
    AgentLeaders,
    Terminating,
    Overview,
    Briefings,
    Denials,
    Forecasts,
    Health,
    Gauges,
    KeptCounts,
    Processes,
    OwnClaims,
    Operators,
    Keys,
    Members,
    LimitsOfTenants,
    Crowded,
    TenantsLed,
    Epochs,
    Reach,
    Undo,
    Upkeep,
    Clocks,
    Coordinators,
    Schedules,
    Triggers,
    Deliveries,
    Watches,
    Archive,
    Past,
    LogReaders,
    HooksAndNotices,
    Relays,
    Webhooks,
    Pools,
    SpawnEndings,
    UnsavedSpawns,
    Recalling,
    QuickChecks,
    Validations,
    Signing,
    KnownSecrets,
    Secrets,
    Audits,
    Verdicts,
    BothWays,
):
    """Subclass it, name the subclass `Test…`, and define `open_store`."""
