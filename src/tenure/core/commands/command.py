"""What every command has, and on whose behalf one runs."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tenure.core.declaration import Declaration


class Principal(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """On whose behalf a command runs. The role decides what may be asked; it never proves a holder."""

    role: str = "owner"
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    address: str | None = None
    projects: tuple[str, ...] = ()  # where it may act and look; empty: everywhere
    is_proven: bool = False  # its key or token says which agent it is; else the name is what it calls itself
    key: str | None = None  # by which it signed in: an API key's id, or a token's subject
    capabilities: tuple[str, ...] = ()  # of its key or token, beyond the role
    credential: str = ""  # which secret, session or token it showed: asked again while an answer goes on

    @property
    def name(self) -> str:
        return f"agent:{self.agent or ''}" if self.role == "agent" else f"human:{self.user or ''}"

    @property
    def owner(self) -> str:
        """Whose key it is: what the key proves, never what a header says. "" without a key."""
        if self.key is None:
            return ""
        return f"agent:{self.agent}" if self.is_proven else f"user:{self.user or ''}"


OWNER = Principal()


class Command(msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="command", tag=str.lower):
    """`project` says where; `request_id` makes a repeat harmless."""

    declaration: ClassVar[Declaration]

    project: str
    request_id: str | None = None
    trace_id: str | None = None
