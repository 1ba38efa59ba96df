"""The key that signs the results of a session, for commands that come one by one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tenure.cli.main import Run
    from tenure.sealing.signing import SigningKey


class KeptKey(NamedTuple):
    key: SigningKey
    path: str
    is_new: bool


def key_at(run: Run, path: str) -> KeptKey:
    """The key in the file, created if there is none."""
    from tenure.sealing.signing import key_in

    path = os.path.abspath(os.path.join(run.folder, path))
    is_new = not os.path.exists(path)
    return KeptKey(key_in(path), path, is_new)


def note_key(run: Run, path: str) -> None:
    """Later commands of this session find the key by this note."""
    from tenure.client.signed_submits import note_of
    from tenure.user_state import writable_state, write_private

    write_private(os.path.join(writable_state(run.environ), note_of(run.who.session)), path.encode())


def key_of(run: Run) -> SigningKey | None:
    """The key of this session, if it has one."""
    from tenure.client.signed_submits import session_key

    path = run.setting("signing_key")
    return session_key(run.environ, run.who.session, os.path.join(run.folder, path) if path else None)
