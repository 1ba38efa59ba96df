"""`Client()` without a URL: the store of the working folder, found and trusted as by the command line."""

from __future__ import annotations

import os
from typing import NamedTuple

from tenure.config import artifacts_of, find_home, read_settings


class Found(NamedTuple):
    url: str
    project: str
    key: str | None
    artifacts: str | None


def find(project: str | None, key: str | None, artifacts: str | None) -> Found:
    """The store that the settings name; NoStore where there is none, Untrusted where a cloned file names it."""
    here = os.getcwd()  # noqa: PTH109 - as the command line reads it
    settings = read_settings(here, os.environ, {"project": project, "key": key, "artifacts": artifacts})
    home = find_home(here, settings)
    return Found(home.url, str(settings["project"].value), settings["key"].value, artifacts_of(settings, home))
