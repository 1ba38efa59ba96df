"""Notices to a Slack-compatible webhook: Slack, Mattermost, Rocket.Chat, Discord's `/slack`."""

from __future__ import annotations

import msgspec

from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.notices import Summary
from tenure.core.target_urls import checked_url
from tenure.sinks.http_sender import HttpSender, SendFailed
from tenure.sinks.port import SinkUnavailable

LONGEST = limits.SLACK_TEXT
_BREAK = "\u200b"  # invisible: keeps `@channel` from calling everybody where a receiver reads it in plain text


class SlackChannel:
    """The URL is a secret: no error has more of it than its scheme and name."""

    def __init__(self, url: str, http: HttpSender, *, allow_http: bool = False) -> None:
        self._url, self._http = url, http
        self._shown = checked_url(url, allow_http=allow_http, what="the Slack webhook").shown

    def send(self, summary: Summary) -> None:
        body = msgspec.json.encode({"text": text_of(summary)})
        try:
            answer = self._http.post(self._url, {"Content-Type": "application/json", "User-Agent": "tenure"}, body)
        except (SendFailed, InvalidInput) as error:
            raise SinkUnavailable(str(error)) from error
        if not 200 <= answer.status < 300:
            raise SinkUnavailable(f"{self._shown} answered {answer.status}", "check the webhook's URL in its channel")

    def close(self) -> None:
        """The sender belongs to the caller."""


def text_of(summary: Summary) -> str:
    """The message: a strong line, then the notices. Nothing of a notice is markup or a mention."""
    lines = [f"*{quoted(summary.title)}*"]
    if summary.count > 1:
        lines += [f"• {quoted(line)}" for line in summary.lines]
    text = "\n".join(lines)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def quoted(text: str) -> str:
    """Slack's own escapes; and a mention in plain text is broken."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.replace("@", f"@{_BREAK}").replace("*", "∗").replace("`", "ˋ")
