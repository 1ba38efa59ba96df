"""What every kind of row has; `records.py` has the kinds."""

from __future__ import annotations

import msgspec


class Row(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A row is identified by (tenant, project, id); the tenant is the transaction's."""

    project: str
    id: str
