"""The document says what is there: all of it, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import requests
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from tenure.client import Client
from tenure.client.routes import COMMANDS, PREFIX, QUERIES, ROUTES
from tenure.core.instants import is_instant
from tenure.core.roles import ROLES
from tenure.engine.reads.query_table import read_query
from tenure.server import responses
from tenure.server.assembly import Assembly
from tenure.server.auth.policy import Policy
from tenure.server.docs_page import html, operations
from tenure.server.logs import ServerLog
from tenure.server.openapi import document, examples
from tenure.server.openapi.operations import NOBODY
from tenure.server.requests import RequestContext, reader_of
from tenure.stores.sqlite import Sqlite
from tenure.testing.clock import FakeClock
from tenure.testing.factories import PROJECT, Scene
from tests.engine.rich_scene import OF_STORE, enrich, every_look
from tests.server.api.fuzz import closed

PAGES = {("GET", "/docs"), ("GET", "/docs/style.css")}  # for people, in HTML
OPERATIONS = list(operations(document()))


def told() -> Iterator[Any]:
    """Every object in the document."""
    todo: list[Any] = [document()]
    while todo:
        value = todo.pop()
        if isinstance(value, dict):
            yield value
        todo += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def test_it_is_openapi_3_1() -> None:
    OPENAPI_31_VALIDATOR.validate(document())


def test_every_reference_leads_somewhere_and_nothing_is_left_over() -> None:
    found = {value["$ref"] for value in told() if "$ref" in value}
    parts = document()["components"]
    there = {f"#/components/{kind}/{name}" for kind in parts for name in parts[kind] if kind != "securitySchemes"}
    mapped = {ref for value in told() if "mapping" in value for ref in value["mapping"].values()}
    assert found | mapped == there


def test_every_route_of_the_app_is_in_it_and_every_one_in_it_is_of_the_app(tmp_path: Path) -> None:
    with Client(str(tmp_path / "tenure.db"), create=True) as client:
        assembly = Assembly(client.engine, Policy(), ServerLog("error", None))
        routes = {(place.method, place.path): place.is_open for place in assembly.app.endpoints()}
    documented = {(one.method.upper(), one.path): one.spec["x-tenure-role"] is None for one in OPERATIONS}
    assert {route: is_open for route, is_open in routes.items() if route not in PAGES} == documented


def test_operations_are_named_once_and_have_a_role_and_words() -> None:
    names = [one.spec["operationId"] for one in OPERATIONS]
    assert len(names) == len(set(names))
    assert {one.spec["x-tenure-role"] for one in OPERATIONS} <= {None, *ROLES, NOBODY}
    assert [one.path for one in OPERATIONS if not one.spec["summary"]] == []
    assert all(("security" in one.spec) == (one.spec["x-tenure-role"] is None) for one in OPERATIONS)


def test_fields_of_paths_are_told() -> None:
    for method, path, says in OPERATIONS:
        named = [p["$ref"].rpartition("/")[2] for p in says.get("parameters", ()) if "$ref" in p]
        assert set(re.findall(r"{(\w+)}", path)) <= set(named), (method, path)


def validator(name: str) -> Any:
    """Of one component, where answers may have no other fields than are told, and instants are instants."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": closed(document())["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def test_every_example_is_good_and_is_understood() -> None:
    shown = [one for one in OPERATIONS if "example" in str(one.spec.get("requestBody", ""))]
    assert len(shown) == len(examples.BODIES) + 2
    by_tag = {route.asks.__struct_config__.tag: route for route in COMMANDS}
    for tag, body in examples.BODIES.items():
        route = by_tag[tag]
        validator(f"{route.asks.__name__}Body").validate(body)
        fields = dict.fromkeys(re.findall(r"{(\w+)}", route.path), "B-003")
        reader_of(route)(RequestContext(fields), msgspec.json.encode(body))
    for command in examples.BATCH["commands"]:
        validator("AnyCommand").validate(command)


def test_every_look_answers_on_the_wire_as_it_says(tmp_path: Path) -> None:
    clock = FakeClock()
    scene = Scene(Sqlite(str(tmp_path / "store.db"), clock=clock), clock)
    rich = enrich(scene)
    looked = set()
    strict = closed(document())
    for kind, fields in every_look(rich):
        if kind not in {route.asks for route in QUERIES}:
            continue
        query = kind(project="" if kind in OF_STORE else PROJECT, **fields)
        answer = responses.of_view(read_query(scene.engine, query))
        route = ROUTES[kind]
        says = strict["paths"][PREFIX + route.path][route.method.lower()]["responses"]["200"]["content"][
            "application/json"
        ]
        schema = {**says["schema"], "components": strict["components"]}
        value = msgspec.json.decode(answer.body)
        found = [str(e) for e in jsonschema_rs.Draft202012Validator(schema, validate_formats=True).iter_errors(value)]
        assert found == [], (kind, fields)
        looked.add(kind)
    scene.store.close()
    assert looked == {route.asks for route in QUERIES}


def test_instants_are_spelled_wherever_the_wire_spells_them() -> None:
    """Of answers; what is sent may also be counted."""
    wrong = []
    for name, schema in document()["components"]["schemas"].items():
        if name.endswith(("Body", "Command")) or name in ("NewTask", "Changes", "BareEdit"):
            continue
        for field, part in schema.get("properties", {}).items():
            kinds = {one.get("format") for one in part.get("anyOf", [part]) if one.get("type") != "null"}
            if (kinds == {"date-time"}) != is_instant(field):
                wrong.append(f"{name}.{field}")
    assert wrong == []


def test_other_methods_are_told_which_there_are(api: str) -> None:
    wrong = []
    with requests.Session() as session:
        for path, methods in document()["paths"].items():
            if not path.startswith(PREFIX):
                continue  # the dashboard's
            answer = session.delete(api + re.sub(r"{\w+}", "x", path))
            allowed = {method.strip().lower() for method in answer.headers.get("allow", "").split(",")}
            if answer.status_code != 405 or allowed != set(methods):
                wrong.append((path, answer.status_code, allowed))
    assert wrong == []


# --- the page for people ---


def test_the_page_shows_every_operation_and_type() -> None:
    page = html().decode()
    shown = set(re.findall(r"<details id=([\w-]+)", page))
    assert {one.spec["operationId"] for one in OPERATIONS} <= shown
    links = set(re.findall(r"href='#([\w-]+)'", page))
    assert links <= shown


def test_the_page_runs_nothing_and_fetches_nothing_from_elsewhere() -> None:
    page = html().decode()
    assert re.findall(r"<script|<\w+[^>]* on\w+=|javascript:", page) == []
    assert re.findall(r"(?:href|src)=[\"']?((?!#|/)[^\s\"'>]+)", page) == []
    assert "style=" not in page


@pytest.mark.parametrize("path", ["/docs", "/docs/style.css", "/openapi.json"])
def test_pages_are_served_with_a_strict_policy(api: str, path: str) -> None:
    import urllib.request

    with urllib.request.urlopen(api + path) as response:
        assert response.status == 200
        assert response.headers["x-content-type-options"] == "nosniff"
        if path == "/docs":
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
