"""Exit codes, the one table. Scripts rely on them; the reference page is made from here."""

from __future__ import annotations

EXITS: dict[int, str] = {
    0: "ok",
    1: "no store here",
    2: "usage: an unknown verb or option",
    3: "no task to claim",
    4: "not found",
    5: "already claimed by another",
    6: "not the holder any more: stale, mismatched, expired, completed, cancelled, or no receipt",
    7: "denied: the state, a limit, a conflict or the role does not allow it",
    8: "invalid input or output, version conflict, too large",
    9: "an operator has terminated this agent",
    10: "the store is unavailable or overloaded; nothing was done",
    11: "bad configuration",
    12: "not authorised",
    70: "an internal error; nothing was done",
    75: "outcome unknown, or done but the answer could not be written: retry",
    130: "interrupted",
}

OF_KIND = {"ok": 0, "nothing": 3, "missing": 4, "held": 5, "stale": 6, "denied": 7, "invalid": 8}

OF_OUTCOME = {"DENIED_AGENT": 9}  # where the kind says too little

OF_ERROR = {
    "NO_STORE": 1,
    "USAGE": 2,
    "NOT_FOUND": 4,
    "AMBIGUOUS": 4,
    "NO_RECEIPT": 6,
    "NOT_HELD": 6,
    "NOT_ALLOWED": 7,
    "LIMIT_REACHED": 7,
    "COPY_REFUSED": 7,
    "STORE_ONLY": 7,
    "TREE_NOT_CLEAN": 7,
    "COMMIT_REFUSED": 7,
    "HOOK_REFUSED": 7,
    "MERGE_CONFLICT": 7,
    "NOTHING_TO_LAND": 7,
    "CHECKOUT_IN_THE_WAY": 7,
    "BRANCH_MOVES": 7,
    "GIT_FAILED": 7,
    "NOT_PLACED": 7,
    "NO_REPOSITORY": 8,
    "INVALID_INPUT": 8,
    "TOO_LARGE": 8,
    "CYCLE": 8,
    "REQUEST_ID_REUSED": 8,
    "AUTH_UNAVAILABLE": 10,
    "RATE_LIMITED": 10,
    "OVERLOADED": 10,
    "STORE_UNAVAILABLE": 10,
    "STORE_ERROR": 10,
    "CLOCK_JUMP": 10,
    "CONFLICT": 10,
    "SCHEMA_MISMATCH": 10,
    "STORE_CORRUPT": 10,
    "SECRET_UNREADABLE": 10,
    "ARTIFACT_CORRUPT": 10,
    "UNDECIDED": 10,
    "BAD_CONFIG": 11,
    "SECRETS_OFF": 11,
    "NO_ROUTE": 11,  # what answers there is no server of ours, or another version of it
    "NO_METHOD": 11,
    "UNTRUSTED": 11,
    "NO_PROGRAM": 11,
    "NOT_SIGNED_IN": 12,
    "BUG": 70,
    "OUTCOME_UNKNOWN": 75,
    "UNFINISHED": 75,
}


def exit_of(outcome: str) -> int:
    """The exit code of an outcome's code."""
    from tenure.core.outcomes import CODES

    return OF_OUTCOME.get(outcome, OF_KIND[CODES[outcome].kind])
