"""The row of a sink: how far its relay has come in the log of the whole store."""

from __future__ import annotations

from tenure.core.row import Row

WEEK = 7 * 24 * 3600 * 1_000_000


class Sink(Row, frozen=True, kw_only=True):
    """A reader of the log of all projects; its project is "", its id its name.

    It holds the archive back, so that no event is dropped before it was sent, until it is more than `max_lag` behind:
    then it is cut off, with an event. A sink that returns after that gets `sink.gap` first.
    """

    sequence: int  # every event up to it is sent, or is not for this sink
    url: str = ""  # without its password
    projects: tuple[str, ...] = ()  # it reads; none: all of them
    max_lag: int = WEEK
    identity: str | None = None  # of the sink when it was last sent to: another one has forgotten everything
    paused_at: int | None = None
    paused_by: str | None = None
    cut_off_at: int | None = None
    sent: int = 0  # messages
    sent_at: int | None = None
    error: str | None = None  # of the last attempt; None once one succeeded
    error_at: int | None = None
    created_at: int

    def reads(self, project: str) -> bool:
        return not self.projects or not project or project in self.projects

    def holds_back(self, project: str) -> bool:
        """Whether events of the project must be kept for it."""
        return self.cut_off_at is None and self.reads(project)
