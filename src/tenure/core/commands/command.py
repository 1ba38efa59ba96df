"""What every command has, and the principal it runs for."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tenure.core.declaration import Declaration


class Principal(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The principal of a command. The role decides what it may do; it never proves a holder."""

    role: str = "owner"
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    address: str | None = None
    projects: tuple[str, ...] = ()  # where it may read and write; empty: everywhere
    is_proven: bool = False  # its key or token proves the agent; else the name is its own claim
    key: str | None = None  # an API key's id, or a token's subject
    capabilities: tuple[str, ...] = ()  # of its key or token, beyond the role
    credential: str = ""  # the secret, session or token it showed: checked again during a stream

    @property
    def name(self) -> str:
        return f"agent:{self.agent or ''}" if self.role == "agent" else f"human:{self.user or ''}"

    @property
    def owner(self) -> str:
        """The key's owner: what the key proves, never a header. "" without a key."""
        if self.key is None:
            return ""
        return f"agent:{self.agent}" if self.is_proven else f"user:{self.user or ''}"


OWNER = Principal()


class Command(msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="command", tag=str.lower):
    """`project` is the scope; `request_id` makes a repeat harmless."""

    declaration: ClassVar[Declaration]

    project: str
    request_id: str | None = None
    trace_id: str | None = None
