"""Deliveries to webhooks. Only the signature authorises one, and it is verified in the transaction that applies it.

Unknown names and wrong signatures get the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.core import commands, signatures
from tenure.core import triggers as rule
from tenure.core.decoders import check_json
from tenure.core.errors import InvalidInput, NotSignedIn, TooLarge
from tenure.core.outcomes import Outcome
from tenure.core.records import Project, Trigger
from tenure.core.signatures import SignedDelivery
from tenure.engine.runtime.rows import tasks_by_idempotency
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.secrets.trigger_secrets import keys_at
from tenure.engine.sources.template_tasks import Cause
from tenure.engine.sources.trigger_duty import fire, hold_back

if TYPE_CHECKING:
    from tenure.engine.runtime.engine import Engine
    from tenure.stores.port import Transaction


def deliver(work: UnitOfWork, cmd: commands.Deliver) -> Outcome:
    """Create the tasks of the delivery, once per delivery id."""
    if len(cmd.body) > signatures.LARGEST_BODY:
        raise TooLarge(f"the body may have at most {signatures.LARGEST_BODY} bytes (got {len(cmd.body)})")
    project, row = work.get(Project, cmd.project, cmd.project), work.get(Trigger, cmd.project, cmd.trigger[:255])
    delivery = _verified(work, row, cmd.headers, cmd.body)
    if project is None or row is None or delivery is None:
        raise not_genuine()
    if not row.enabled:
        return Outcome(outcome="DENIED_PAUSED", message="the trigger is paused")
    values = {"body": _decoded(cmd.body), "delivery": {"id": delivery.id, "event": delivery.event}}
    key = f"webhook:{row.id}:{delivery.id}"
    if tasks_by_idempotency(work, project.id, key):
        return Outcome(outcome="EXISTS", again=True, message="this delivery was already accepted")
    if not rule.fits(row.filter, values):
        return Outcome(outcome="OK", message="the filter does not match: nothing was created")
    if rule.is_spent(row, work.now):
        hold_back(work, row, f"fired {row.most} times in this hour")
        left = rule.left_of_hour(row, work.now)
        message = f"the trigger accepts at most {row.most} deliveries per hour"
        return Outcome(outcome="DENIED_LIMIT", retry_at=work.now + left, retry_in=left / 1e6, message=message)
    metadata = {"trigger": {"name": row.id, "delivery": delivery.id, "depth": 1}}
    cause = Cause(key, f"webhook:{row.id}", work.now, values, metadata)
    if isinstance(fire(work, project, row, cause, delivery=delivery.id), str):
        return Outcome(outcome="TEMPLATE_FAILED", message="the tasks could not be created; the error is in the log")
    return Outcome(outcome="CREATED", message="taken")


def is_genuine(engine: Engine, project: str, trigger: str, headers: Mapping[str, str], body: bytes) -> bool:
    """The same check in a read: a sender without the secret costs no write transaction."""

    def ask(tx: Transaction) -> bool:
        found = tx.load(Trigger, ((project, trigger),)) if len(trigger) <= 255 and len(project) <= 255 else []
        work = UnitOfWork(tx, engine.random, engine.context)
        return _verified(work, found[0] if found else None, headers, body) is not None

    return engine.read(ask)


def not_genuine() -> NotSignedIn:
    return NotSignedIn("unknown webhook or wrong signature", "use the secret that was last shown")


def _verified(work: UnitOfWork, row: Trigger | None, headers: Mapping[str, str], body: bytes) -> SignedDelivery | None:
    now = work.now
    if row is None or row.signature is None:
        # Takes as long as for a known trigger, so that timing does not reveal names.
        signatures.verified(signatures.GITHUB, (bytes(signatures.SECRET_BYTES),), headers, body, now)
        return None
    return signatures.verified(row.signature, keys_at(work, row, now), headers, body, now)


def _decoded(body: bytes) -> Any:
    check_json(body, "the body")
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise InvalidInput("the body is not valid JSON", "set the sender's content type to application/json") from None


HANDLERS: Handlers = {commands.Deliver: deliver}
