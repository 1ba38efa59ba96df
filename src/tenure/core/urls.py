"""URLs that may name several hosts, as those of clusters do."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

_HOSTS = re.compile(r"(?<=://)[^/?#]*")


def split_url(url: str) -> SplitResult:
    """As `urlsplit`, which checks brackets of IPv6 addresses as if there were one host. Raises ValueError.

    The hosts are left to the caller, who splits `netloc` at its commas.
    """
    found = _HOSTS.search(url)
    if found is None or "," not in found[0]:
        return urlsplit(url)
    return urlsplit(_HOSTS.sub("several", url, count=1))._replace(netloc=found[0])
