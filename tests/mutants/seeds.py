"""Every seeded bug. Each is one small edit of the source; `old` must occur exactly once."""

from __future__ import annotations

from tests.mutants.mutant import Mutant
from tests.mutants.seeds_of_actors import ACTORS
from tests.mutants.seeds_of_artifacts import ARTIFACTS
from tests.mutants.seeds_of_assignment import ASSIGNMENT
from tests.mutants.seeds_of_audit import AUDIT
from tests.mutants.seeds_of_batches import BATCHES
from tests.mutants.seeds_of_brokers import BROKERS
from tests.mutants.seeds_of_budgets import BUDGETS
from tests.mutants.seeds_of_children import CHILDREN
from tests.mutants.seeds_of_claims import CLAIMS
from tests.mutants.seeds_of_closing import CLOSING
from tests.mutants.seeds_of_copies import COPIES
from tests.mutants.seeds_of_disks import DISKS
from tests.mutants.seeds_of_epochs import EPOCHS
from tests.mutants.seeds_of_explanations import EXPLANATIONS
from tests.mutants.seeds_of_health import HEALTH
from tests.mutants.seeds_of_identity import IDENTITY
from tests.mutants.seeds_of_landing import LANDING_PHASE
from tests.mutants.seeds_of_leading import LEADING
from tests.mutants.seeds_of_lists import LISTS
from tests.mutants.seeds_of_mariadb import MARIADB
from tests.mutants.seeds_of_models import MODELS
from tests.mutants.seeds_of_moves import MOVES
from tests.mutants.seeds_of_moving import MOVING
from tests.mutants.seeds_of_outages import OUTAGES
from tests.mutants.seeds_of_place import PLACE
from tests.mutants.seeds_of_pools import POOLS
from tests.mutants.seeds_of_postgres import POSTGRES
from tests.mutants.seeds_of_predicates import PREDICATES
from tests.mutants.seeds_of_processes import PROCESSES
from tests.mutants.seeds_of_regions import REGIONS
from tests.mutants.seeds_of_relays import RELAYS
from tests.mutants.seeds_of_repeats import REPEATS
from tests.mutants.seeds_of_row_security import ROW_SECURITY
from tests.mutants.seeds_of_runners import RUNNERS
from tests.mutants.seeds_of_seals import SEALED_LOG
from tests.mutants.seeds_of_secrets import SECRETS
from tests.mutants.seeds_of_serving import SERVING
from tests.mutants.seeds_of_settings import SETTINGS
from tests.mutants.seeds_of_sharing import SHARING
from tests.mutants.seeds_of_signing import SIGNING
from tests.mutants.seeds_of_signing_in import SIGNING_IN
from tests.mutants.seeds_of_sources import SOURCES
from tests.mutants.seeds_of_spawners import SPAWNERS
from tests.mutants.seeds_of_strangers import OF_STRANGERS
from tests.mutants.seeds_of_tenants import TENANTS
from tests.mutants.seeds_of_the_server import THE_SERVER
from tests.mutants.seeds_of_trust import TRUST
from tests.mutants.seeds_of_validation import VALIDATION
from tests.mutants.seeds_of_valkey import VALKEY
from tests.mutants.seeds_of_webhooks import WEBHOOKS
from tests.mutants.seeds_of_workers import WORKERS

MUTANTS: tuple[Mutant, ...] = (
    *CLAIMS,
    *OUTAGES,
    *ACTORS,
    *ASSIGNMENT,
    *AUDIT,
    *SEALED_LOG,
    *MARIADB,
    *POSTGRES,
    *BATCHES,
    *BUDGETS,
    *CHILDREN,
    *CLOSING,
    *COPIES,
    *DISKS,
    *EPOCHS,
    *EXPLANATIONS,
    *HEALTH,
    *LANDING_PHASE,
    *LEADING,
    *LISTS,
    *MODELS,
    *MOVES,
    *IDENTITY,
    *MOVING,
    *REGIONS,
    *RELAYS,
    *ROW_SECURITY,
    *REPEATS,
    *PLACE,
    *POOLS,
    *PROCESSES,
    *RUNNERS,
    *SECRETS,
    *SERVING,
    *SETTINGS,
    *SHARING,
    *SIGNING,
    *SIGNING_IN,
    *OF_STRANGERS,
    *TENANTS,
    *VALKEY,
    *PREDICATES,
    *SPAWNERS,
    *THE_SERVER,
    *SOURCES,
    *TRUST,
    *ARTIFACTS,
    *VALIDATION,
    *WEBHOOKS,
    *BROKERS,
    *WORKERS,
)
