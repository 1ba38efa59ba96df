"""`history`: the lineage of a task, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tenure.cli.task_reads import _landings
from tests.cli.conftest import Tenure
from tests.cli.shop import LEASE, Shop, busy_shop, just_now
from tests.cli.terminal import Terminal


@pytest.fixture
def shop(bare: Tenure) -> Iterator[Shop]:
    shop = busy_shop(bare.folder / ".tenure" / "tenure.db", just_now())
    yield shop
    shop.close()


def test_history_is_a_timeline_with_refused_results_below(bare: Tenure, shop: Shop) -> None:
    said = bare("history", "C-001", "--project", "shop")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == "C-001-write-the-api  Write the API"
    assert lines[1] == "● running, 2 generations"
    first = next(n for n, line in enumerate(lines) if line.startswith("  1  bo "))
    assert "bo-1" in lines[first]
    assert "(1 min)" in lines[first]
    assert "EXPIRED" in lines[first]
    assert "refused, kept" in lines[first]
    assert "refused: STALE_GENERATION, from bo with generation 1" in lines[first + 1]
    assert lines[first + 2].strip() == "what I had"
    assert lines[first + 3].startswith("  2  cy ")
    assert "holds it" in lines[first + 3]


def test_history_as_json_is_a_list_of_generations(bare: Tenure, shop: Shop) -> None:
    entries = bare("history", "C-001", "--project", "shop", "--json").json
    assert [(e["generation"], e["session"], e["release_reason"], e["result_accepted"]) for e in entries] == [
        (1, "bo-1", "EXPIRED", False),
        (2, "cy-1", None, None),
    ]
    assert entries[0]["refused"][0]["reason"] == "STALE_GENERATION"
    assert entries[0]["acquired_at"].endswith("Z")
    assert "nonce" not in str(entries)


def test_an_accepted_result_shows_its_work_product(bare: Tenure, shop: Shop) -> None:
    said = bare("history", "B-001", "--project", "shop").out
    assert "COMPLETED" in said
    assert "accepted" in said
    assert "wp-B-001-design-the-schema-gen1-" in said


def test_failures_and_new_runs_are_told(bare: Tenure, shop: Shop) -> None:
    shop.mia.retry("C-002")
    again = shop.client("dee").claim("C-002", lease=LEASE)
    assert again.generation == 2
    said = bare("history", "C-002", "--project", "shop").out
    assert "└ task: the mail server says no" in said
    assert said.index("the mail server") < said.index("run 2: a person started it over") < said.index("  2  dee")


def test_a_task_that_nobody_claimed_says_so(bare: Tenure, shop: Shop) -> None:
    assert "not claimed yet" in bare("history", "E-001", "--project", "shop").out
    assert bare("history", "E-001", "--project", "shop", "--json").json == []
    assert bare("history", "Q-404", "--project", "shop").code == 4


def test_the_data_of_a_refused_result_is_read_before_it_is_adopted(bare: Tenure, shop: Shop) -> None:
    (kept,) = bare("results", "C-001", "--kept", "--project", "shop", "--json").json
    assert (kept["accepted"], kept["reason"], kept["summary"]) == (False, "STALE_GENERATION", "what I had")
    said = bare("results", "C-001", "--project", "shop").out
    assert f"{kept['id']}  refused (STALE_GENERATION), kept" in said
    assert "generation 1 of bo in session bo-1" in said
    assert json.dumps(kept["data"], indent=1) in said
    assert "accepted" in bare("results", "B-001", "--project", "shop").out
    assert bare("results", "B-001", "--kept", "--project", "shop").out == "no results\n"


def test_a_narrow_terminal_gets_a_narrow_timeline(bare: Tenure, shop: Shop) -> None:
    words = bare.command("-C", bare.folder, "history", "B-001", "--project", "shop")
    with Terminal(words, environ=bare.environ, columns=80) as narrow:
        assert narrow.ended() == 0
    assert "accepted" in narrow.text
    assert "wp-B-001" not in narrow.text
    with Terminal(words, environ=bare.environ, columns=160) as wide:
        assert wide.ended() == 0
    assert "wp-B-001" in wide.text


def test_a_landing_is_called_done_only_where_its_claim_was_accepted() -> None:
    landings = [{"branch": "main", "new": "b" * 40}, {"branch": "main", "new": "a" * 40}]  # newest first
    lines = {reason: _landings({"landings": landings, "release_reason": reason}) for reason in ("COMPLETED", "EXPIRED")}
    said = " on main (reported by its holder)"
    assert lines["COMPLETED"] == [f"└ began to land aaaaaaaaaaaa{said}", f"└ landed bbbbbbbbbbbb{said}"]
    assert lines["EXPIRED"] == [f"└ began to land aaaaaaaaaaaa{said}", f"└ began to land bbbbbbbbbbbb{said}"]
