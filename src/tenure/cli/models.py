"""`model list`, `model savings`, `model estimates`, `model routing`: models, prices and what routing saves."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from tenure.cli.main import Answer, Run, answered, arg, options, shown
from tenure.cli.status import thousands
from tenure.cli.text_format import counted, lasting, money, plain, shorten, style, table


@options()
def list_(run: Run, given: Namespace) -> Answer:
    """List the tiers with a model of each family, dollars for a million tokens, and models that are rate limited now.

    The settings `tiers` and `prices` name files whose values override the shipped ones.
    """
    return shown(run.client.models(), lambda found: _listed(found, run.client.now()))


def _listed(found: Mapping[str, Any], now: int) -> str:
    parts = []
    for tier in found["tiers"]:
        rows = [
            (m["family"], m["model"], *(_price(m[name]) for name in ("fresh_usd", "cached_usd", "output_usd")))
            for m in tier["models"]
        ]
        listed = table(rows, ("family", "model", "in", "from cache", "out"), indent="  ")
        parts.append(f"{style(tier['tier'], 'bold')}  {tier['use']}\n{listed}")
    parts += [_limited(model, now) for model in found["limited"]]
    if not found["routing"]:
        parts.append("routing is off in this project: claims do not name a model")
    return "\n\n".join(parts)


def _limited(model: Mapping[str, Any], now: int) -> str:
    text = f"{plain(model['model'])} was rate limited {counted(model['troubles'], 'time')} in a row"
    left = ((model["cool_until"] or now) - now) / 1e6
    if left > 0:
        return f"{text}; it cools down for {lasting(left)}"
    return f"{text}; {plain(model['tried_by'])} tries it" if model["tried_by"] else f"{text}; the next claim tries it"


@options()
def savings(run: Run, given: Namespace) -> Answer:
    """Show what choosing models by tier saved, compared with the same tokens in the middle tier of each family.

    Both are priced by the table, not by the agents' reports.
    """
    return shown(run.client.savings(), _saved)


def _saved(found: Mapping[str, Any]) -> str:
    rows = [
        (
            t["tier"],
            shorten(", ".join(t["models"]), 40),
            thousands(t["tokens"]),
            _usd(t["cost_usd"]),
            _usd(t["middle_usd"]),
            _usd(t["saved_usd"]),
        )
        for t in found["tiers"]
    ]
    if not rows and not found["unknown"]:
        return "no usage was reported"
    total = ("all", "", "", _usd(found["cost_usd"]), _usd(found["middle_usd"]), _usd(found["saved_usd"]))
    parts = [table([*rows, total], ("tier", "models", "tokens", "cost", "all in the middle", "saved"))] if rows else []
    if found["saved"] is not None:
        word = "less" if found["saved"] >= 0 else "more"
        parts.append(f"{abs(found['saved']):.0%} {word} than with middle models alone")
    if found["unknown"]:
        names = ", ".join(f"{plain(u['model'])} ({thousands(u['tokens'])} tokens)" for u in found["unknown"])
        parts.append(f"not counted, since there is no price or no tier for it: {names}")
    return "\n\n".join(parts)


@options()
def estimates(run: Run, given: Namespace) -> Answer:
    """Compare estimates with actual usage, by type and size, over the last 25 tasks of each that reported usage.

    A size is points of complexity. From five tasks on their median is what the next one like them is expected to take.
    """
    return shown(run.client.estimates(), _estimated)


def _estimated(found: Mapping[str, Any]) -> str:
    if not found["types"]:
        return "no finished task has reported its usage"
    rows = []
    for kind in found["types"]:
        rows.append((shorten(kind["type"], 30), "", kind["tasks"], "", *_goodness(kind)))
        rows += [
            ("", size["size"], size["tasks"], f"{size['tokens']:,}", "", "", "" if size["is_used"] else "too few yet")
            for size in kind["sizes"]
        ]
    rows.append(("all", "", found["tasks"], "", *_goodness(found)))
    return table(rows, ("type", "size", "tasks", "median tokens", "median error", "within 20 %", ""))


def _goodness(part: Mapping[str, Any]) -> tuple[str, str, str]:
    error, within = part["median_error"], part["within"]
    return ("", "", "no estimates") if error is None else (f"{error:.0%}", f"{within:.0%}", "")


@options(arg("state", choices=("on", "off"), help="whether claims name the model to use"))
def routing(run: Run, given: Namespace) -> Answer:
    """Turn model hints in claims on or off. Models that a task names are always given."""
    outcome = run.client.init(routing=given.state == "on")
    return answered(outcome, lambda: f"routing is {given.state}")


def _price(amount: str | None) -> str | None:
    """A price, exact: cached tokens cost less than a cent."""
    return None if amount is None else f"${amount}"


def _usd(amount: str | None) -> str | None:
    return None if amount is None else money(amount)
