"""The contract of a channel for notices to people: Slack-compatible webhook, mail, command."""

from __future__ import annotations

from typing import Protocol

from tenure.core.notices import Summary


class NoticeChannel(Protocol):
    def send(self, summary: Summary) -> None:
        """Send one message; returns once the other side has taken it. Raises SinkUnavailable.

        The texts of a summary are data from agents and tasks: a channel shows them, and lets them do nothing.
        """

    def close(self) -> None: ...
