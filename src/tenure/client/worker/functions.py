"""The functions of a worker: which tasks they are for, their arguments, and how a program enqueues a call of one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
    get_args,
    get_type_hints,
    overload,
)

from tenure.client.client import Client
from tenure.client.handles import Handle
from tenure.core import limits
from tenure.core.errors import InvalidInput
from tenure.core.task_secrets import ARGUMENTS as IN_SPEC
from tenure.core.task_secrets import KEPT, SECRET, SHOWN, is_marked, shown_name, walked

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Unpack

    from tenure.client.arguments import CallOptions
    from tenure.client.worker.context import AsyncContext, Context

P = ParamSpec("P")
R = TypeVar("R")

ARGUMENTS = "arguments"  # in a task's spec: the arguments of its function, by name
_MARK = "a secret argument"
S = TypeVar("S")
Secret = Annotated[S, _MARK]
"""`Secret[str]` marks a parameter: its argument is sealed, and opened for the worker that claims the task."""


class BadArguments(Exception):
    """The task's arguments do not fit its function."""


class Handler(NamedTuple):
    function: Callable[..., Any]
    is_async: bool
    signature: inspect.Signature | None = None  # None: it takes the context alone


def handler_of(function: Callable[..., Any]) -> Handler:
    signature = inspect.signature(function)
    try:
        signature.bind_partial(None)
    except TypeError:
        name = getattr(function, "__name__", "a function")
        raise InvalidInput(f"{name} takes no context", f"it is the first argument: def {name}(ctx): …") from None
    takes_more = len(signature.parameters) > 1
    return Handler(function, inspect.iscoroutinefunction(function), signature if takes_more else None)


def arguments_of(handler: Handler, task: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
    """The arguments of the task for the function, after its context, with its secrets in their places.

    Raises BadArguments where they do not fit.
    """
    if handler.signature is None:
        return {}

    def opened(path: str, value: Any) -> Any:
        return secrets.get(shown_name(path), value) if value == SHOWN else KEPT

    given = walked((task.get("spec") or {}).get(ARGUMENTS) or {}, IN_SPEC, opened)
    try:
        handler.signature.bind(None, **given)
    except TypeError as error:
        raise BadArguments(f"the arguments do not fit {handler.function.__name__}: {error}") from None
    return dict(given)


class TaskFunction(Generic[P, R]):
    """A function for tasks. Called, it is the function itself; `enqueue` creates a task that calls it."""

    def __init__(
        self,
        function: Callable[..., Any],
        type: str | None,
        client: Callable[[], Client],
        options: CallOptions | None = None,
    ) -> None:
        """`client` returns the worker's client, which is opened when it is first needed."""
        self.function, self.type, self._client = function, type, client
        self._options: CallOptions = options or {}
        self.__name__, self.__doc__ = function.__name__, function.__doc__

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.function(*given, **named)

    def configure(self, **options: Unpack[CallOptions]) -> TaskFunction[P, R]:
        """The same function, whose tasks get these fields: `title`, `priority`, `after`, `deadline`, `tags` …"""
        return TaskFunction(self.function, self.type, self._client, {**self._options, **options})

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Create a task that calls the function with these arguments, which are kept as JSON.

        Its title is the function's name: titles and keys are in logs and addresses, so no argument is in them. Those
        of parameters that are `Secret[str]`, or whose names end as those of secrets do, are sealed.
        """
        if self.type is None:
            raise InvalidInput(
                f"{self.__name__} is for tasks of any type; a call of it cannot be enqueued",
                'decorate it with a type: @worker.task("resize")',
            )
        try:
            bound = inspect.signature(self.function).bind(None, *args, **kwargs)
        except TypeError as error:
            raise InvalidInput(f"{self.__name__}: {error}") from None
        given = _by_name(bound)
        for name in _secret_parameters(self.function) & given.keys():
            given[name] = _marked(self.__name__, name, given[name])
        spec = {ARGUMENTS: given} if given else {}
        client = self._client()
        options: Any = {"title": self.__name__[:LONGEST_TITLE], **self._options}
        added = client.add(**options, type=self.type, spec=spec)
        return Handle(client, added.task["id"], added.task["key"])

    async def enqueue_async(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """As `enqueue`, in asyncio."""
        return await asyncio.to_thread(self.enqueue, *args, **kwargs)


LONGEST_TITLE = limits.CALL_TITLE


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    """The arguments after the context, by name."""
    given = dict(list(bound.arguments.items())[1:])
    kinds = {name: one.kind for name, one in bound.signature.parameters.items()}
    for name in list(given):
        if kinds[name] is inspect.Parameter.VAR_KEYWORD:
            given |= given.pop(name)
        elif kinds[name] in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
            raise InvalidInput(f"the parameter {name!r} has no name to keep it under", "give it by keyword")
    return given


def _secret_parameters(function: Callable[..., Any]) -> set[str]:
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception:  # noqa: BLE001 a name that only type checkers know; the text of the annotation says enough
        hints = getattr(function, "__annotations__", {})
    return {name for name, hint in hints.items() if name != "return" and _is_secret(hint)}


def _is_secret(hint: Any) -> bool:
    if isinstance(hint, str):
        return "Secret[" in hint
    return _MARK in getattr(hint, "__metadata__", ()) or any(map(_is_secret, get_args(hint)))


def _marked(function: str, name: str, value: Any) -> Any:
    if value is None or is_marked(value):
        return value
    if not isinstance(value, str) or not value:
        raise InvalidInput(
            f"{function}: the secret argument {name!r} is a text that is not empty (got {type(value).__name__})"
        )
    return {SECRET: value}


class Registration:
    """The decorator that `Worker.task` returns."""

    def __init__(
        self, client: Callable[[], Client], types: tuple[str, ...], register: Callable[[Handler], None]
    ) -> None:
        self._client, self._types, self._register = client, types, register

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, function: Callable[Concatenate[AsyncContext, P], Coroutine[Any, Any, R]]
        ) -> TaskFunction[P, R]: ...

        @overload
        def __call__(self, function: Callable[Concatenate[Context, P], R]) -> TaskFunction[P, R]: ...

    def __call__(self, function: Callable[..., Any]) -> TaskFunction[Any, Any]:
        if isinstance(function, TaskFunction):  # one function for several decorators
            function = function.function
        self._register(handler_of(function))
        return TaskFunction(function, self._types[0] if self._types else None, self._client)
