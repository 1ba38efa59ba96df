"""The key that signs the results of a session, for commands that come one by one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenure.cli.main import Run
    from tenure.sealing.signing import SigningKey


def keep_key(run: Run, path: str) -> SigningKey:
    """The key in the file, made if there is none; later commands of this session find it by a note of its path."""
    from tenure.sealing.signing import key_in
    from tenure.user_state import writable_state, write_private

    path = os.path.abspath(os.path.join(run.folder, path))
    key = key_in(path)
    write_private(os.path.join(writable_state(run.environ), _note(run.who.session)), path.encode())
    return key


def key_of(run: Run) -> SigningKey | None:
    """The key of this session, if it has one."""
    from tenure.user_state import is_own, user_states

    if path := run.setting("signing_key"):
        return _key_in(os.path.join(run.folder, path))
    for folder in user_states(run.environ):
        if is_own(folder):
            try:
                with open(os.path.join(folder, _note(run.who.session)), "rb") as file:
                    path = file.read().decode(errors="replace")
            except OSError:
                continue
            return _key_in(path)
    return None


def _key_in(path: str) -> SigningKey:
    from tenure.sealing.signing import key_in

    return key_in(path)


def _note(session: str) -> str:
    from tenure.user_state import safe_name

    return f"signs-{safe_name(session)}"
