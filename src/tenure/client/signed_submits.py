"""A submit with its signature, made where the private key is."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tenure.core.artifacts import TRANSCRIPT
from tenure.core.commands import Submit
from tenure.core.commands.holder_commands import ResultSignature
from tenure.core.ids import Receipt
from tenure.core.records import replace
from tenure.core.signed_results import message
from tenure.user_state import is_own, safe_name, user_states, writable_state

if TYPE_CHECKING:
    from tenure.sealing.signing import SigningKey


OWN = "signing.key"


def own_key(environ: Mapping[str, str]) -> SigningKey:
    """The user's own key on this machine, made on first use.

    One for all processes: what a process that ended has left in the outbox, the next one can sign.
    """
    from tenure.sealing.signing import key_in

    return key_in(own_key_file(environ))


def own_key_file(environ: Mapping[str, str]) -> str:
    return f"{writable_state(environ)}/{OWN}"


def session_key(environ: Mapping[str, str], session: str, named: str | None = None) -> SigningKey | None:
    """The key of a session: in the file `named`, or in the one that its `join --key` has noted.

    None is created here: a new key would not be the one that the session has registered.
    """
    from tenure.sealing.signing import key_in

    if named:
        return key_in(named, create=False)
    for folder in user_states(environ):
        if is_own(folder):
            try:
                with open(f"{folder}/{note_of(session)}", "rb") as file:  # noqa: PTH123 - `done` imports no pathlib
                    path = file.read().decode(errors="replace")
            except OSError:
                continue
            return key_in(path, create=False)
    return None


def note_of(session: str) -> str:
    """The name of the file that has the path of a session's key."""
    return f"signs-{safe_name(session)}"


def request_id_of(command: Submit) -> str:
    """The id of the request, which the signature covers: a transport must not choose one afterwards."""
    return command.request_id or f"signed-{os.urandom(12).hex()}"


def wanted_artifacts(
    found: Iterable[Mapping[str, Any]], receipt: Receipt, names: Collection[str] | None
) -> dict[str, str]:
    """The artifacts that the result passes on, with their digests; by the rule of `core.artifacts.passed_on`."""
    rows = sorted(found, key=lambda row: row["generation"])
    if names is not None:
        mine = {row["name"]: row["digest"] for row in rows if row["generation"] == receipt.generation}
        return {name: mine[name] for name in names if name in mine}
    run = max((row["run"] for row in rows if row["generation"] <= receipt.generation), default=None)
    return {row["name"]: row["digest"] for row in rows if row["run"] == run and row["name"] != TRANSCRIPT}


def signed(command: Submit, receipt: Receipt, tenant: str, artifacts: dict[str, str], key: SigningKey) -> Submit:
    covered = message(
        tenant=tenant, project=command.project, task=receipt.name, generation=receipt.generation, epoch=receipt.epoch,
        data=command.data, summary=command.summary, artifacts=artifacts, request_id=command.request_id,
    )  # fmt: skip
    return replace(command, signature=ResultSignature(value=key.sign(covered), artifacts=artifacts))
