"""Seeded bugs in epochs of all tenants, in what a store is recognised by, and where a connection is lost."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, on

CLI = "tests/cli/test_new_epoch.py"
LOST = "tests/stores/test_lost_connections.py"
SILENT = "tests/stores/test_silent_hosts.py"
PLACES = "tests/stores/test_postgres_place.py"
EPOCH = "engine/runtime/epoch.py"
MIGRATION = "stores/postgres/migrations/0019_epochs_of_all.sql"
SCHEMA = "stores/postgres/schema.py"
_EVERY = "test_a_new_epoch_voids_the_receipts_of_every_tenant"
_IN_PLACE = f"{PLACES}::test_a_dump_restored_into_its_own_schema_begins_an_epoch"


EPOCHS = (
    Mutant(
        "epoch: of the caller's tenant only",
        EPOCH,
        "others = engine.store.begin_epochs(engine.tenant)",
        "others: list[str] = []",
        (*on("memory", f"{_EVERY}[local]"), *on("postgres", f"{_EVERY}[local]")),
    ),
    Mutant(
        "epoch: tenants without a row of their own keep the store's",
        MIGRATION,
        "    UPDATE meta SET epoch = p_epoch, place = v_place;\n",
        "",
        on("postgres", f"{_EVERY}[local]"),
    ),
    Mutant(
        "epoch: tenants with a row of their own keep it",
        MIGRATION,
        "WHERE e.tenant <> p_besides RETURNING",
        "WHERE false RETURNING",
        on("postgres", f"{_EVERY}[local]"),
    ),
    Mutant(
        "epoch: mariadb: tenants without a row of their own keep the store's",
        "stores/mariadb/store.py",
        "            (texts.BEGIN_META, [self._random(4).hex(), self.place]),\n",
        "",
        f"tests/engine/test_on_mariadb.py::TestOnMariadb::{_EVERY}[local]",
    ),
    Mutant(
        "epoch: valkey: the tenants' stay",
        "stores/valkey/commit.py",
        "    redis.call('HSET', KEYS[n], 'epoch', epoch, 'settled', ARGV[1])\n",
        "",
        f"tests/engine/test_on_valkey.py::TestOnValkey::{_EVERY}[local]",
    ),
    Mutant(
        "epoch: valkey: a move's mark goes",
        "stores/valkey/commit.py",
        "(mark and string.sub(before, mark) or '')",
        "''",
        "tests/engine/test_on_valkey.py::TestOnValkey::test_a_tenant_that_moves_stays_frozen_and_as_it_was",
    ),
    Mutant(
        "epoch: claims of other tenants are not given back",
        EPOCH,
        "unrecorded = tuple(name for name in others if not _ended(engine, name, why))",
        "unrecorded = ()",
        on("memory", f"{_EVERY}[local]"),
    ),
    Mutant(
        "epoch: claims of other tenants of a copy are not given back",
        EPOCH,
        "for name in engine.store.settled_here():\n        _ended(engine, name, why)\n",
        "engine.store.settled_here()\n",
        _IN_PLACE,
    ),
    Mutant(
        "epoch: a tenant that moves changes",
        EPOCH,
        "if tenant_moves.frozen_by(work.epoch) is None:",
        "if True:",
        on("memory", "test_a_tenant_that_moves_stays_frozen_and_as_it_was"),
    ),
    Mutant(
        "epoch: reservations of the new one end too",
        EPOCH,
        "if held.epoch != work.epoch and (",
        "if (",
        on("memory", "test_a_claim_of_the_new_epoch_outlives_what_follows_the_fence"),
    ),
    Mutant(
        "epoch: a store of its own counts as covered",
        "client/new_epoch.py",
        "elsewhere.add(row.id)",
        "covered.add(row.id)",
        f"{CLI}::test_it_is_of_tenants_with_their_own_schema_too_and_names_those_elsewhere",
    ),
    Mutant(
        "epoch: the named tenant's is one of all",
        "cli/db.py",
        'alone=run.setting("tenant") is not None',
        "alone=False",
        f"{CLI}::test_it_is_one_of_every_tenant_and_with_a_name_of_one",
    ),
    Mutant(
        "place: a dump restored in place is the store",
        SCHEMA,
        'return stored in (here, here.rpartition("/")[0])',
        'return stored.split("/")[:3] == here.split("/")[:3]',
        _IN_PLACE,
    ),
    Mutant(
        "place: a part that is missing is another",
        SCHEMA,
        'return stored in (here, here.rpartition("/")[0])',
        "return stored == here",
        f"{PLACES}::test_a_place_that_an_older_process_writes_is_no_copy",
    ),
    Mutant(
        "place: an upgrade leaves it without the table",
        MIGRATION,
        "UPDATE meta SET place = place_here() WHERE place = without_oid(place_here());\n",
        "",
        f"{PLACES}::test_the_step_adds_the_oid_and_begins_no_epoch",
    ),
    Mutant(
        "place: an upgrade takes a copy for the store",
        MIGRATION,
        "UPDATE meta SET place = place_here() WHERE place = without_oid(place_here());\n",
        "UPDATE meta SET place = place_here();\n",
        f"{PLACES}::test_the_step_leaves_a_copy_a_copy",
    ),
    Mutant(
        "hosts: a silent one is tried first again",
        "stores/sql/hosts.py",
        "now - self._at.get(place, -SILENT - now) < SILENT",
        "False",
        f"{SILENT}::test_a_silent_place_is_tried_last_for_a_minute",
    ),
    Mutant(
        "hosts: postgres: the first waits for all",
        "stores/postgres/reach.py",
        "began + patience, monotonic)",
        "began + 3 * patience, monotonic)",
        f"{SILENT}::test_postgres_behind_a_host_that_answers_nothing",
    ),
    Mutant(
        "hosts: postgres: silence is not noted",
        "stores/postgres/reach.py",
        "                    silent.note(place, monotonic())\n",
        "                    pass\n",
        f"{SILENT}::test_postgres_behind_an_address_of_its_name_that_answers_nothing",
    ),
    Mutant(
        "hosts: mariadb: silence is not noted",
        "stores/mariadb/connection.py",
        "                hosts.OF_THIS_PROCESS.note(place, monotonic())\n",
        "                pass\n",
        f"{SILENT}::test_mariadb_behind_an_address_of_its_name_that_answers_nothing",
    ),
    Mutant(
        "hosts: valkey: silence is not noted",
        "stores/valkey/connection.py",
        "                    hosts.OF_THIS_PROCESS.note(place, self._monotonic())\n",
        "                    pass\n",
        f"{SILENT}::test_valkey_behind_a_host_and_an_address_that_answer_nothing",
    ),
    Mutant(
        "hosts: an open connection has no deadline",
        "stores/postgres/address.py",
        '"tcp_user_timeout": str(_UNANSWERED * 1000)',
        '"tcp_user_timeout": "0"',
        f"{SILENT}::test_an_open_connection_has_a_deadline_of_its_own",
    ),
    Mutant(
        "lost: the rollback of a call that failed",
        "stores/postgres/connection.py",
        '            with suppress(Lost):\n                self.run([("ROLLBACK", ())])\n',
        '            self.run([("ROLLBACK", ())])\n',
        f"{LOST}::test_only_errors_of_tenure_reach_the_caller[postgres-fast-claim, renew and submit]",
    ),
)
