"""The dashboard's cookie: a random token that names a session, valid for half a day. The session is in the store."""

from __future__ import annotations

from tenure.core.web_sessions import LIFETIME

SECONDS = LIFETIME // 1_000_000


def name_for(scheme: str) -> str:
    """With TLS the prefix `__Host-` binds the cookie to the host that set it."""
    return "__Host-tenure" if scheme == "https" else "tenure"


def cookie_of(token: str, scheme: str) -> str:
    """The value of Set-Cookie after a sign-in."""
    return _set(token, SECONDS, scheme)


def cleared(scheme: str) -> str:
    """The value of Set-Cookie that signs out."""
    return _set("", 0, scheme)


def _set(value: str, seconds: int, scheme: str) -> str:
    secure = "; Secure" if scheme == "https" else ""
    return f"{name_for(scheme)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"


def found_in(header: str | None, scheme: str) -> str | None:
    """Our cookie in a Cookie header."""
    # http.cookies stops at the first invalid cookie, and on loopback all ports share cookies.
    for part in (header or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == name_for(scheme) and value:
            return value
    return None
