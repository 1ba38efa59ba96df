"""Attestations: a head that a server has signed, to be kept elsewhere.

The signature covers the UTF-8 of a JSON array without spaces:

    ["tenure.attest.v1", TENANT, PROJECT, HEAD, AT]

HEAD is `NUMBER:SHA256`, AT the time of signing, as in `timestamp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core.access_chain import Head, parse_head
from tenure.core.errors import InvalidInput
from tenure.core.instants import format_instant

if TYPE_CHECKING:
    from tenure.core.views import AttestationView

FORM = "tenure.attest.v1"


def _covered(tenant: str, project: str, head: Head, at: str) -> bytes:
    return msgspec.json.encode([FORM, tenant, project, str(head), at])


def attested(
    tenant: str, project: str, head: Head, at: int, public_key: str, sign: Callable[[bytes], str]
) -> AttestationView:
    when = format_instant(at)
    return {
        "form": FORM, "tenant": tenant, "project": project, "head": str(head), "timestamp": when,
        "public_key": public_key, "signature": sign(_covered(tenant, project, head, when)),
    }  # fmt: skip


def head_in(
    document: Mapping[str, Any],
    project: str | None,
    is_signed: Callable[[str, str, bytes], bool],
    *,
    tenant: str | None = None,
) -> Head:
    """The head of an attestation; raises InvalidInput where its signature is wrong, or it is of another project or
    tenant."""
    try:
        named, head, of_tenant = str(document["project"]), parse_head(str(document["head"])), str(document["tenant"])
        covered = _covered(of_tenant, named, head, str(document["timestamp"]))
        good = document["form"] == FORM and is_signed(str(document["public_key"]), str(document["signature"]), covered)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"this is not an attestation: {error}", "as `audit attest` prints it") from None
    if not good:
        raise InvalidInput("the signature of this attestation is not that of its key", "take another copy of it")
    if project is not None and named != project:
        raise InvalidInput(f"this attestation is of the project {named}, not of {project}")
    if tenant is not None and of_tenant != tenant:
        raise InvalidInput(f"this attestation is of the tenant {of_tenant}, not of {tenant}")
    return head
