"""URLs with several hosts."""

from __future__ import annotations

import urllib.parse
from typing import Any

import pytest

from tenure.core.urls import split_url


@pytest.mark.parametrize(
    "url", ["a://u:p@h:1/d?x=1", "a://h1,h2:3/d#f", "a://[::1]:1", "a:///path", "no scheme", "", "a://h?x=1,2", "h/a,b"]
)
def test_a_url_is_split_as_by_the_standard_library(url: str) -> None:
    assert split_url(url) == urllib.parse.urlsplit(url)


@pytest.mark.parametrize("hosts", ["127.0.0.1,[::1]:7000", "u:p@a,b:3307,[::1]:3308", "[::1]:1,h"])
def test_an_address_in_brackets_may_follow_other_hosts(hosts: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which Python refuses since it checks that nothing is in front of a bracket."""
    real = urllib.parse.urlsplit

    def strict(url: str) -> Any:
        parts = real(url)
        if "[" in parts.netloc.rpartition("@")[2][1:]:
            raise ValueError("Invalid IPv6 URL")
        return parts

    monkeypatch.setattr("tenure.core.urls.urlsplit", strict)
    parts = split_url(f"valkey://{hosts}/0?space=s")
    assert (parts.scheme, parts.netloc, parts.path, parts.query) == ("valkey", hosts, "/0", "space=s")


def test_a_bracket_that_is_not_closed_is_refused() -> None:
    with pytest.raises(ValueError, match="IPv6"):
        split_url("a://[::1/x")
