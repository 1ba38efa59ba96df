"""The verbs and queries of mail, facts, webhooks and relays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tenure.client.caller import Dicts, Names, One, Out
from tenure.client.sources import Sources
from tenure.core import commands as c
from tenure.core import queries as q


class Messaging(Sources[Out, One, Dicts, Names]):
    # --- facts ---

    def emit(self, name: str, data: Any = None) -> Out:
        """Append a fact to the log, for sinks and triggers; `data` is JSON. It is never read as state."""
        return self._do(c.Emit, name=name, data=data, agent=self.principal.agent)

    # --- mail ---

    def send(
        self,
        text: str,
        to: str = "@all",
        *,
        type: str = "chat",
        reply_to: str | None = None,
        action: str | None = None,
        expires: float | None = None,
    ) -> Out:
        """Send mail. With an `action` it is a command for programs, void after `expires` seconds."""
        fields: dict[str, Any] = {"type": type, "reply_to": reply_to, "action": action, "expires": expires}
        return self._do(c.Send, sender=self.agent, text=text, to=to, **fields)

    def read(self, messages: Iterable[str] | None = None) -> Out:
        """Return this agent's unread mail and mark it as read."""
        return self._do(c.Read, agent=self.agent, messages=None if messages is None else tuple(messages))

    # --- webhooks ---

    def set_webhook(
        self,
        name: str,
        url: str,
        *,
        kinds: Iterable[str] = ("task.status_changed",),
        where: Mapping[str, Any] | None = None,
        secret: str | None = None,
    ) -> Out:
        """Create or replace a webhook. The outcome that creates it is the only one that has its secret."""
        return self._do(c.SetWebhook, webhook=name, url=url, kinds=tuple(kinds), where=dict(where or {}), secret=secret)

    def pause_webhook(self, name: str, reason: str = "") -> Out:
        return self._do(c.PauseWebhook, webhook=name, reason=reason)

    def resume_webhook(self, name: str) -> Out:
        return self._do(c.ResumeWebhook, webhook=name)

    def remove_webhook(self, name: str) -> Out:
        return self._do(c.RemoveWebhook, webhook=name)

    def rotate_webhook(self, name: str, secret: str | None = None, *, grace: float = 24 * 3600.0) -> Out:
        """Give it a new secret; for `grace` seconds every delivery is signed with both."""
        return self._do(c.RotateWebhook, webhook=name, secret=secret, grace=grace)

    def test_webhook(self, name: str) -> Out:
        """Send a message of the kind `webhook.test`, in order with the others."""
        return self._do(c.TestWebhook, webhook=name)

    def replay_webhook(self, name: str, message: str | None = None, *, since: int | None = None) -> Out:
        """Send deliveries again with the same ids: one, those that failed, or all events since an instant."""
        return self._do(c.ReplayWebhook, webhook=name, message=message, since=since)

    def webhooks(self) -> Dicts:
        return self._dicts(q.Webhooks(project=self.project))

    def webhook(self, name: str) -> One:
        """One webhook, without its secret."""
        return self._one(q.ShowWebhook(project=self.project, webhook=name))

    def deliveries(self, name: str, *, state: str | None = None, limit: int = 100) -> Dicts:
        """The delivery log of a webhook, the newest first; parked deliveries are in it too."""
        return self._dicts(q.Deliveries(project=self.project, webhook=name, state=state, limit=limit))

    # --- relays: of the whole store ---

    def relays(self) -> Dicts:
        """The sinks with their places in the log, by name."""
        return self._dicts(q.Relays())

    def pause_relay(self, sink: str) -> Out:
        """Send nothing more to the sink; events are kept for it up to its max_lag."""
        return self.do(c.PauseRelay(sink=sink))

    def resume_relay(self, sink: str) -> Out:
        """Continue where the relay was paused."""
        return self.do(c.ResumeRelay(sink=sink))

    def rewind_relay(self, sink: str, to: int | None = None, *, since: int | None = None) -> Out:
        """Send events again: those after a sequence, or since an instant. Consumers see the same message ids."""
        return self.do(c.RewindRelay(sink=sink, to=to, since=since))

    def remove_relay(self, sink: str) -> Out:
        """Forget the sink's place in the log, so that it no longer holds the archive back."""
        return self.do(c.RemoveRelay(sink=sink))
