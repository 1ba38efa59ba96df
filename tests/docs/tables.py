"""Markdown for the reference pages."""

from __future__ import annotations


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines) + "\n"


def ticked(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)
