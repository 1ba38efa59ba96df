"""Money: whole nano-dollars in rows, a decimal text on the wire, never a float, since floats do not add up exactly.

Nano: a token of a cheap model costs 30 of them, so prices multiply without rounding, and 64 bits still hold nine
billion dollars.
"""

from __future__ import annotations

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.patterns import pattern

NANO = 1_000_000_000
MOST_USD = limits.USAGE_USD
_SHAPE = pattern(r"([0-9]{1,20})(?:\.([0-9]{1,60}))?(?:[eE]([+-]?[0-9]{1,3}))?")


def parse_usd(text: str, what: str = "cost_usd", *, most: int = MOST_USD) -> int:
    """Nano-dollars from a decimal text such as `0.0123` or `1.2e-05`; further digits are rounded, halves up."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise InvalidInput(
            f"{what} {text[:40]!r} is not an amount of dollars", "write it as a decimal number, as in 0.0123"
        )
    whole, fraction, exponent = match.groups(default="")
    shift = 9 - len(fraction) + int(exponent or 0)
    digits = int(whole + fraction)
    unit: int = 10 ** abs(shift)
    nano = digits * unit if shift >= 0 else (digits + unit // 2) // unit
    if nano > most * NANO:
        raise InvalidInput(f"{what} must be at most {most} dollars (got {text[:40]})")
    return nano


def usd_text(nano: int) -> str:
    """The exact decimal text, with at least two digits after the point: `1.25`, `3.00`, `0.000012`."""
    if nano < 0:
        return f"-{usd_text(-nano)}"
    whole, fraction = divmod(nano, NANO)
    cents, rest = divmod(fraction, NANO // 100)
    return f"{whole}.{cents:02d}" + (f"{rest:07d}".rstrip("0") if rest else "")
