"""Opens the artifacts of a URL: a path or `file:///path`, `s3://bucket/prefix`, `memory://`.

Third parties add a scheme with an entry point in the group `tenure.artifacts`: a callable (url, part=…) → Artifacts.
The group is read only for a scheme that is not listed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenure.artifacts.port import part_of
from tenure.core.errors import InvalidInput

if TYPE_CHECKING:
    from tenure.artifacts.port import Artifacts

GROUP = "tenure.artifacts"


def open_artifacts(url: str, *, tenant: str = "local", project: str | None = None) -> Artifacts:
    """The artifacts of one tenant, or project; others are not visible, and each keeps its copy of equal contents."""
    scheme, colon, rest = url.partition("://")
    part = part_of(tenant) if project is None else part_of(tenant, project)
    if not colon or scheme == "file":
        return _local(rest if colon else url, part, is_url=bool(colon))
    if scheme == "memory":
        from tenure.artifacts.memory import MemoryArtifacts, shared

        return shared(url, part) if rest else MemoryArtifacts(url)
    if scheme == "s3":
        return _s3(url, part)
    return _of_third_party(scheme, url, part)


def _local(path: str, part: str, *, is_url: bool) -> Artifacts:
    from pathlib import Path
    from urllib.parse import unquote

    from tenure.artifacts.local import LocalArtifacts

    if is_url:
        path = unquote(path)
    if not path or (is_url and not path.startswith("/")):
        raise InvalidInput("artifacts: a folder's URL needs an absolute path, as in file:///srv/project/artifacts")
    return LocalArtifacts(Path(path) / part)


def _s3(url: str, part: str) -> Artifacts:
    try:
        from tenure.artifacts.s3 import S3Artifacts
    except ImportError as error:
        raise InvalidInput(
            f"artifacts in S3 need obstore, which is not installed ({error})", "Install tenure[s3]."
        ) from None
    return S3Artifacts(url, part=part)


def _of_third_party(scheme: str, url: str, part: str) -> Artifacts:
    from importlib.metadata import entry_points

    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if scheme not in known:
        names = ", ".join(sorted({"file", "memory", "s3", *known}))
        raise InvalidInput(f"no artifacts have the scheme {scheme!r}", f"There are: {names}.")
    artifacts: Artifacts = known[scheme].load()(url, part=part)
    return artifacts
