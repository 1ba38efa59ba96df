"""Seeded bugs in moves of tenants, in homes of tenants, and in preferred regions."""

from __future__ import annotations

from tests.mutants.mutant import HOT, Mutant

MOVES = "tests/engine/test_tenant_moves.py"
SERVERS = "tests/server/test_regions.py"
CORE = "tests/core/test_regions.py"

RULES = "core/tenant_moves.py"
STEPS = "engine/tenant_move.py"

REGIONS = (
    # --- moves
    Mutant(
        "move: writes are not frozen",
        RULES,
        "    if frozen_by(epoch) is not None:\n        raise TenantMoving(",
        "    if frozen_by(epoch) == -1:\n        raise TenantMoving(",
        f"{MOVES}::test_while_it_moves_writes_are_refused_and_reads_go_on",
    ),
    Mutant(
        "move: claims are not ended",
        STEPS,
        '            put_in_force(work, f"move {number} of tenant {engine.tenant} begins", move=number)',
        "            work.tx.set_epoch(tenant_moves.frozen(work.random.token(4).hex(), number))",
        f"{MOVES}::test_live_claims_end_with_their_attempt_given_back_and_late_results_are_kept",
    ),
    Mutant(
        "move: the epoch is kept",
        STEPS,
        """            put_in_force(work, f"move {number} of tenant {engine.tenant} begins", move=number)

    engine.transact((STORE, *projects(engine)), decide)


def _open(engine: Engine, number: int, why: str) -> str:
    def decide(work: UnitOfWork) -> str:
        before = tenant_moves.frozen_by(work.epoch)
        if before is None:
            return work.epoch
        if before > number:
            raise MoveRefused(f"{engine.store.url} was frozen by move {before}, which began after move {number}")
        return put_in_force(work, why, opens=True)""",
        """            work.tx.set_epoch(tenant_moves.frozen(work.epoch, number))

    engine.transact((STORE, *projects(engine)), decide)


def _open(engine: Engine, number: int, why: str) -> str:
    def decide(work: UnitOfWork) -> str:
        work.tx.set_epoch(work.epoch.partition(".")[0])
        return work.epoch""",
        f"{MOVES}::test_live_claims_end_with_their_attempt_given_back_and_late_results_are_kept",
    ),
    Mutant(
        "move: a tenant in use is replaced",
        RULES,
        "    if frozen_by(epoch) is None and not is_empty:",
        "    if frozen_by(epoch) == -1 and not is_empty:",
        f"{MOVES}::test_a_tenant_in_use_is_never_replaced",
    ),
    Mutant(
        "move: a mover that was called off switches",
        RULES,
        "    if not row.moving or row.moves != number:",
        "    if row.moves < number:",
        f"{MOVES}::test_a_mover_that_slept_before_the_freeze_opens_what_it_froze",
    ),
    Mutant(
        "move: what is copied need not be frozen",
        STEPS,
        "    if tenant_moves.frozen_by(old.epoch) != number:\n",
        "    if tenant_moves.frozen_by(old.epoch) == -1:\n",
        f"{MOVES}::test_a_mover_that_slept_copies_nothing_that_is_in_use_again",
    ),
    Mutant(
        "move: the copy takes writes before it is the home",
        STEPS,
        "        new.set_epoch(old.epoch)  # as frozen as there",
        '        new.set_epoch(old.epoch.partition(".")[0])',
        f"{MOVES}::test_while_it_moves_writes_are_refused_and_reads_go_on",
    ),
    Mutant(
        "move: a new epoch opens a frozen tenant",
        RULES,
        "    return fresh if number is None else frozen(fresh, number)",
        "    return fresh",
        f"{MOVES}::test_a_new_epoch_leaves_a_frozen_tenant_frozen",
    ),
    Mutant(
        "move: a copied database opens a frozen tenant",
        "stores/postgres/migrations/0011_row_security.sql",
        "substr(md5(tenant || p_seed), 1, 8) || substr(epoch, 9), place",
        "substr(md5(tenant || p_seed), 1, 8), place",
        f"{MOVES}::test_a_copy_of_the_database_leaves_a_frozen_tenant_frozen[postgres]",
    ),
    Mutant(
        "move: the fast path does not know the freeze",
        HOT,
        "    IF strpos(o_epoch, '.') > 0 THEN  -- frozen",
        "    IF false THEN  -- frozen",
        f"{MOVES}::test_the_fast_path_is_frozen_too",
    ),
    Mutant(
        "move: positions in the log are not translated",
        "engine/project_copy.py",
        "        work.put(replace(cursor, sequence=here[cursor.sequence]))",
        "        work.put(replace(cursor, sequence=cursor.sequence))",
        f"{MOVES}::test_a_reader_of_the_log_goes_on_where_it_was",
    ),
    Mutant(
        "move: a former store that still writes is forgotten",
        STEPS,
        "        _refuse_while_it_writes(row, stores)\n",
        "",
        f"{MOVES}::test_a_former_store_that_still_writes_forbids_it",
    ),
    # --- homes
    Mutant(
        "region: an engine elsewhere writes",
        "engine/runtime/engine.py",
        "        if self.context.elsewhere is not None:\n            raise self.context.elsewhere()\n",
        "",
        f"{MOVES}::test_an_engine_elsewhere_writes_nothing_whoever_asks",
    ),
    Mutant(
        "region: reads elsewhere need not allow older data",
        "server/regions.py",
        "    if refusal is not None and not wants_older:",
        "    if refusal is not None and not is_read:",
        f"{SERVERS}::test_reads_elsewhere_must_allow_older_data_and_are_told_its_age",
    ),
    Mutant(
        "region: a client follows every server",
        "core/regions.py",
        "    return next((url for url in homes.values() if url == wanted), None)",
        "    return wanted or None",
        f"{SERVERS}::test_a_key_goes_to_no_server_that_only_an_answer_names",
    ),
    # --- preferred regions
    Mutant(
        "region: a preference excludes",
        "core/priority.py",
        "    if lane.region and not lane.region.startswith(PREFERS) and lane.region != profile.region:",
        "    if lane.region and lane.region.removeprefix(PREFERS) != profile.region:",
        f"{CORE}::test_a_preference_never_excludes",
    ),
    Mutant(
        "region: a preference changes nothing",
        "core/priority.py",
        "    return ELSEWHERE if lane.region.startswith(PREFERS) and",
        "    return 0 if lane.region.startswith(PREFERS) and",
        f"{CORE}::test_only_agents_elsewhere_find_it_further_back",
    ),
    Mutant(
        "region: a preferring task takes the fast path",
        "core/settle.py",
        "    if task.region is not None and task.region.startswith(priority.PREFERS):  # its",
        "    if task.region == priority.PREFERS:  # its",
        f"{CORE}::test_a_preferring_task_is_not_plain",
    ),
)
