"""What the proof `spending` works out for itself, from the agents' diary and the files that ship: no rule is imported.

All money is in whole nano-dollars.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import tenure

DATA = Path(tenure.__file__).parent / "data"
TOKENS = ("fresh", "cached", "written", "output")
MILLION = 1_000_000
HOUR = 3600 * MILLION  # microseconds
DAY, WEEK = 24 * HOUR, 7 * 24 * HOUR

Entry = dict[str, Any]


def nano(usd: str) -> int:
    amount = Decimal(usd) * 10**9
    assert amount == int(amount), usd
    return int(amount)


def diary(folder: Path) -> list[Entry]:
    return [json.loads(line) for line in (folder / "diary").read_text().splitlines()]


# --- prices -------------------------------------------------------------------------------------------------


def rates() -> dict[str, dict[str, int]]:
    """Nano-dollars for a million tokens of each kind, by the model's own name; as of today."""
    today = datetime.now(UTC).date().isoformat()
    found = {}
    for provider in json.loads((DATA / "prices.json").read_text())["providers"]:
        if provider["id"] in ("anthropic", "openai"):
            for model in provider["models"]:
                begun = [rate for rate in model["rates"] if rate.get("since", "") <= today]
                if begun:
                    found[model["id"]] = {kind: begun[-1].get(kind, begun[-1]["fresh"]) for kind in TOKENS}
    return found


def cost(tokens: Entry, rate: dict[str, int]) -> int:
    """Rounded once, halves up."""
    return (sum(tokens[kind] * rate[kind] for kind in TOKENS) + MILLION // 2) // MILLION


def spent(entries: Iterable[Entry]) -> dict[tuple[str, int, str, str], Entry]:
    """By task, generation, agent and model: tokens, and `nano`, by the agent's word where it gave one."""
    table = rates()
    found: dict[tuple[str, int, str, str], Entry] = {}
    for entry in entries:
        key = (entry["task"], entry["generation"], entry["agent"], entry["model"])
        kept = found.setdefault(key, {**dict.fromkeys(TOKENS, 0), "usd": None})
        for kind in TOKENS:
            kept[kind] += entry[kind]
        kept["usd"] = entry["usd"]
    for (_, _, _, model), kept in found.items():
        kept["nano"] = cost(kept, table[model]) if kept["usd"] is None else nano(kept["usd"])
    return found


def by(place: int, claims: dict[tuple[str, int, str, str], Entry]) -> dict[str, Entry]:
    """Added up for each task (0), agent (2) or model (3)."""
    sums: dict[str, Entry] = defaultdict(lambda: dict.fromkeys((*TOKENS, "nano"), 0))
    for key, used in claims.items():
        for name in (*TOKENS, "nano"):
            sums[str(key[place])][name] += used[name]
    return dict(sums)


def total(claims: dict[tuple[str, int, str, str], Entry], where: Callable[[str, str], bool] = lambda *_: True) -> int:
    """Of the claims for whose task and agent `where` holds."""
    return sum(used["nano"] for (task, _, agent, _), used in claims.items() if where(task, agent))


# --- what routing saved -------------------------------------------------------------------------------------


def savings(claims: dict[tuple[str, int, str, str], Entry]) -> dict[str, tuple[int, int]]:
    """By tier: what its models' tokens cost by the table, and what they would have cost in the middle of the family."""
    table = rates()
    place = {
        family[tier]["model"]: (tier, family["middle"]["model"])
        for family in json.loads((DATA / "tiers.json").read_text())["families"].values()
        for tier in ("small", "middle", "top")
    }
    sums: dict[str, tuple[int, int]] = {}
    for model, used in by(3, claims).items():
        tier, middle = place[model]
        own, instead = sums.get(tier, (0, 0))
        sums[tier] = (own + cost(used, table[model]), instead + cost(used, table[middle]))
    return sums


# --- where a budget leads -----------------------------------------------------------------------------------


def days_left(allocated: int, consumed: int) -> float:
    """Of a budget that is younger than an hour: it is taken to go on as that hour went."""
    return (allocated - consumed) / (consumed * 24)


def spacing(allocated: int, consumed: int, reserved: int) -> int:
    """Microseconds from a claim to the next: as long as the rest must last for what this one reserved."""
    if days_left(allocated, consumed) >= 7:
        return 0
    return min(HOUR, WEEK * reserved // (allocated - consumed))
