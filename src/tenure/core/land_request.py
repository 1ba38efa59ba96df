"""What a result asks to be landed, and the phases of such a result: judged, landed, accepted."""

from __future__ import annotations

import msgspec

JUDGE, LAND = "judge", "land"
LANDING = "landing"  # a taker has recorded the move of the branch: from here on nothing but the landing ends it
PHASES = (JUDGE, LAND)  # of takers
_SUFFIX = "-land"  # of the name in the receipts of those who land


class LandRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A commit that is to be on a branch before the result counts."""

    commit: str
    onto: str


def name_in_phase(name: str, phase: str) -> str:
    """The name differs by phase: a receipt for the verdict cannot land, and one for the landing cannot judge."""
    return name if phase == JUDGE else name + _SUFFIX


def is_of_landing(receipt: str) -> bool:
    """Whether this is the receipt of a taker that lands."""
    return receipt.partition("@")[0].endswith(_SUFFIX)
