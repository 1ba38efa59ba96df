"""What a result asks to be landed, and the phases of such a result: judged, landed, accepted."""

from __future__ import annotations

import msgspec

from tenure.core.safe_text import shell_word

JUDGE, LAND = "judge", "land"
LANDING = "landing"  # a taker has recorded the move of the branch: from here on nothing but the landing ends it
PHASES = (JUDGE, LAND)  # of takers
COUNTED_AS = LAND  # among the validators of `status`: those that have passed
SHOWN = 12  # characters of a commit
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


def lander(ref: str) -> str:
    """Who puts it on its branch."""
    return f"`tenure run`, `tenure daemon` or `tenure land {shell_word(ref)}` in a checkout of the repository lands it"


def waits_for(land: LandRequest, phase: str, *, holder: str | None = None, note: str | None = None) -> str:
    """What a result that has passed waits for; `holder` lands it now, `note` names the obstacle."""
    commit = f"commit {land.commit[:SHOWN]}"
    if holder is not None:
        text = f"{holder} lands {commit} on {land.onto}"
    elif phase == LANDING:
        text = f"the landing of {commit} on {land.onto} has begun, and nobody has settled it"
    else:
        text = f"{commit} waits to be landed on {land.onto}"
    return f"{text}: {note}" if note else text
