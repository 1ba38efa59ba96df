"""Is a server that cannot be used away for a moment, or is its URL wrong?"""

from __future__ import annotations

import socket

import psycopg
from psycopg import pq

from tenure.stores.postgres import address

_FULL = ("too many clients", "remaining connection slots", "too many connections")


def may_come_back(url: str, why: str) -> bool:
    """Whether it is worth trying again. `why` is what opening it failed with.

    Not where a server answers and refuses: a wrong password, role or database stays wrong. Not where no such host is
    known.
    """
    conninfo = address.parse(url).conninfo
    if any(text in why for text in _FULL):
        return True
    if not _is_known(conninfo):
        return False
    return pq.PGconn.ping(conninfo.encode()) in (pq.Ping.REJECT, pq.Ping.NO_RESPONSE)


def _is_known(conninfo: str) -> bool:
    hosts = str(psycopg.conninfo.conninfo_to_dict(conninfo).get("host") or "").split(",")
    for host in hosts:
        if not host or host.startswith(("/", "@")):
            return True
        try:
            socket.getaddrinfo(host, None)
        except socket.gaierror as error:
            if error.errno == socket.EAI_NONAME:
                continue
        return True
    return False
