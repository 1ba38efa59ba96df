"""Webhooks: setting, testing, replaying and reading them. `webhook_relay.py` delivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenure.core import commands, inputs, limits, signatures
from tenure.core import queries as q
from tenure.core import triggers as trigger_rule
from tenure.core import webhook_delivery as rule
from tenure.core.commands.command import digest_of
from tenure.core.errors import InvalidInput, LimitReached, NotFound
from tenure.core.events import Event
from tenure.core.filters import Range
from tenure.core.outcomes import Outcome
from tenure.core.records import STORE, Delivery, Sink, Webhook, replace
from tenure.core.safe_text import shell_word
from tenure.engine.archive.log_readers import end_of_log
from tenure.engine.relay.page import facts_of
from tenure.engine.runtime.context import Context
from tenure.engine.runtime.decision import is_repeat
from tenure.engine.runtime.seals import open_sealed, seal
from tenure.engine.runtime.unit_of_work import Handlers, Reads, UnitOfWork
from tenure.engine.sources.schedules import check_source_name
from tenure.sinks.envelope import messages_of
from tenure.sinks.webhook import body_of

if TYPE_CHECKING:
    from tenure.core.views import DeliveryView, WebhookView

READER = "webhooks"  # the sink's row: one reading of the log for all webhooks
TEST = "webhook.test"
HINT = "save the secret now: it is not shown again"


# --- commands -----------------------------------------------------------------------------------------------


def set_webhook(work: UnitOfWork, cmd: commands.SetWebhook) -> Outcome:
    name = check_source_name(cmd.webhook, "webhook")
    kinds = rule.check_kinds(cmd.kinds)
    where = trigger_rule.check_filter(cmd.where)
    _check_target(cmd.url, work.context)
    before = work.get(Webhook, cmd.project, name)
    if before is None and work.tally(Webhook, {"project": cmd.project}, rule.MOST) >= rule.MOST:
        raise LimitReached(f"{cmd.project} has {rule.MOST} webhooks, the maximum", "remove one first")
    row = before or Webhook(
        project=cmd.project,
        id=name,
        url="",
        kinds=(),
        filter={},
        since=end_of_log(work),
        created_by=work.principal.name,
        created_at=work.now,
        changed_at=work.now,
    )
    wanted = replace(row, url=cmd.url, kinds=kinds, filter=where)
    wanted, secret = _with_secret(work, cmd, before, wanted)
    if wanted == before:
        return _done(work, "UNCHANGED", wanted, secret=secret)
    listen(work)
    wanted = replace(wanted, changed_at=work.now)
    _record(work, "webhook.set", wanted)
    return _done(work, "UPDATED" if before else "CREATED", wanted, secret=secret)


def _check_target(url: str, context: Context) -> None:
    """Refuse what the text of the URL shows already; the addresses of a name are judged at each delivery."""
    from tenure.sinks.addresses import is_allowed, literal, networks_of  # few commands need them, and they cost 5 ms

    target = rule.check_url(url, allow_http=context.allow_http)
    address = literal(target.host)
    try:
        networks = networks_of(context.networks)
    except ValueError as error:
        raise InvalidInput(f"webhooks.networks: {error}", "as in 10.0.0.0/8, 192.168.1.0/24") from None
    if address is not None and not is_allowed(address, networks):
        raise InvalidInput(
            f"{target.shown} has the address {address}, which is not on the public internet",
            "the setting webhooks.networks allows private networks",
        )


def _with_secret(
    work: UnitOfWork, cmd: commands.SetWebhook, before: Webhook | None, row: Webhook
) -> tuple[Webhook, str | None]:
    """The webhook with its sealed key, and the secret to show: a new one, or that of the same request before."""
    if before is not None and is_repeat(work, before, cmd):
        return row, _shown(work, before)
    if before is not None and before.secret and cmd.secret is None:
        return row, None
    return _keyed(work, cmd, row)


def _keyed(work: UnitOfWork, cmd: commands.SetWebhook | commands.RotateWebhook, row: Webhook) -> tuple[Webhook, str]:
    form = signatures.STANDARD
    key = signatures.key_for(form, cmd.secret, work.random.token)
    digest = None if cmd.request_id is None else digest_of(cmd, work.principal.owner)
    sealed = seal(work, row.project, rule.owner_of(row.id), rule.SECRET_PATH, key)
    row = replace(row, secret=sealed, request_id=cmd.request_id, request_hash=digest)
    return row, signatures.spelled(form, key)


def rotate_webhook(work: UnitOfWork, cmd: commands.RotateWebhook) -> Outcome:
    row = named(work, cmd.project, cmd.webhook)
    grace = inputs.micros(cmd.grace, "grace", high=limits.WEBHOOK_GRACE)
    if is_repeat(work, row, cmd):
        return replace(_done(work, "UPDATED", row, secret=_shown(work, row)), again=True)
    before = row.secret if grace else b""
    row, secret = _keyed(work, cmd, row)
    row = replace(row, previous=before, previous_until=work.now + grace if grace else None, changed_at=work.now)
    _record(work, "webhook.rotated", row)
    return _done(work, "UPDATED", row, secret=secret)


def pause_webhook(work: UnitOfWork, cmd: commands.PauseWebhook) -> Outcome:
    row = named(work, cmd.project, cmd.webhook)
    if not row.enabled:
        return _done(work, "UNCHANGED", row)
    why = inputs.check_text(cmd.reason, "reason", 500) or "paused by a person"
    row = rule.paused(row, why, work.now, listen(work).sequence)
    _record(work, "webhook.paused", row)
    return _done(work, "UPDATED", row)


def resume_webhook(work: UnitOfWork, cmd: commands.ResumeWebhook) -> Outcome:
    row = named(work, cmd.project, cmd.webhook)
    if row.enabled and row.down_since is None:
        return _done(work, "UNCHANGED", row)
    message = ""
    if not rule.holds_back(row, work.now):
        message = "it was paused for so long that its events may be archived: it gets those from now on"
        row = replace(row, sequence=None, since=end_of_log(work))
    row = rule.resumed(row, work.now)
    _record(work, "webhook.resumed", row)
    return _done(work, "UPDATED", row, message)


def remove_webhook(work: UnitOfWork, cmd: commands.RemoveWebhook) -> Outcome:
    row = named(work, cmd.project, cmd.webhook)
    for delivery in deliveries_of(work, row):
        work.remove(delivery)
    work.record("webhook.removed", project=row.project, removed=[row], details={"webhook": row.id})
    return Outcome(outcome="UPDATED", command_id=work.command_id, message=f"webhook {row.id} is removed")


def test_webhook(work: UnitOfWork, cmd: commands.TestWebhook) -> Outcome:
    """Append an event that only this webhook gets."""
    row = named(work, cmd.project, cmd.webhook)
    listen(work)
    work.record(TEST, project=row.project, details={"webhook": row.id})
    return _done(
        work, "OK", row, f"a message of the kind {TEST} is on its way; see `tenure webhook log {shell_word(row.id)}`"
    )


def replay_webhook(work: UnitOfWork, cmd: commands.ReplayWebhook) -> Outcome:
    """Nothing is sent here: the chosen deliveries wait again, and the relay sends it with the same message ids."""
    row = named(work, cmd.project, cmd.webhook)
    if cmd.since is not None:
        if cmd.message is not None:
            raise InvalidInput("give a message or a time to replay from, not both")
        first = work.tx.events({"project": row.project, "time": Range(low=cmd.since)}, limit=1)
        place = first[0].sequence - 1 if first else end_of_log(work)
        row = replace(row, sequence=place, since=min(row.since, place), changed_at=work.now)
        _record(work, "webhook.replayed", row)
        return _done(work, "UPDATED", row, f"events after sequence {place} are sent again")
    chosen = [
        one
        for one in deliveries_of(work, row)
        if (one.message == cmd.message if cmd.message is not None else one.state == rule.FAILED)
    ]
    if not chosen:
        what = f"delivery {cmd.message[:80]!r}" if cmd.message is not None else "failed delivery"
        raise NotFound(f"webhook {row.id} has no {what} in its log", f"see `tenure webhook log {shell_word(row.id)}`")
    for delivery in chosen:
        row, again = rule.replayed(row, delivery, delivery.body or _body_again(work, delivery), work.now)
        work.put(again)
    _record(work, "webhook.replayed", row)
    return _done(work, "UPDATED", row, f"{len(chosen)} sent again")


def _body_again(work: UnitOfWork, delivery: Delivery) -> bytes:
    """The message as it was sent, from the event in the log; a delivered message is not kept."""
    found = work.tx.events({"project": delivery.project}, after=delivery.sequence - 1, limit=1)
    if not found or found[0].id != delivery.event:
        raise NotFound(f"the event of {delivery.message} is archived, so it cannot be sent again")
    return body_for(work, delivery.kind, found[0])


# --- what they share ----------------------------------------------------------------------------------------


def listen(work: UnitOfWork) -> Sink:
    """The place of all webhooks in the log; the first one has it read from here on."""
    work.need_locks(STORE, lasting=False)
    new = Sink(project=STORE, id=READER, sequence=end_of_log(work), url="webhooks", created_at=work.now)
    return work.get(Sink, STORE, READER) or work.put(new)


def body_for(work: UnitOfWork, kind: str, event: Event) -> bytes:
    ((_, facts),) = facts_of(work.tx, work.context.tenant, [event])
    return body_of(kind, event, messages_of(event, facts)[0])


def deliveries_of(work: UnitOfWork, row: Webhook, **where: Any) -> list[Delivery]:
    return work.find(Delivery, {"project": row.project, "webhook": row.id, **where}, order="sequence")


def named(work: UnitOfWork, project: str, name: str) -> Webhook:
    row = work.get(Webhook, project, name) if len(name) <= inputs.LONGEST_NAME else None
    if row is None:
        known = [w.id for w in work.find(Webhook, {"project": project}, limit=rule.MOST)]
        raise NotFound(f"no webhook {name[:80]!r} in project {project}{inputs.suggestion(name, known)}")
    return row


def keys_of(work: UnitOfWork, row: Webhook) -> tuple[bytes, ...]:
    """The keys that sign a delivery now: the current one, and the one before during its grace period."""
    owner = rule.owner_of(row.id)
    stored = signatures.keys_at(row, work.now)
    return tuple(open_sealed(work, row.project, owner, rule.SECRET_PATH, one) for one in stored)


def _shown(work: UnitOfWork, row: Webhook) -> str:
    key = open_sealed(work, row.project, rule.owner_of(row.id), rule.SECRET_PATH, row.secret)
    return signatures.spelled(signatures.STANDARD, key)


def _record(work: UnitOfWork, kind: str, row: Webhook) -> None:
    work.record(kind, row, project=row.project, details={"webhook": row.id, "url": row.url})


def _done(work: UnitOfWork, outcome: str, row: Webhook, message: str = "", *, secret: str | None = None) -> Outcome:
    return Outcome(
        outcome=outcome,
        command_id=work.command_id if outcome != "UNCHANGED" else None,
        webhook=view(row),
        message=message,
        secret=secret,
        hint=HINT if secret is not None else None,
    )


# --- queries ------------------------------------------------------------------------------------------------


def webhooks(work: UnitOfWork, project: str) -> list[WebhookView]:
    return [view(row) for row in work.find(Webhook, {"project": project}, limit=rule.MOST)]


def webhook(work: UnitOfWork, project: str, name: str) -> WebhookView:
    return view(named(work, project, name))


def deliveries(work: UnitOfWork, project: str, name: str, *, state: str | None, limit: int) -> list[DeliveryView]:
    row = named(work, project, name)
    where = {} if state is None else {"state": inputs.check_choice(state, rule.STATES, "state")}
    found = work.find(Delivery, {"project": project, "webhook": row.id, **where}, order="-sequence", limit=limit)
    return [_delivery_view(one) for one in found]


def view(row: Webhook) -> WebhookView:
    state = "paused" if not row.enabled else "down" if row.down_since else "failing" if row.failing_since else "ok"
    return {
        "name": row.id, "url": row.url, "kinds": list(row.kinds), "filter": row.filter, "state": state,
        "enabled": row.enabled, "disabled_for": row.disabled_for, "disabled_at": row.disabled_at,
        "previous_until": row.previous_until, "parked": row.parked, "delivered": row.delivered, "failed": row.failed,
        "down_since": row.down_since, "success_at": row.success_at, "failure_at": row.failure_at,
        "status": row.status, "error": row.error, "created_by": row.created_by, "created_at": row.created_at,
        "changed_at": row.changed_at,
    }  # fmt: skip


def _delivery_view(one: Delivery) -> DeliveryView:
    return {
        "message": one.message, "event": one.event, "sequence": one.sequence, "kind": one.kind, "state": one.state,
        "at": one.at, "tries": one.tries, "tried_at": one.tried_at, "next_at": one.next_at, "status": one.status,
        "error": one.error, "duration": None if one.duration is None else one.duration / 1e6,
    }  # fmt: skip


HANDLERS: Handlers = {
    commands.SetWebhook: set_webhook,
    commands.PauseWebhook: pause_webhook,
    commands.ResumeWebhook: resume_webhook,
    commands.RemoveWebhook: remove_webhook,
    commands.RotateWebhook: rotate_webhook,
    commands.TestWebhook: test_webhook,
    commands.ReplayWebhook: replay_webhook,
}

READS: Reads = {q.Webhooks: webhooks, q.ShowWebhook: webhook, q.Deliveries: deliveries}
