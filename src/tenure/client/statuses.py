"""The one table of HTTP statuses for outcomes and errors."""

from __future__ import annotations

OF_KIND = {"ok": 200, "nothing": 200, "missing": 404, "held": 409, "stale": 409, "denied": 409, "invalid": 422}
OF_OUTCOME = {"CREATED": 201, "VALIDATING": 202, "VERSION_CONFLICT": 409}  # other than their kind's

OF_ERROR = {
    "INVALID_INPUT": 400,
    "CYCLE": 400,
    "REQUEST_ID_REUSED": 409,
    "TOO_LARGE": 413,
    "NOT_SIGNED_IN": 401,
    "AUTH_UNAVAILABLE": 503,
    "NOT_ALLOWED": 403,
    "NOT_FOUND": 404,
    "NO_ROUTE": 404,
    "NO_METHOD": 405,
    "AMBIGUOUS": 409,
    "LIMIT_REACHED": 409,
    "COPY_REFUSED": 409,
    "SECRETS_OFF": 409,
    "SECRET_UNREADABLE": 409,
    "RATE_LIMITED": 429,
    "OVERLOADED": 503,
    "STORE_UNAVAILABLE": 503,
    "STORE_ERROR": 503,
    "CLOCK_JUMP": 503,
    "CONFLICT": 503,
    "OUTCOME_UNKNOWN": 503,
    "SCHEMA_MISMATCH": 503,
    "STORE_CORRUPT": 503,
    "ARTIFACT_CORRUPT": 503,
    "UNDECIDED": 503,
    "BUG": 500,
}
