"""A principal from what a credential allows and what the request's headers name."""

from __future__ import annotations

from urllib.parse import unquote

from tenure.core import ids, inputs, keys, roles
from tenure.core.commands import Principal
from tenure.core.records import ApiKey
from tenure.server.auth.request_source import RequestSource


def local_owner(source: RequestSource, tenant: str, credential: str, user: str | None = None) -> Principal:
    """The deployment's owner, on this machine."""
    return principal_of(source, tenant, credential, "owner", _named(source, b"tenure-user") or user)


def of_key(key: ApiKey, source: RequestSource, tenant: str, credential: str) -> Principal:
    may = (key.role, key.user, key.agent, key.projects, key.id, key.capabilities, keys.maker_of(key))
    return principal_of(source, tenant, credential, *may)


def principal_of(
    source: RequestSource,
    tenant: str,
    credential: str,
    role: str,
    user: str | None,
    agent: str | None = None,
    projects: tuple[str, ...] = (),
    key: str | None = None,
    capabilities: tuple[str, ...] = (),
    maker: str | None = None,
) -> Principal:
    """Headers may lower the role, and name an agent if the key names none."""
    wanted = _named(source, b"tenure-role")
    if wanted is not None:
        role = roles.lower_of(role, inputs.check_choice(wanted, roles.ROLES, "Tenure-Role"))
    named, session = _named(source, b"tenure-agent"), _named(source, b"tenure-session")
    return Principal(
        role=role,
        user=user,
        agent=agent if agent is not None else named,
        session=session,
        address=source.address,
        projects=projects,
        is_proven=agent is not None,
        key=key,
        capabilities=capabilities,
        maker=maker,
        credential=credential,
        tenant=tenant,
    )


def _named(source: RequestSource, header: bytes) -> str | None:
    text = source.header(header)
    if not text:
        return None
    what = header.decode().title()
    if header == b"tenure-user":
        return inputs.check_text(unquote(text), what, 255)  # headers are ASCII, names of people are not
    return ids.check_name(text, what)
