"""json-schema: valid and invalid outputs, and schemas that would block the checker or read its files."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tenure.core.errors import InvalidInput
from tenure.testing.suites.validators import ValidatorSuite
from tenure.validators.port import Output, Validator
from tenure.validators.schemas import LARGEST_OUTPUT, JsonSchema
from tenure.validators.workers import Workers

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer"}, "mail": {"format": "email"}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def pool() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.close()


@pytest.fixture
def schemas(pool: Workers) -> JsonSchema:
    return JsonSchema(pool)


class TestJsonSchema(ValidatorSuite):
    settings: ClassVar = {"schema": PERSON}
    good = (Output({"name": "Ada"}), Output({"name": "Ada", "age": 36, "mail": "ada@example.com"}))
    bad = (Output({}), Output("Ada"), Output(None), Output({"name": "", "age": "x", "other": 1, "mail": "x"}))
    broken = (
        {}, {"schema": "text"}, {"schema": None}, {"schema": {"type": "strin"}}, {"schema": {"pattern": "("}},
        {"schema": {"$ref": "#/nowhere"}}, {"schema": PERSON, "draft": "5"}, {"schema": PERSON, "draft": 7},
        {"schema": {"$schema": "https://example.com/mine"}}, {"schema": {"pattern": "(?=x)"}},
        {"schema": {"pattern": "(a)\\1"}}, {"schema": {"patternProperties": {"(?<!x)": {}}}},
    )  # fmt: skip

    @pytest.fixture(autouse=True)
    def shared_pool(self, pool: Workers) -> None:
        self.pool = pool

    def make(self, tmp_path: Path) -> Validator:
        return JsonSchema(self.pool)


def test_a_reason_says_where_and_what(schemas: JsonSchema) -> None:
    schema = {"type": "object", "properties": {"items": {"items": PERSON}}}
    verdict = schemas.judge({"schema": schema}, Output({"items": [{"name": "a"}, {"name": 7}]}))
    assert verdict.reasons == ('/items/1/name: 7 is not of type "string"',)


def test_a_reason_that_quotes_a_large_value_still_says_what_is_wrong(schemas: JsonSchema) -> None:
    verdict = schemas.judge({"schema": {"type": "integer"}}, Output("x" * 100_000))
    assert verdict.reasons[0].endswith('is not of type "integer"')
    assert len(verdict.reasons[0]) <= 500


def test_drafts_are_known_by_their_names_and_by_what_the_schema_says(schemas: JsonSchema) -> None:
    old = {"type": "integer", "minimum": 5, "exclusiveMinimum": True}
    assert not schemas.judge({"schema": old, "draft": "4"}, Output(5)).ok
    said = {**old, "$schema": "http://json-schema.org/draft-04/schema#"}
    schemas.check_settings({"schema": said})
    assert not schemas.judge({"schema": said}, Output(5)).ok
    with pytest.raises(InvalidInput):
        schemas.check_settings({"schema": old})  # 2020-12 wants a number there


# --- hostile ones ---


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$schema"])
@pytest.mark.parametrize("where", ["http", "file", "relative"])
def test_nothing_is_fetched(schemas: JsonSchema, tmp_path: Path, keyword: str, where: str) -> None:
    (tmp_path / "schema.json").write_text("true")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0)
        uri = {
            "http": f"http://127.0.0.1:{listening.getsockname()[1]}/schema.json",
            "file": f"file://{tmp_path}/schema.json",
            "relative": "schema.json",
        }[where]
        for schema in ({keyword: uri}, {"$id": "http://127.0.0.1/", "properties": {"a": {keyword: uri}}}):
            if keyword == "$schema" and "$id" in schema:
                continue
            with pytest.raises(InvalidInput):
                schemas.check_settings({"schema": schema})
            assert not schemas.judge(
                {"schema": schema}, Output({"a": 1})
            ).ok  # where one was made before it was checked
        with pytest.raises(BlockingIOError):  # nobody has knocked
            listening.accept()


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    ],
)
def test_a_schema_that_refers_to_itself_ends(schemas: JsonSchema, schema: Any) -> None:
    began = time.monotonic()
    schemas.judge({"schema": schema}, Output({"a": [1, {"b": 2}]}))
    assert time.monotonic() - began < 5


def test_a_recursive_schema_checks_a_tree(schemas: JsonSchema) -> None:
    tree = {"type": "object", "properties": {"of": {"items": {"$ref": "#"}}}, "additionalProperties": False}
    assert schemas.judge({"schema": tree}, Output({"of": [{}, {"of": [{}]}]})).ok
    deep: dict[str, Any] = {"wrong": 1}
    for _ in range(90):
        deep = {"of": [deep]}
    assert not schemas.judge({"schema": tree}, Output(deep)).ok


def many_errors(width: int, levels: int) -> dict[str, Any]:
    """A small schema that finds `width` ** `levels` errors in anything."""
    definitions: dict[str, Any] = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * width} for n in range(levels)}
    return {"$defs": {**definitions, str(levels): False}, "$ref": "#/$defs/0"}


def test_a_small_schema_that_makes_millions_of_errors_is_cut_short(schemas: JsonSchema) -> None:
    began = time.monotonic()
    verdict = schemas.judge({"schema": many_errors(4, 11)}, Output(1))
    assert time.monotonic() - began < 4  # collecting all of them takes longer than the limit
    assert not verdict.ok
    assert verdict.reasons[0] == "False schema does not allow 1"
    assert verdict.details["limit"] in ("time", "memory")  # whichever is reached first
    assert schemas.judge({"schema": many_errors(4, 2)}, Output(1)).details == {}


def never_ending() -> dict[str, Any]:
    """No error is found in it before every way through it was tried."""
    definitions: dict[str, Any] = {
        str(n): {"anyOf": [{"$ref": f"#/$defs/{n + 1}"}, {"allOf": [{"$ref": f"#/$defs/{n + 1}"}]}]} for n in range(60)
    }
    return {"$defs": {**definitions, "60": {"const": 7}}, "$ref": "#/$defs/0"}


def test_a_schema_that_tries_every_way_is_refused_when_the_task_is_made(schemas: JsonSchema) -> None:
    with pytest.raises(InvalidInput, match="within 1 s"):
        schemas.check_settings({"schema": never_ending()})
    verdict = schemas.judge({"schema": never_ending()}, Output(8))
    assert not verdict.ok
    assert verdict.reasons == ("the schema could not be checked within 1 s",)
    assert schemas.judge({"schema": True}, Output(1)).ok  # the next one finds a worker


def test_a_schema_too_large_or_too_deep_is_refused_before_it_is_looked_into(schemas: JsonSchema) -> None:
    with pytest.raises(InvalidInput, match="at most 262,144"):
        schemas.check_settings({"schema": {"enum": ["x" * 300_000]}})
    deep: dict[str, Any] = {}
    for _ in range(200):
        deep = {"items": deep}
    with pytest.raises(InvalidInput, match="64 deep"):
        schemas.check_settings({"schema": deep})


def test_an_output_of_50_mb_is_refused_and_starts_nothing() -> None:
    workers = Workers()
    verdict = JsonSchema(workers).judge({"schema": True}, Output("x" * 50_000_000))
    assert not verdict.ok
    assert "artifact" in verdict.reasons[0]
    assert workers.pids() == []


def test_a_large_output_is_still_checked(schemas: JsonSchema) -> None:
    output = Output([{"name": f"n{n}", "age": n} for n in range(100_000)])
    assert 1 << 20 < len(output.encoded) < LARGEST_OUTPUT
    assert schemas.judge({"schema": {"type": "array"}}, output).ok
