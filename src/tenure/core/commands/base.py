"""What every command has, and on whose behalf one runs."""

from __future__ import annotations

import msgspec


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

    @property
    def name(self) -> str:
        return f"agent:{self.agent or ''}" if self.role == "agent" else f"human:{self.user or ''}"


OWNER = Principal()


class Command(msgspec.Struct, frozen=True, gc=False, kw_only=True, tag_field="command", tag=str.lower):
    """`project` says where; `request_id` makes a repeat harmless."""

    project: str
    request_id: str | None = None
    trace_id: str | None = None
