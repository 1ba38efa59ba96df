"""The key that signs the results of a session, for commands that come one by one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from tenure.core.errors import TenureError

if TYPE_CHECKING:
    from tenure.cli.main import Run
    from tenure.sealing.signing import SigningKey


class KeptKey(msgspec.Struct, frozen=True):
    key: SigningKey
    path: str
    is_new: bool


@contextmanager
def kept_key(run: Run, path: str) -> Iterator[KeptKey]:
    """The key in the file, created if there is none, to be registered inside.

    Later commands of this session find it by a note of its path. Where the session is refused, its note stays as it
    was, and no new file is left: it would take the place of the session's key.
    """
    from tenure.client.signed_submits import note_of
    from tenure.sealing.signing import create_key, key_in
    from tenure.user_state import writable_state, write_private

    path = os.path.abspath(os.path.join(run.folder, path))
    is_new = not os.path.lexists(path) and create_key(path)
    try:
        yield KeptKey(key_in(path, create=False), path, is_new)
    except TenureError as error:
        if is_new and error.definite:
            os.unlink(path)
        raise
    write_private(os.path.join(writable_state(run.environ), note_of(run.who.session)), path.encode())


def key_of(run: Run) -> SigningKey | None:
    """The key of this session, if it has one."""
    from tenure.client.signed_submits import session_key

    path = run.setting("signing_key")
    return session_key(run.environ, run.who.session, os.path.join(run.folder, path) if path else None)
