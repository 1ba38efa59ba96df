"""Who is measured, on which store, with which setting, and with how many jobs."""

from __future__ import annotations

from typing import NamedTuple


class Peer(NamedTuple):
    name: str
    module: str  # in bench/peers/tools
    store: str  # PostgreSQL, Valkey, SQLite
    jobs: int  # drained in one full round: about one to two seconds of work
    setting: str = ""
    fenced: str = "no"  # yes, no or – ; as `./x bench zombies` found it
    package: str = ""  # the package whose version is shown
    is_ours: bool = False


RAW = "raw limit"

ROSTER: tuple[Peer, ...] = (
    Peer(RAW, "raw_limit", "PostgreSQL", 60_000, fenced="–", package="psycopg"),
    Peer("pgmq", "pgmq", "PostgreSQL", 40_000, package="pgmq"),
    Peer("PgQueuer, batch 200", "pgqueuer", "PostgreSQL", 20_000, "200", package="pgqueuer"),
    Peer("PgQueuer", "pgqueuer", "PostgreSQL", 8_000, package="pgqueuer"),
    Peer("SKIP LOCKED loop", "skip_locked", "PostgreSQL", 3_000, package="psycopg"),
    Peer("Absurd", "absurd", "PostgreSQL", 1_500, "20", fenced="yes", package="absurd-sdk"),
    Peer("Procrastinate", "procrastinate", "PostgreSQL", 1_000, package="procrastinate"),
    Peer("DBOS", "dbos", "PostgreSQL", 1_000, "0.1", fenced="yes", package="dbos"),
    Peer("dramatiq", "dramatiq", "Valkey", 6_000, package="dramatiq"),
    Peer("huey", "huey", "Valkey", 4_000, package="huey"),
    Peer("Celery", "celery", "Valkey", 1_500, package="celery"),
    Peer("huey", "huey", "SQLite", 3_000, "sqlite", package="huey"),
    Peer("tenure", "tenure", "SQLite", 6_000, "sqlite", fenced="yes", is_ours=True),
    Peer("tenure", "tenure", "PostgreSQL", 6_000, "postgres", fenced="yes", is_ours=True),
)


def title(peer: Peer) -> str:
    return peer.name if peer.name == RAW else f"{peer.name} ({peer.store})"


def chosen(names: str | None) -> tuple[Peer, ...]:
    """Those whose title contains one of the comma-separated words, and always the raw limit; all unless given."""
    if not names:
        return ROSTER
    words = [word.strip().lower() for word in names.split(",")]
    return tuple(p for p in ROSTER if p.name == RAW or any(word in title(p).lower() for word in words))
