"""The first server of a URL that answers, and is what the URL wants."""

from __future__ import annotations

import os
import random
import select
from collections.abc import Callable
from typing import Any

import psycopg
import psycopg.conninfo
from psycopg import pq

from tenure.stores.sql import hosts
from tenure.stores.sql.hosts import Place

_CONNECT = 10.0  # seconds, unless `connect_timeout` says otherwise
_PORT = 5432
_UNNAMED = Place("", 0)  # libpq finds it


def reached(conninfo: str, monotonic: Callable[[], float]) -> tuple[pq.abc.PGconn, Place | None]:
    """A connection to the first place that is as wanted, and which that is.

    Each address of each host gets `connect_timeout` seconds. libpq has that only in its call that blocks: driven by
    polls it neither has a deadline nor goes on to the next host. The wait can be interrupted, and blocks no thread.
    """
    silent = hosts.OF_THIS_PROCESS
    settings = psycopg.conninfo.conninfo_to_dict(conninfo)
    patience = max(1.0, float(settings.get("connect_timeout") or _CONNECT))
    reasons: list[str] = []
    for wanted in _sessions(settings):
        for place in silent.last(_places(settings), monotonic()):
            began = monotonic()
            try:
                wire = _connected(_only(settings, wanted, place), began + patience, monotonic)
            except psycopg.Error as error:
                if monotonic() - began >= hosts.SLOW:
                    silent.note(place, monotonic())
                reasons.append(str(error).strip())
            else:
                silent.forget(place)
                return wire, place
    raise psycopg.OperationalError("; ".join(dict.fromkeys(reasons)))


def _sessions(settings: dict[str, Any]) -> list[str | None]:
    """The kinds of server to look for, in turn: libpq cannot prefer one where it knows of one host only."""
    wanted = settings.get("target_session_attrs")
    return ["standby", "any"] if wanted == "prefer-standby" else [wanted]


def _places(settings: dict[str, Any]) -> list[Place]:
    """One place without a host where a file or libpq's own default names it, or the lists do not fit together."""
    if "service" in settings or "PGSERVICE" in os.environ:
        return [_UNNAMED]
    names, addresses, ports = (
        str(settings.get(name) or os.environ.get(variable) or "").split(",")
        for name, variable in (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"), ("port", "PGPORT"))
    )
    count = max(len(names), len(addresses))
    if any(len(given) not in (1, count) for given in (names, ports)) or len(addresses) not in (1, count):
        return [_UNNAMED]
    found: list[Place] = []
    for n in range(count):
        port = (ports[n] if len(ports) > 1 else ports[0]) or str(_PORT)
        name, address = (given[n] if len(given) > 1 else given[0] for given in (names, addresses))
        if not port.isdecimal() or (count > 1 and len(names) == 1 and addresses == [""]):
            return [_UNNAMED]
        found += [Place(name, int(port), address)] if address else hosts.places_of(name, int(port))
    if settings.get("load_balance_hosts") == "random":
        random.shuffle(found)
    return found


def _only(settings: dict[str, Any], wanted: str | None, place: Place) -> str:
    if place == _UNNAMED:
        return psycopg.conninfo.make_conninfo(**settings)
    own = {"host": place.host or None, "hostaddr": place.address, "port": place.port, "target_session_attrs": wanted}
    return psycopg.conninfo.make_conninfo(**{**settings, **own, "load_balance_hosts": None})


def _connected(conninfo: str, until: float, monotonic: Callable[[], float]) -> pq.abc.PGconn:
    """Without psycopg's connection around it, which warns about every one that was not closed."""
    wire = pq.PGconn.connect_start(conninfo.encode())
    while True:
        if wire.status == pq.ConnStatus.BAD:
            raise psycopg.OperationalError(wire.get_error_message())
        status = wire.connect_poll()
        if status == pq.PollingStatus.OK:
            return wire
        if status == pq.PollingStatus.FAILED:
            raise psycopg.OperationalError(wire.get_error_message())
        wanted = select.POLLIN if status == pq.PollingStatus.READING else select.POLLOUT
        waiting = select.poll()
        waiting.register(wire.socket, wanted)
        if not waiting.poll(max(0.0, until - monotonic()) * 1000):
            at = f"{wire.host.decode()}:{wire.port.decode()}"
            wire.finish()
            raise psycopg.OperationalError(f"{at}: no answer within the connect_timeout")
