"""The key that signs the results of a session, for commands that come one by one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tenure.cli.main import Run
    from tenure.sealing.signing import SigningKey


class KeptKey(msgspec.Struct, frozen=True):
    key: SigningKey
    path: str
    is_new: bool


def keep_key(run: Run, path: str) -> KeptKey:
    """The key in the file, created if there is none; later commands of this session find it by a note of its path."""
    from tenure.client.signed_submits import note_of
    from tenure.sealing.signing import key_in
    from tenure.user_state import writable_state, write_private

    path = os.path.abspath(os.path.join(run.folder, path))
    is_new = not os.path.exists(path)
    key = key_in(path)
    write_private(os.path.join(writable_state(run.environ), note_of(run.who.session)), path.encode())
    return KeptKey(key, path, is_new)


def key_of(run: Run) -> SigningKey | None:
    """The key of this session, if it has one."""
    from tenure.client.signed_submits import session_key

    path = run.setting("signing_key")
    return session_key(run.environ, run.who.session, os.path.join(run.folder, path) if path else None)
