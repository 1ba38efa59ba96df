"""Which function decides which command. A theme is imported with its first command, so a start loads only its own."""

from __future__ import annotations

from collections.abc import Callable

from tenure.core import commands as c
from tenure.core.outcomes import Outcome
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork

_KNOWN = frozenset(c.ALL)
_LOADED: Handlers = {}


def is_known(kind: type[c.Command]) -> bool:
    return kind in _KNOWN


def handler_of(kind: type[c.Command]) -> Callable[[UnitOfWork, c.Command], Outcome]:
    """The function that decides commands of this kind."""
    if kind not in _LOADED:
        _LOADED.update(handlers_of(kind.declaration.theme))
    return _LOADED[kind]


def handlers_of(theme: str) -> Handlers:  # noqa: PLR0912, PLR0915  # one case a theme
    match theme:
        case "claim":
            from tenure.engine.verbs.claim import HANDLERS
        case "holder_verbs":
            from tenure.engine.verbs.holder_verbs import HANDLERS
        case "submit":
            from tenure.engine.verbs.submit import HANDLERS
        case "validation":
            from tenure.engine.checks.validation_verbs import HANDLERS
        case "usage":
            from tenure.engine.verbs.usage import HANDLERS
        case "land":
            from tenure.engine.verbs.land import HANDLERS
        case "artifacts":
            from tenure.engine.artifacts.artifact_verbs import HANDLERS
        case "graph":
            from tenure.engine.verbs.graph import HANDLERS
        case "operator_verbs":
            from tenure.engine.verbs.operator_verbs import HANDLERS
        case "edit":
            from tenure.engine.verbs.edit import HANDLERS
        case "projects":
            from tenure.engine.verbs.projects import HANDLERS
        case "agents":
            from tenure.engine.verbs.agents import HANDLERS
        case "plan":
            from tenure.engine.verbs.plan import HANDLERS
        case "undo":
            from tenure.engine.verbs.undo import HANDLERS
        case "mail":
            from tenure.engine.verbs.mail import HANDLERS
        case "reserve":
            from tenure.engine.verbs.reserve import HANDLERS
        case "lead":
            from tenure.engine.verbs.lead import HANDLERS
        case "schedules":
            from tenure.engine.sources.schedules import HANDLERS
        case "triggers":
            from tenure.engine.sources.triggers import HANDLERS
        case "deliveries":
            from tenure.engine.sources.deliveries import HANDLERS
        case "failure_watch":
            from tenure.engine.sources.failure_watch import HANDLERS
        case "budgets":
            from tenure.engine.budgets.budget_verbs import HANDLERS
        case "facts":
            from tenure.engine.verbs.facts import HANDLERS
        case "webhooks":
            from tenure.engine.relay.webhook_verbs import HANDLERS
        case "relays":
            from tenure.engine.relay.relay_verbs import HANDLERS
        case "api_keys":
            from tenure.engine.verbs.api_keys import HANDLERS
        case _:
            raise AssertionError(theme)
    return HANDLERS
