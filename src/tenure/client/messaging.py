"""The verbs and queries of mail, facts, webhooks and relays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tenure.client.results import Changed, Mail
from tenure.client.sources import Sources
from tenure.client.times import instant_of
from tenure.core import commands as c
from tenure.core import queries as q
from tenure.core.query import Page

if TYPE_CHECKING:
    from tenure.client.times import Duration, Instant
    from tenure.core.views import DeliveryView, RelayView, WebhookView


class Messaging(Sources):
    # --- facts ---

    def emit(self, name: str, data: Any = None) -> Changed:
        """Append a fact to the log, for sinks and triggers; `data` is JSON. It is never read as state."""
        return self._do(Changed, c.Emit, name=name, data=data, agent=self.principal.agent)

    # --- mail ---

    def send(
        self,
        text: str,
        to: str = "@all",
        *,
        type: str = "chat",
        reply_to: str | None = None,
        action: str | None = None,
        expires: Duration | None = None,
    ) -> Mail:
        """Send mail. With an `action` it is a command for programs, void after `expires` seconds."""
        fields: dict[str, Any] = {"type": type, "reply_to": reply_to, "action": action, "expires": expires}
        return self._do(Mail, c.Send, sender=self.agent, text=text, to=to, **fields)

    def read(self, messages: Iterable[str] | None = None) -> Mail:
        """Return this agent's unread mail and mark it as read."""
        return self._do(Mail, c.Read, agent=self.agent, messages=None if messages is None else tuple(messages))

    # --- webhooks ---

    def set_webhook(
        self,
        name: str,
        url: str,
        *,
        kinds: Iterable[str] = ("task.status_changed",),
        where: Mapping[str, Any] | None = None,
        secret: str | None = None,
    ) -> Changed:
        """Create or replace a webhook. The outcome that creates it is the only one that has its secret."""
        return self._do(
            Changed, c.SetWebhook, webhook=name, url=url, kinds=tuple(kinds), where=dict(where or {}), secret=secret
        )

    def pause_webhook(self, name: str, reason: str = "") -> Changed:
        """Send nothing more to the webhook; its deliveries wait."""
        return self._do(Changed, c.PauseWebhook, webhook=name, reason=reason)

    def resume_webhook(self, name: str) -> Changed:
        """Continue with the deliveries that wait."""
        return self._do(Changed, c.ResumeWebhook, webhook=name)

    def remove_webhook(self, name: str) -> Changed:
        """Remove a webhook and its delivery log."""
        return self._do(Changed, c.RemoveWebhook, webhook=name)

    def rotate_webhook(self, name: str, secret: str | None = None, *, grace: Duration = 24 * 3600.0) -> Changed:
        """Give it a new secret; for `grace` seconds every delivery is signed with both."""
        return self._do(Changed, c.RotateWebhook, webhook=name, secret=secret, grace=grace)

    def test_webhook(self, name: str) -> Changed:
        """Send a message of the kind `webhook.test`, in order with the others."""
        return self._do(Changed, c.TestWebhook, webhook=name)

    def replay_webhook(self, name: str, message: str | None = None, *, since: Instant | None = None) -> Changed:
        """Send deliveries again with the same ids: one, those that failed, or all events since an instant."""
        return self._do(Changed, c.ReplayWebhook, webhook=name, message=message, since=since)

    def webhooks(self) -> list[WebhookView]:
        """The webhooks, by name, without their secrets."""
        return self._ask(q.Webhooks(project=self.project))

    def webhook(self, name: str) -> WebhookView:
        """One webhook, without its secret."""
        return self._ask(q.ShowWebhook(project=self.project, webhook=name))

    def deliveries(self, name: str, *, state: str | None = None, limit: int = 100) -> Page[DeliveryView]:
        """The delivery log of a webhook, the newest first; parked deliveries are in it too."""
        return self._ask(q.Deliveries(project=self.project, webhook=name, state=state, limit=limit))

    # --- relays: of the whole store ---

    def relays(self) -> list[RelayView]:
        """The sinks with their places in the log, by name."""
        return self._ask(q.Relays())

    def pause_relay(self, sink: str) -> Changed:
        """Send nothing more to the sink; events are kept for it up to its max_lag."""
        return self._as(Changed, self.do(c.PauseRelay(sink=sink)))

    def resume_relay(self, sink: str) -> Changed:
        """Continue where the relay was paused."""
        return self._as(Changed, self.do(c.ResumeRelay(sink=sink)))

    def rewind_relay(self, sink: str, to: int | None = None, *, since: Instant | None = None) -> Changed:
        """Send events again: those after a sequence, or since an instant. Consumers see the same message ids."""
        at = None if since is None else instant_of(since, "since")
        return self._as(Changed, self.do(c.RewindRelay(sink=sink, to=to, since=at)))

    def remove_relay(self, sink: str) -> Changed:
        """Forget the sink's place in the log, so that it no longer holds the archive back."""
        return self._as(Changed, self.do(c.RemoveRelay(sink=sink)))
