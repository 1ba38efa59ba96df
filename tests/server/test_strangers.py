"""A stranger learns nothing of a tenant by naming it: a slice of `./x reliability strangers`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from math import inf

import pytest

from tenure.core.caller_errors import for_caller
from tenure.core.commands import Principal
from tenure.core.errors import Bug, NotFound, OutcomeUnknown, SchemaMismatch, StoreUnavailable, TenureError
from tenure.server.logs import ServerLog
from tests.reliability.strangers import by_role, of_projects
from tests.server.api.test_matrix import CLOSED, OPERATIONS
from tests.server.stranger_worlds import FAR, NEAR, NONE, SIGNED, TOLD, House, differences


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


def test_every_name_gets_the_same_answer_while_all_stores_are_there(house: House) -> None:
    assert differences(house)[1] == []


@pytest.mark.parametrize("names", [(NEAR, FAR, NONE), (FAR, NONE, NEAR), (NONE, NEAR, FAR)], ids=str)
def test_whoever_is_named_first_when_the_home_store_goes_away(house: House, names: tuple[str, ...]) -> None:
    assert house.me(FAR) == 200
    house.home_store.is_away = True
    assert differences(house, names)[1] == []


@pytest.mark.parametrize("was_open", [False, True])
def test_every_name_gets_the_same_answer_while_a_tenants_own_store_is_away(house: House, was_open: bool) -> None:
    if was_open:
        assert house.me(FAR) == 200
    house.own.is_away = True
    assert differences(house)[1] == []
    assert (house.me("local"), house.me(NEAR)) == (200, 200)


@pytest.mark.parametrize("age", [None, 60.0, inf])
def test_every_name_gets_the_same_answer_while_the_home_store_is_away(house: House, age: float | None) -> None:
    if age is not None:
        assert [house.me(name) for name in ("local", NEAR, FAR)] == [200, 200, 200]
        assert differences(house)[1] == []
    house.home_store.is_away = True
    house.age(age or inf)
    assert differences(house, (FAR, NONE, NEAR))[1] == []


def test_who_was_known_in_a_tenant_reads_the_metrics_while_its_store_is_away(house: House) -> None:
    assert house.me(FAR) == 200
    house.own.is_away = True
    house.age(60.0)
    assert house.me(FAR) == 503
    assert house.ask("GET", "/metrics", authorization=f"Bearer {house.keys[FAR]}").status == 200
    assert differences(house)[1] == []


def test_whom_a_server_does_not_remember_reads_at_the_metrics_what_needs_no_store(house: House) -> None:
    house.home_store.is_away = True
    said = json.loads(house.ask("GET", "/metrics", authorization=f"Bearer {house.keys[NEAR]}").body)
    assert said["detail"].startswith("the store is unavailable, and this server has not checked these credentials")
    assert "serve.metrics_token" in said["hint"]


def test_who_was_known_in_a_tenant_is_told_that_its_store_is_away(house: House) -> None:
    assert house.me(FAR) == 200
    house.own.is_away = True
    house.assembly.authenticator._tenants[FAR].keys.forget(
        next(iter(house.assembly.authenticator._tenants[FAR].keys._known))
    )
    assert house.me(FAR) == 503
    wrong = house.keys[FAR][:-1] + ("0" if house.keys[FAR][-1] != "0" else "1")
    assert house.ask("GET", "/api/v1/me", authorization=f"Bearer {wrong}").status == 401
    house.own.is_away = False
    while house.me(FAR) == 503:  # until the look in the background
        pass
    assert house.me(FAR) == 200


def test_a_store_that_is_away_is_not_asked_for_each_stranger(house: House) -> None:
    assert house.me(FAR) == 200
    house.own.is_away = True
    differences(house)
    before = house.own.tried
    assert differences(house)[0] > 100
    assert house.own.tried - before < 10


def test_a_closed_tenants_key_is_answered_like_an_unknown_one(house: House) -> None:
    from tenure.core import commands as c

    house.home.do(c.CloseTenant(tenant=NEAR))
    unknown = house.ask("GET", "/api/v1/me", authorization=f"Bearer {house.keys[NEAR].replace(NEAR, 'none')}")
    closed = house.ask("GET", "/api/v1/me", authorization=f"Bearer {house.keys[NEAR]}")
    assert (closed, closed.status) == (unknown, 401)
    assert differences(house)[1] == []


def test_probes_say_nothing_of_the_store_and_the_log_says_it() -> None:
    out = io.BytesIO()
    house = House(ServerLog("error", stream=out, is_terminal=False))
    house.home_store.is_away = True
    said = house.ask("GET", "/ready")
    assert (said.status, json.loads(said.body)["detail"]) == (503, "the store is unavailable")
    house.close()
    (line,) = [json.loads(line) for line in out.getvalue().splitlines() if b"/ready" in line]
    assert (line["code"], line["why"]) == ("STORE_UNAVAILABLE", TOLD)


@pytest.mark.parametrize("path", ["/", "/api/v1/me", "/health", "/ready"])
def test_a_request_with_two_hosts_is_refused(house: House, path: str) -> None:
    answer = []

    async def send(message: object) -> None:
        answer.append(message)

    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "query_string": b"", "state": {},
        "scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"localhost"), (b"host", b"localhost")],
    }  # fmt: skip
    house.loop.run(house.assembly.app(scope, None, send))  # type: ignore[arg-type]
    assert answer[0]["status"] == 400  # type: ignore[index]


def test_a_delivery_while_a_tenants_store_is_away_is_refused_as_a_wrong_one(house: House) -> None:
    house.own.is_away = True
    said = house.ask("POST", f"/t/{FAR}/api/v1/projects/p/triggers/pushed/deliveries", b"{}", **SIGNED)
    assert (said.status, json.loads(said.body)["code"]) == (401, "NOT_SIGNED_IN")


def test_the_host_of_the_server_is_told_to_the_owner_of_the_deployment_alone(house: House) -> None:
    def instance(name: str, **more: str) -> object:
        answer = house.ask("GET", "/api/v1/coordinator/status", authorization=f"Bearer {house.keys[name]}", **more)
        return json.loads(answer.body)["here"]["instance"]

    assert house.assembly.coordinator.instance == instance("local")
    assert (instance(NEAR), instance(FAR), instance("local", tenure_role="admin")) == (None, None, None)


OWNER = Principal(address="127.0.0.1", tenant="local")


@pytest.mark.parametrize(
    ("error", "who", "code", "message"),
    [
        (StoreUnavailable(TOLD), None, "STORE_UNAVAILABLE", "the store is unavailable"),
        (SchemaMismatch(TOLD), None, "STORE_UNAVAILABLE", "the store is unavailable"),
        (OutcomeUnknown(TOLD), None, "OUTCOME_UNKNOWN", "the store did not answer; whether it was done is not known"),
        (Bug(TOLD), None, "BUG", "an error inside the server"),
        (SchemaMismatch(TOLD), Principal(role="admin", address="::1", tenant="local"), "SCHEMA_MISMATCH", None),
        (StoreUnavailable(TOLD), Principal(address="::1", tenant="acme"), "STORE_UNAVAILABLE", None),
        (StoreUnavailable(TOLD), Principal(address="::1", tenant="local", projects=("p",)), "STORE_UNAVAILABLE", None),
        (StoreUnavailable(TOLD), OWNER, "STORE_UNAVAILABLE", TOLD),
        (StoreUnavailable(TOLD), Principal(role="agent"), "STORE_UNAVAILABLE", TOLD),
        (NotFound("no task"), None, "NOT_FOUND", "no task"),
    ],
)
def test_only_the_owner_of_the_deployment_is_told_what_a_store_says(
    error: TenureError, who: Principal | None, code: str, message: str | None
) -> None:
    shown = for_caller(error, who)
    assert (shown.code, shown.definite) == (code, error.definite)
    assert shown.message == message if message else TOLD not in shown.message


# --- slices of the harness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("turn", range(8))
@pytest.mark.sampled(one_in=2)
def test_no_operation_answers_above_a_role_and_none_tells_of_a_project_out_of_scope(turn: int) -> None:
    assert by_role(CLOSED[turn::8])[1] == []
    assert of_projects(OPERATIONS[turn::8])[1] == []
