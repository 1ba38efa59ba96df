"""The reference page of the Python SDK: every method with its arguments and its first sentence."""

from __future__ import annotations

import inspect
from typing import Any

from tenure import AsyncClient, Client, Context, Page, TaskFunction, Worker
from tenure.client import refusals, results
from tenure.client.handles import Ended, Handle
from tenure.client.messaging import Messaging
from tenure.client.operator_verbs import OperatorVerbs
from tenure.client.pools import Pools
from tenure.client.queries import Queries
from tenure.client.sources import Sources
from tenure.client.verbs import Verbs
from tenure.client.worker.context import TaskContext
from tests.docs.tables import table

HEAD = """# The Python SDK

`tenure.Client` and `tenure.AsyncClient` have the same methods, on a store of this machine and over a server: the URL
decides. Verbs return typed answers, queries typed dictionaries (their types are in `tenure.core.views`); instants in
them are microseconds, `tenure.as_datetime` turns one into a datetime. Failures are raised as one of the
[errors](errors.md). Fields of verbs are those of the [commands](commands.md). A duration is a
number of seconds, a timedelta or a text such as `2h`; an instant is a datetime with a zone, an RFC 3339 text or
microseconds. [Your first queue](../tutorial/first-queue.md) shows it, and how to
[write a worker](../how-to/write-a-worker.md).
"""


def page() -> str:
    own = ("do", "query", "claim_or_wait", "batch", "preview", "handle", "mark", "wait_for_news", "now", "close")
    of_worker = ("task", "command", "run", "arun", "stop", "use", "close")
    upkeep = ("sweep", "verify", "backup", "archive_finished", "could_archive", "new_epoch")
    return "\n".join(
        [
            HEAD,
            _section("Client", _signed(Client), Client),
            _listed(Client, own),
            "## Verbs\n", _listed(Verbs, _names(Verbs, Queries)),
            "## Operators and the team\n", _listed(OperatorVerbs, _names(OperatorVerbs)),
            "## Pools\n", _listed(Pools, _names(Pools)),
            "## Mail, facts, webhooks and relays\n", _listed(Messaging, _names(Messaging)),
            "## Schedules, triggers and the watch\n", _listed(Sources, _names(Sources)),
            "## Queries\n", _listed(Queries, _names(Queries)), _section("Page", "", Page),
            "## Only on a store\n\nOver a server these raise `STORE_ONLY`: run them on the server's host.\n",
            _listed(Client, upkeep),
            _section("AsyncClient", _signed(AsyncClient), AsyncClient),
            _section("Worker", _signed(Worker), Worker), _listed(Worker, of_worker),
            _section("TaskFunction", "", TaskFunction), _listed(TaskFunction, _names(TaskFunction)),
            _section("Handle", "", Handle), _listed(Handle, _names(Handle)),
            _section("Ended", "", Ended), _listed(Ended, ("check",)),
            "## Answers\n\nEach is an [Outcome](outcomes.md) with `check()`, which raises a refusal as an error.\n",
            table(("type", ""), [(f"`{kind.__name__}`", _first(kind)) for kind in _kinds(results, results.Result)]),
            "## Refusals as errors\n",
            table(("error", ""), [(f"`{kind.__name__}`", _first(kind)) for kind in _kinds(refusals, refusals.Refused)]),
            _section("Context", "", Context), _listed(TaskContext, _names(TaskContext)),
        ]
    )  # fmt: skip


def _kinds(module: Any, base: type) -> list[type]:
    return [one for one in vars(module).values() if isinstance(one, type) and issubclass(one, base)]


def _first(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n\n")[0].replace("\n", " ")


def _section(name: str, signature: str, kind: type) -> str:
    told = inspect.getdoc(kind) or ""
    return f"## {name}\n" + (f"\n```python\n{signature}\n```\n" if signature else "") + (f"\n{told}\n" if told else "")


def _signed(kind: type) -> str:
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    hidden = {"clock", "random", "monotonic", "pause", "tables"}  # for tests and for our own interfaces
    shown = [str(one).replace("'", "") for one in parameters if one.name not in hidden]
    return f"tenure.{kind.__name__}(\n    {', '.join(shown)}\n)"


def _names(kind: type, without: type | None = None) -> list[str]:
    names = [n for n, value in vars(kind).items() if not n.startswith("_") and inspect.isfunction(value)]
    return sorted(n for n in names if without is None or n not in vars(without))


def _listed(kind: type, names: Any) -> str:
    rows = []
    for name in names:
        function = inspect.getattr_static(kind, name)
        arguments = [_argument(one) for one in inspect.signature(function).parameters.values() if one.name != "self"]
        text = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
        rows.append((f"`{name}({', '.join(arguments)})`", text))
    return table(("method", ""), rows)


def _argument(one: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(one.kind, "")
    default = "" if one.default is inspect.Parameter.empty else f"={one.default!r}"
    return f"{stars}{one.name}{default}"
