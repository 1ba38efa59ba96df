"""No query tells of another tenant, whether a route leads to it or not; nor do metrics."""

from __future__ import annotations

import random
import re
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenure.client.wire import plain
from tenure.core import queries as q
from tenure.core.errors import TenureError
from tenure.engine.reads.query_table import read_query
from tenure.stores.memory import Memory
from tenure.stores.port import Store
from tenure.testing.clock import FakeClock
from tests.server.api.ground import names_of
from tests.server.tenant_worlds import OURS, THEIRS, Apart, Sent, World
from tests.servers import mariadb as mariadb_servers
from tests.servers import postgres as postgres_servers
from tests.servers import restricted as restricted_stores
from tests.servers import valkey as valkey_servers

KINDS = tuple(sorted(q.ALL, key=lambda kind: kind.__name__))
ON_SERVERS = ("postgres", "row security", "mariadb", "valkey")
EACH = 8  # questions of each kind
ROUNDS = 8  # at most, until a question of the kind names what is there
# As in `tenant_worlds`: of a store whose tenants share one sequence.
POSITIONS = re.compile(rb'"(sequence|mark|next|after|behind|lag_events|last_sequence_seen|first|last)":\s*"?\d+"?')
# Digests cover sequences, which such a store draws for all tenants.
SEALED = (q.Attest, q.AuditHead, q.AuditPage, q.VerifyAudit)

Open = Callable[[FakeClock, str], Store]
STORES = ("memory", *(pytest.param(name, marks=pytest.mark.nightly) for name in ON_SERVERS))


@pytest.fixture(params=STORES)
def opens(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens two stores of one kind."""
    fixtures = {"postgres": "postgres", "row security": "restricted", "mariadb": "mariadb", "valkey": "valkey"}
    opening: dict[str, Callable[[Path, FakeClock], Store]] = {
        "memory": lambda folder, clock: Memory(f"memory://{folder.name}", clock=clock),
        "postgres": postgres_servers.open_store, "row security": restricted_stores.open_restricted,
        "mariadb": mariadb_servers.open_store, "valkey": valkey_servers.open_store,
    }  # fmt: skip
    if request.param in fixtures:
        request.getfixturevalue(fixtures[request.param])

    def open_one(clock: FakeClock, name: str) -> Store:
        folder = tmp_path / name
        folder.mkdir()
        return opening[request.param](folder, clock)

    return open_one


def questions(kind: type[q.Query], apart: Apart, dice: random.Random) -> Iterator[q.Query]:
    """Some with the least that a query needs, some with more; by turns with our names, and those of both tenants."""
    ours = apart.names | names_of(apart.both.rich) | {"tenant": [OURS]}
    for number in range(EACH):
        names = apart.names if number % 2 else ours
        given: dict[str, Any] = {}
        for field in msgspec.structs.fields(kind):
            if (
                field.required
                or field.name == "project"
                or (number > 1 and field.name in names and dice.random() < 0.3)
            ):
                given[field.name] = _value(field.type, names.get(field.name, ["x"]), dice)
        yield kind(**given)


def _value(wanted: Any, names: list[str], dice: random.Random) -> Any:
    options = [one for one in typing.get_args(wanted) if one is not type(None)]
    if typing.get_origin(wanted) is tuple:
        return tuple(dice.sample(names, min(2, len(names)))) if options[0] is str else ()
    if options:
        return _value(options[0], names, dice)
    return {str: lambda: dice.choice(names), int: lambda: 1, bool: lambda: dice.random() < 0.5}[wanted]()


def answer(world: World, query: q.Query) -> bytes:
    try:
        found = read_query(world.ours.engine, query)
    except TenureError as error:
        return f"{error.code}: {error.message} {error.hint}".encode()
    return POSITIONS.sub(rb'"\1":0', msgspec.json.encode(plain(found)))


@pytest.fixture
def worlds(opens: Open) -> Iterator[Callable[[int], Apart]]:
    made: list[Apart] = []

    def make(theirs: int) -> Apart:
        made.append(Apart(opens, seed=5, theirs=theirs))
        return made[-1]

    yield make
    for apart in made:
        for world in (apart.both, apart.alone):
            world.close()


@pytest.mark.parametrize("theirs", [2, 1], ids=["other ids", "equal ids"])
def test_no_query_tells_of_another_tenant(worlds: Callable[[int], Apart], theirs: int) -> None:
    apart = worlds(theirs)
    answered = set()
    for kind in KINDS:
        dice = random.Random(f"{theirs} {kind.__name__}")  # another kind of query changes none of the others
        for _ in range(ROUNDS):
            for query in questions(kind, apart, dice):
                one, other = (answer(world, query) for world in (apart.both, apart.alone))
                assert one == other or (kind in SEALED and apart.has_one_log), query
                if not re.match(rb"[A-Z_]+: ", one):
                    answered.add(kind)
            if kind in answered:
                break
    assert apart.both.theirs is not None
    assert apart.both.dump(apart.both.theirs) == apart.before
    assert set(KINDS) - answered <= {q.Tenants, q.ShowTenant}, "of these no question was answered"


def test_metrics_of_a_tenant_are_the_same_with_and_without_another(worlds: Callable[[int], Apart]) -> None:
    """Times aside: those are real."""
    apart = worlds(1)
    headers = {"Authorization": f"Bearer {apart.both.keys['owner']}"}
    pages = []
    for world in (apart.both, apart.alone):
        if world.theirs is not None:
            world.theirs.add("more")
        said = world.send(Sent("metrics", "GET", "/metrics", headers, b""))
        assert said.status == 200
        lines = said.body.decode().splitlines()
        pages.append([line.rpartition(" ")[0] if "_seconds" in line else line for line in lines if line[0] != "#"])
        assert all(f'tenant="{OURS}"' in line for line in pages[-1])
        assert THEIRS not in said.body.decode()
    assert pages[0] == pages[1]
