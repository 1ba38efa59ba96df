"""Makes `src/tenure/data/prices.json` from the package genai-prices, which nothing imports at run time.

    pip download --no-deps genai-prices -d /tmp/prices && python -m zipfile -e /tmp/prices/*.whl /tmp/prices/package
    PYTHONPATH=/tmp/prices/package python -m tests.prices.generate

Kept are tokens alone: of images, sound, searches and pages no agent tells us. Prices are nano-dollars for a million
tokens, whole numbers all. What depends on a prompt's length or on the hour cannot be told from running totals: a
prompt's first step and the dearest hour are taken, and `about` says so.
"""

from __future__ import annotations

import json
from decimal import ROUND_HALF_UP, Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Makers of models first: a bare name is looked for there. Hosts are found by name, and through their own ids.
PROVIDERS = (
    "anthropic", "openai", "google", "x-ai", "deepseek", "mistral", "moonshotai", "zai", "minimax", "meta", "cohere",
    "perplexity", "cursor", "aws", "azure", "groq", "cerebras", "fireworks", "together", "github-copilot", "openrouter",
)  # fmt: skip
TARGET = Path(__file__).parents[2] / "src" / "tenure" / "data" / "prices.json"
FIELDS = {"fresh": "input_mtok", "cached": "cache_read_mtok", "written": "cache_write_mtok", "output": "output_mtok"}


def nano(price: Any) -> tuple[int, bool]:
    """Nano-dollars for a million tokens, and whether longer prompts cost more."""
    base = getattr(price, "base", price)
    amount = (Decimal(base) * 10**9).quantize(Decimal(1), ROUND_HALF_UP)
    return int(amount), base is not price


def rate(price: Any) -> dict[str, Any] | None:
    if getattr(price, "input_mtok", None) is None and getattr(price, "output_mtok", None) is None:
        return None
    found: dict[str, Any] = {}
    about = False
    for name, field in FIELDS.items():
        given = getattr(price, field, None)
        if given is not None:
            found[name], is_tiered = nano(given)
            about |= is_tiered
    return {**found, **({"about": True} if about else {})}


def rates(prices: Any) -> list[dict[str, Any]]:
    """What holds from which day on, the oldest first."""
    from genai_prices.types import StartDateConstraint, TimeOfDateConstraint

    if not isinstance(prices, list):
        only = rate(prices)
        return [only] if only else []
    by_day: dict[str, dict[str, Any]] = {}
    for each in prices:
        found = rate(each.prices)
        if found is None:
            continue
        if isinstance(each.constraint, TimeOfDateConstraint):
            latest = by_day[max(by_day)] if by_day else {}
            dearest = max((latest, found), key=lambda some: some.get("fresh", 0) + some.get("output", 0))
            by_day[max(by_day, default="")] = {**dearest, "about": True}
        elif isinstance(each.constraint, StartDateConstraint):
            by_day[each.constraint.start_date.isoformat()] = found
        else:
            by_day[""] = found
    return [{**({"since": day} if day else {}), **by_day[day]} for day in sorted(by_day)]


def match(clause: Any) -> dict[str, Any]:
    for kind, field in (
        ("equals", "equals"), ("starts", "starts_with"), ("ends", "ends_with"), ("contains", "contains"),
        ("regex", "regex"),
    ):  # fmt: skip
        if hasattr(clause, field):
            return {kind: getattr(clause, field)}
    if hasattr(clause, "or_"):
        return {"any": [match(each) for each in clause.or_]}
    return {"all": [match(each) for each in clause.and_]}


def main() -> None:
    from genai_prices.data import providers

    known = {provider.id: provider for provider in providers}
    lines = []
    for name in PROVIDERS:
        models = []
        for model in known[name].models:
            found = rates(model.prices)
            if found:
                models.append(json.dumps({"id": model.id, "match": match(model.match), "rates": found}, sort_keys=True))
        lines.append(f'{{"id": {json.dumps(name)}, "models": [\n' + ",\n".join(models) + "\n]}")
    source = f"genai-prices {version('genai-prices')} (MIT, Pydantic Services Inc.)"
    text = f'{{"source": {json.dumps(source)}, "providers": [\n' + ",\n".join(lines) + "\n]}\n"
    json.loads(text)
    TARGET.write_text(text)


if __name__ == "__main__":
    main()
