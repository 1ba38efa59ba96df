"""Webhooks: events of a project sent to a URL, signed."""

from __future__ import annotations

from typing import Any, ClassVar

from tenure.core.commands.command import PROJECT, Command, Declaration

WEBHOOK = PROJECT + "/webhooks/{webhook}"


class SetWebhook(Command, frozen=True, kw_only=True, tag="set_webhook"):
    """Create or replace a webhook. Its secret is shown once, when it is created."""

    declaration: ClassVar = Declaration("webhooks", "admin", "PUT", WEBHOOK)

    webhook: str
    url: str
    kinds: tuple[str, ...] = ("task.status_changed",)
    where: dict[str, Any] = {}
    secret: str | None = None  # `whsec_…`; None: a new one is made


class PauseWebhook(Command, frozen=True, kw_only=True, tag="pause_webhook"):
    """Send nothing more until it is resumed; its deliveries are kept."""

    declaration: ClassVar = Declaration("webhooks", "admin", "POST", WEBHOOK + "/pause")

    webhook: str
    reason: str = ""


class ResumeWebhook(Command, frozen=True, kw_only=True, tag="resume_webhook"):
    """Enable it again; everything parked is sent at once."""

    declaration: ClassVar = Declaration("webhooks", "admin", "POST", WEBHOOK + "/resume")

    webhook: str


class RemoveWebhook(Command, frozen=True, kw_only=True, tag="remove_webhook"):
    """Remove a webhook with its deliveries."""

    declaration: ClassVar = Declaration("webhooks", "admin", "POST", WEBHOOK + "/remove")

    webhook: str


class RotateWebhook(Command, frozen=True, kw_only=True, tag="rotate_webhook"):
    """Give it a new secret; for `grace` seconds every delivery is signed with both."""

    declaration: ClassVar = Declaration("webhooks", "admin", "POST", WEBHOOK + "/rotate")

    webhook: str
    grace: float = 24 * 3600.0
    secret: str | None = None


class TestWebhook(Command, frozen=True, kw_only=True, tag="test_webhook"):
    """Send a message of the kind `webhook.test`, in order with the others."""

    declaration: ClassVar = Declaration("webhooks", "admin", "POST", WEBHOOK + "/test")

    webhook: str


class ReplayWebhook(Command, frozen=True, kw_only=True, tag="replay_webhook"):
    """Send deliveries again with the same message ids: one, those that failed, or all events since an instant."""

    declaration: ClassVar = Declaration("webhooks", "admin", "POST", WEBHOOK + "/replay")

    webhook: str
    message: str | None = None
    since: int | None = None
