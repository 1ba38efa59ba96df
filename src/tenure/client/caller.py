"""A caller: a project, an identity and a transport; runs any command or query. Both clients are callers."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tenure.client.results import Result
from tenure.client.times import with_plain_times
from tenure.core.commands import ClaimNext, Command, NewTask, Principal, Submit
from tenure.core.decoders import decoder_of
from tenure.core.errors import InvalidInput, NotFound, TenureError
from tenure.core.ids import fitted_name, parse_receipt
from tenure.core.inputs import LARGEST_RESULT
from tenure.core.outcomes import Outcome
from tenure.core.queries import Artifacts, Query, ShowSession
from tenure.core.query import check_limit
from tenure.core.records import replace
from tenure.core.task_defaults import TaskDefaults

if TYPE_CHECKING:
    from tenure.sealing.signing import SigningKey

R = TypeVar("R", bound=Result)
Q = TypeVar("Q", bound=Query)
T = TypeVar("T")

LARGE = "result.json"  # the artifact of a result that is too large for a row
JSON = "application/json"


class StoreOnly(TenureError):
    code = "STORE_ONLY"


class SystemRandom:
    """The operating system's randomness, for the engine."""

    def token(self, size: int) -> bytes:
        return os.urandom(size)

    def fraction(self) -> float:
        return int.from_bytes(os.urandom(7), "big") / (1 << 56)


class Caller:
    """What both clients are. Written for the one that blocks: in AsyncClient every method returns a coroutine.

    `_as`, `_each` and `_steps` are where the two differ. The types of the other are in `async_verbs.pyi`, generated
    from these by `./x docs`.
    """

    project: str
    agent: str
    session: str
    user: str | None
    principal: Principal
    transport: Any
    signing_key: SigningKey | None = None  # `register` names it, and from then on each result is signed with it
    _tenant: str | None = None  # as the store knows it, once it is needed

    if TYPE_CHECKING:

        def mark(self) -> int: ...

        def wait_for_news(self, mark: int, seconds: float, *, tasks: Collection[str] = ()) -> bool: ...

    def _identify(
        self, project: str | None, agent: str | None, session: str | None, role: str, user: str | None
    ) -> None:
        self.project, self.agent, self.user = project or "default", agent or "me", user
        # identity is per process, never per host or name
        self.session = session or f"{fitted_name(self.agent, 'agent')}-{os.getpid()}"
        self.principal = Principal(role=role, user=user, agent=agent, session=session)

    def do(self, command: Command) -> Outcome:
        """Run any command. A result that is too large for a row is stored as an artifact first."""
        command = with_plain_times(command)
        if isinstance(command, Submit):
            if (large := too_large(command.data)) is not None:
                return self._submit_large(command, large)
            if self.signing_key is not None and command.signature is None:
                return self._steps(self._submit_signed(command, self.signing_key))
        outcome: Outcome = self.transport.do(command, self.principal)
        return outcome

    def _submit_large(self, command: Submit, encoded: bytes) -> Outcome:
        raise NotImplementedError

    async def _submit_signed(self, command: Submit, key: SigningKey) -> Outcome:
        signed = await self._signed(command, key)
        outcome: Outcome = await self._each(self.transport.do(signed, self.principal))
        return outcome

    async def _signed_batch(
        self, batch: Sequence[Command], key: SigningKey, send: Callable[..., Any]
    ) -> list[Outcome | TenureError]:
        signed = [
            await self._signed(one, key) if isinstance(one, Submit) and one.signature is None else one for one in batch
        ]
        answers: list[Outcome | TenureError] = await self._each(send(signed, self.principal))
        return answers

    async def _signed(self, command: Submit, key: SigningKey) -> Submit:
        """The command with a signature over what the store will read: see `core/signed_results.py`."""
        from tenure.client.signed_submits import request_id_of, signed, wanted_artifacts

        command = replace(command, request_id=request_id_of(command))
        receipt = parse_receipt(command.receipt)
        put: Any = ()
        try:
            if self._tenant is None:
                found: Any = await self._each(self.query(ShowSession(project=self.project, session=self.session)))
                self._tenant = found["tenant"]
            put = await self._each(self.query(Artifacts(project=self.project, task=receipt.name)))
        except NotFound:  # the store answers by the receipt
            pass
        artifacts = wanted_artifacts(put, receipt, command.artifacts)
        return signed(command, receipt, self._tenant or "local", artifacts, key)

    def claim_or_wait(self, command: ClaimNext, seconds: float) -> Outcome:
        """As `do`, but waits up to `seconds` for a claimable task."""
        outcome: Outcome = self.transport.claim_or_wait(with_plain_times(command), seconds, self.principal)
        return outcome

    def query(self, query: Query) -> Any:
        """Run any query. InvalidInput where a value has another type than the query's field."""
        return self.transport.query(_checked(with_plain_times(query)), self.principal)

    def _do(self, answer: type[R], kind: type[Command], /, **fields: Any) -> R:
        return self._as(answer, self.do(kind(project=self.project, **fields)))

    def _as(self, result: type[R], answer: Outcome) -> R:
        """The answer as its verb's type."""
        raise NotImplementedError

    def _steps(self, steps: Coroutine[Any, Any, T]) -> T:
        """Run a method that makes several calls, each through `_each`."""
        raise NotImplementedError

    async def _each(self, answer: T) -> T:
        """The answer of one call."""
        raise NotImplementedError

    async def _pause(self, seconds: float) -> None:
        raise NotImplementedError


def _checked(query: Q) -> Q:
    """The query, its types and its limit proven: a store would fail on a wrong one, or find nothing."""
    try:
        decoder_of(type(query)).decode(msgspec.json.encode(query))
    except UnicodeEncodeError:
        raise InvalidInput(f"{type(query).__name__.lower()}: text that is not valid UTF-8") from None
    except (msgspec.ValidationError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{type(query).__name__.lower()}: {error}") from None
    check_limit(query)
    return query


def is_server(url: str) -> bool:
    """Whether the URL is a server's; all others are stores."""
    return url.startswith(("http://", "https://"))


class FoundStore(msgspec.Struct, frozen=True):
    url: str
    tenant: str | None
    project: str
    key: str | None
    artifacts: str | None
    task_defaults: TaskDefaults
    leader_lease: float
    homes: dict[str, str] | None  # None: as for every client, by the environment


def find_store(tenant: str | None, project: str | None, key: str | None, artifacts: str | None) -> FoundStore:
    """The store of the working folder with its settings, found and trusted as by the command line.

    Raises NoStore where there is none, Untrusted where a cloned file names it.
    """
    from tenure.config import artifacts_of, find_home, homes_of, leader_lease_of, read_settings, task_defaults_of

    here = os.getcwd()  # noqa: PTH109 - as the command line reads it
    given = {"tenant": tenant, "project": project, "key": key, "artifacts": artifacts}
    settings = read_settings(here, os.environ, given)
    home = find_home(here, settings)
    named = settings["project"]
    only = _only_project(home.url, home.tenant, settings["key"].value) if named.origin == "default" else None
    return FoundStore(
        home.url, home.tenant, only or str(named.value), settings["key"].value, artifacts_of(settings, home),
        task_defaults_of(settings), leader_lease_of(settings), homes_of(settings),
    )  # fmt: skip


def _only_project(url: str, tenant: str | None, key: str | None) -> str | None:
    """The project of a store that has one; no store is created."""
    from tenure.client.client import Client
    from tenure.core.errors import NoStore

    try:
        with Client(url, tenant=tenant, key=key) as client:
            names = client.projects()
    except NoStore:
        return None
    return names[0] if len(names) == 1 else None


def too_large(data: Any) -> bytes | None:
    """The JSON of a result that does not fit into a row; None for one that fits, or is not valid JSON."""
    try:
        encoded = msgspec.json.encode(data)
    except (TypeError, ValueError, RecursionError):  # the engine reports it better
        return None
    return encoded if len(encoded) > LARGEST_RESULT else None


def referring(command: Submit, put: Outcome) -> Submit:
    """The command with a reference instead of its data; the artifact is part of its result."""
    artifact = put.artifact or {}
    data = {"$artifact": LARGE, "size": artifact.get("size"), "digest": artifact.get("digest")}
    names = None if command.artifacts is None else tuple(dict.fromkeys((*command.artifacts, LARGE)))
    return replace(command, data=data, artifacts=names)


def new_task(title: str, fields: Mapping[str, Any]) -> NewTask:
    """A task of the keyword arguments of `add`."""
    given = as_tuples(fields)
    return NewTask(title=title, depends_on=given.pop("after", ()), **given)


def as_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with any iterable of names as a tuple and any mapping as a dict, as commands have them."""

    def plain(value: Any) -> Any:
        if isinstance(value, (str, int, float, tuple, dict, msgspec.Struct)) or value is None:
            return value
        if isinstance(value, Mapping):
            return dict(value)
        return tuple(value) if isinstance(value, Iterable) else value

    return {name: plain(value) for name, value in fields.items()}
