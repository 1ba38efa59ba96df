"""`tenure budget …` and `usage` from a shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenure.cli.budgets import HOUR, WIDTH, bar, burn_down
from tenure.client import Client
from tests.cli.conftest import Tenure


def test_a_budget_is_set_listed_shown_moved_and_removed(tenure: Tenure, add: Callable[..., str]) -> None:
    add("one")
    made = tenure("budget", "set", "--usd", "5", "--default-estimate", "2", "--period", "week", "--json").json
    assert (made["outcome"], made["budget"]["allocated"], made["budget"]["period"]) == ("CREATED", "5.00", "week")
    assert made["budget"]["until"].endswith("Z")
    tenure("budget", "set", "agent:bo", "--usd", "1")
    assert [b["id"] for b in tenure("budget", "list", "--json").json] == ["project", "agent:bo"]
    refused = tenure("budget", "move", "project", "agent:bo", "1.50")
    assert refused.code == 8
    assert "budget project is for each week (UTC), agent:bo for all time" in refused.err
    assert tenure("budget", "set", "agent:bo", "--period", "week").code == 0
    assert tenure("budget", "move", "project", "agent:bo", "1.50").code == 0
    assert tenure("budget", "move", "project", "agent:bo", "99").code == 7
    shown = tenure("budget", "show", "agent:bo").out
    assert "$2.50 of $2.50 left" in shown
    assert "nothing was spent" in shown
    tenure("claim")
    status = tenure("status")
    assert "project  ▒▒▒▒" in status.out
    assert tenure("status", "--json").json["budgets"][0]["reserved"] == "2.00"
    projection = tenure("budget", "projection", "--json").json
    assert (projection["advice"], projection["open_tasks"]["tasks"]) == ("CONTINUE", 0)
    assert tenure("budget", "alerts").out == "no alerts\n"
    assert tenure("budget", "remove", "agent:bo").code == 0
    assert tenure("budget", "remove", "agent:bo").code == 4
    assert tenure("doctor", "--verify").code == 0


def test_a_claim_that_cannot_be_paid_says_why_and_what_to_do(tenure: Tenure, add: Callable[..., str]) -> None:
    key = add("one")
    tenure("budget", "set", "--usd", "1", "--default-estimate", "2")
    denied = tenure("claim", key)
    assert denied.code == 7
    assert "would reserve $2.00; budget project has $1.00 left" in denied.out
    assert "raise it by $1.00" in denied.out
    nothing = tenure("claim", "--json")
    assert (nothing.code, nothing.json["counts"]["unaffordable"]) == (3, 1)
    assert nothing.json["shortage"]["missing"] == "1.00"
    assert "would reserve" in tenure("why", key).out


def test_what_cannot_be_is_refused_with_its_code(tenure: Tenure) -> None:
    for words in (("--usd", "x"), (), ("--usd", "1", "--tokens", "1"), ("nobody", "--usd", "1"), ("--usd", "-1")):
        assert tenure("budget", "set", *words).code in (2, 8)
    assert tenure("budget", "show").code == 4
    assert tenure("budget", "set", "--usd", "1", "--period", "year").code == 2
    assert tenure.process("budget", "set", "--usd", "1", TENURE_ROLE="agent").code == 7


def test_usage_is_reported_and_summed_by_operation(tenure: Tenure, add: Callable[..., str]) -> None:
    add("one")
    receipt = tenure("claim", "--json").json["receipt"]
    total = ("usage", "add", "--receipt", receipt, "--model", "m")
    tenure(*total, "--in", 1000, "--cost", "0.50")
    said = tenure(*total, "--in", 400, "--cost", "0.20", "--operation", "review")
    assert "$0.50" in said.out  # a part of the total, not more
    rows = tenure("usage", "--by", "operation", "--json").json
    assert [(row["operation"], row["cost_usd"], row["fresh"]) for row in rows] == [
        ("", "0.30", 600), ("review", "0.20", 400),
    ]  # fmt: skip
    table = tenure("usage", "--by", "operation").out
    assert "operation" in table
    assert "(none)" in table
    refused = tenure(*total, "--operation", "a,b")
    assert refused.code == 8
    assert "operation" in refused.err


def test_costs_by_the_table_of_prices_are_marked(tenure: Tenure, add: Callable[..., str]) -> None:
    key = add("one")
    receipt = tenure("claim", key, "--json").json["receipt"]
    with Client(str(tenure.folder / ".tenure" / "tenure.db"), "default", agent="x", session="x") as client:
        client.usage(receipt, "claude-sonnet-4-5", fresh=1_000_000)
    assert "≈ $" in tenure("usage", "--by", "model").out
    assert "computed_usd" in tenure("usage", "--json").json[0]


def drawn(**fields: Any) -> dict[str, Any]:
    return {"allocated": "10.00", "consumed": "0.00", "reserved": "0.00", "percent": 0, "burn": [], **fields}


def test_a_bar_has_its_width_whatever_is_spent() -> None:
    for consumed, reserved in (("0", "0"), ("5", "5"), ("99", "3"), ("0.01", "9.99")):
        text = bar(drawn(consumed=consumed, reserved=reserved))
        assert len(text.rpartition(" 0 %")[0]) == 20, text
    assert bar(drawn(allocated="0.00")).startswith("·")


def test_a_budget_burns_down() -> None:
    now = 1_700_000_000_000_000 // HOUR * HOUR
    burn = [{"at": now - hours * HOUR, "spent": "3.00"} for hours in (150, 80, 1)]
    (line,) = burn_down(drawn(consumed="9.00", burn=burn), now)
    graph = line.split("  ")[2]
    assert len(graph) == WIDTH
    heights = [" ▁▂▃▄▅▆▇█".index(c) for c in graph]
    assert heights == sorted(heights, reverse=True)
    assert (heights[0], heights[-1]) == (8, 1)
