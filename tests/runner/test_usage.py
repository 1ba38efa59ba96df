"""A slice of `./x reliability spending`, which has more of it; and what it found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tenure.agents.runner.conclusion import result_data
from tests.reliability.spending import Proof, served
from tests.runner.conftest import Stage
from tests.servers.postgres import PostgresServer

SCHEMA = {"type": "object", "required": ["answer"], "additionalProperties": False, "properties": {"answer": {}}}
JSON = {"validation": "json-schema", "settings": {"schema": SCHEMA}}
REGEX = {"validation": "regex", "settings": {"pattern": "^DONE$"}}


@pytest.mark.sampled
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_what_agents_used_is_what_is_booked_reserved_projected_and_saved(
    store: str, tmp_path: Path, postgres: PostgresServer
) -> None:
    with served(store, tmp_path) as place:
        proof = Proof(tmp_path, tasks=10, agents=3, seed=7, lease=3.0, place=place)
        assert proof.run() == []
    assert proof.met == ["no process without headroom", "killed", "warned, paused, resumed"]


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"answer": 42}', {"answer": 42}),
        ('Here it is:\n```json\n{"answer": 42}\n```\nThat was it.', {"answer": 42}),
        ('```\n{"answer": 1}\n```\nNo, better:\n```json\n{"answer": 2}\n```', {"answer": 2}),
        ("I could not find out.", "I could not find out."),
    ],
)
def test_a_schema_is_asked_of_what_the_agent_said(text: str, data: object) -> None:
    assert result_data({"output": JSON}, text) == data


def test_other_contracts_get_the_words() -> None:
    assert result_data({"output": REGEX}, '{"answer": 42}') == '{"answer": 42}'


def test_a_contract_finds_what_the_agent_said_and_not_our_wrapping(stage: Stage) -> None:
    stage.repository()
    schema, pattern = stage.add("Schema", output=JSON), stage.add("Pattern", output=REGEX)
    stage.do(schema, says=['{"answer": 42}'])
    stage.do(pattern, says=["DONE"])
    stage.go()

    stage.run("--until-empty", "--worktree").ends()

    results = [stage.client.show(key)["result"] for key in (schema, pattern)]
    assert [result["data"] for result in results] == [{"answer": 42}, "DONE"]
    assert all(f"branch tenure/{key}/gen1" in r["summary"] for key, r in zip((schema, pattern), results, strict=True))
    assert "it must be JSON of the kind described above" in (stage.control / "prompts" / schema).read_text()


@pytest.mark.parametrize("words", [("--once",), ("--until-empty",)])
def test_a_runner_that_ends_for_want_of_money_says_so(stage: Stage, words: tuple[str, ...]) -> None:
    stage.add("Dear")
    stage.client.set_budget("project", usd="0.01", default_estimate="0.05")
    said = stage.run(*words).ends(3 if "--once" in words else 0)
    assert "would reserve $0.05; budget project has $0.01 left" in said
    assert "an admin can raise it by $0.04" in said


@pytest.mark.parametrize("words", [(), ("--land",)])
def test_costs_from_the_price_table_are_shown_as_estimates(stage: Stage, words: tuple[str, ...]) -> None:
    stage.repository()
    key = stage.add("Counted")
    usage = {"model": "gpt-6.1-terra", "fresh": 1_000_000, "output": 100_000}
    stage.do(says=[json.dumps({"result": 1, "usage": usage})], writes={"made.txt": "by KEY\n"})
    stage.go()
    said = stage.run("--once", *words).ends()
    assert re.search(rf"{key}: completed after \d s, ≈ \$1.50", said), said
    assert bool(stage.client.show(key).get("landings")) == bool(words)
