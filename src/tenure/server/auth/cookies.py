"""The dashboard's cookie: a random token that names a session, for half a day. What it opens stands in the store."""

from __future__ import annotations

from tenure.core.web_sessions import LIFETIME

SECONDS = LIFETIME // 1_000_000


def name_for(scheme: str) -> str:
    """With TLS a browser keeps this name for the very host that set it."""
    return "__Host-tenure" if scheme == "https" else "tenure"


def cookie_of(token: str, scheme: str) -> str:
    """The value of Set-Cookie for somebody who has just signed in."""
    return _set(token, SECONDS, scheme)


def cleared(scheme: str) -> str:
    """The value of Set-Cookie that signs out."""
    return _set("", 0, scheme)


def _set(value: str, seconds: int, scheme: str) -> str:
    secure = "; Secure" if scheme == "https" else ""
    return f"{name_for(scheme)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def found_in(header: str | None, scheme: str) -> str | None:
    """Our cookie among those that a browser sent."""
    # http.cookies gives up at the first cookie that it dislikes, and loopback's are shared by all its ports.
    for part in (header or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == name_for(scheme) and value:
            return value
    return None
