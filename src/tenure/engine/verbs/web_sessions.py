"""Sign-ins: dashboard sessions, when a key was last used, and when a member joined. Only the last has an event."""

from __future__ import annotations

from tenure.core import keys, limits
from tenure.core.errors import NotSignedIn
from tenure.core.filters import Range
from tenure.core.records import ApiKey, WebSession, replace
from tenure.engine.runtime.engine import Engine
from tenure.engine.runtime.unit_of_work import UnitOfWork
from tenure.engine.verbs.members import joined

MOST_OLD = limits.OLD_SESSIONS
MOST_OF_A_KEY = limits.KEY_SESSIONS


def begin(engine: Engine, token: str, key_id: str, secret: str) -> WebSession:
    """Create a session for the bearer of this key; raises NotSignedIn if the key has ended since it was checked."""

    def decide(work: UnitOfWork) -> WebSession:
        key = work.get(ApiKey, "", key_id)
        if key is None or not keys.opens(key, secret, work.now):
            raise NotSignedIn("the key is not accepted")
        for old in work.find(WebSession, {"project": "", "expires_at": Range(high=work.now)}, limit=MOST_OLD):
            work.remove(old)
        mine = work.find(WebSession, {"project": "", "key": key_id}, order="created_at")
        for old in mine[: max(0, len(mine) - MOST_OF_A_KEY + 1)]:
            work.remove(old)
        return work.put(keys.session_begun(token, key, work.now))

    return engine.transact(("",), decide)


def end(engine: Engine, id: str) -> None:
    """End the session on every server."""

    def decide(work: UnitOfWork) -> None:
        row = work.get(WebSession, "", id)
        if row is not None:
            work.remove(row)

    engine.transact(("",), decide)


def note_use(engine: Engine, key_id: str) -> None:
    """Record that the key has just signed somebody in; a member joins with the first of their keys."""

    def decide(work: UnitOfWork) -> None:
        key = work.get(ApiKey, "", key_id)
        if key is not None and (key.used_at or 0) < work.now:
            work.put(replace(key, used_at=work.now))
            if key.user is not None:
                joined(work, key.user)

    engine.transact(("",), decide)


def note_join(engine: Engine, user: str) -> None:
    """Record that a member has signed in for the first time."""
    engine.transact(("",), lambda work: joined(work, user))
