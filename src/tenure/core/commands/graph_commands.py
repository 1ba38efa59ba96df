"""Creating work: tasks, plans, edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from tenure.core.commands.command import PROJECT, TASK, Command, Declaration
from tenure.core.records import RetryWords

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from tenure.core.records import RetryPolicy as Retry  # either may be given; JSON may use the names of both

    # A client turns times as people have them into these, before a command is sent: see `client/times.py`.
    When = int | datetime | timedelta | str | None
    Lasting = float | timedelta | str | None
else:
    Retry = RetryWords
    When = int | None
    Lasting = float | None


class Dependency(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: str  # key, id, or a name in the same plan
    on_failure: str = "block"


class NewTask(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task to create. `name` is its local name in a plan or spawn; `parent` makes it a subtask."""

    title: str
    name: str | None = None
    key: str | None = None
    track: str | None = None
    type: str = "code"
    description: str = ""
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    spec: dict[str, Any] = {}
    constraints: dict[str, Any] = {}
    output: dict[str, Any] = {}
    priority: int | str | None = None  # None, as of the next ones: the default of the project's settings
    boost: float | None = None  # points a minute; None: the project's
    deadline: When = None
    deadline_in: Lasting = None  # seconds from the store's now, in place of `deadline`
    not_before: When = None
    not_before_in: Lasting = None  # as `deadline_in`
    depends_on: tuple[Dependency | str, ...] = ()
    parent: str | None = None
    max_attempts: int | None = None
    retry: Retry = RetryWords()
    touches: tuple[str, ...] = ()
    on_lost: str | None = None
    idempotency_key: str | None = None
    draft: bool = False


class Add(Command, frozen=True, kw_only=True, tag="add"):
    """Create one task, in its own dag."""

    declaration: ClassVar = Declaration("graph", "agent", "POST", PROJECT + "/tasks")

    task: NewTask


class AddMany(Command, frozen=True, kw_only=True, tag="add_many"):
    """Create many tasks, each in its own dag: all of them or none."""

    declaration: ClassVar = Declaration("graph", "agent", "POST", PROJECT + "/task-batches")

    tasks: tuple[NewTask, ...]


class NewTrack(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    code: str
    name: str
    purpose: str = ""


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tasks with placeholders such as `{event.key}` in their texts; several become a dag with that title."""

    tasks: tuple[NewTask, ...]
    title: str = ""
    deadline_in: float | None = None  # seconds from the tick or event, for every task


class Plan(Command, frozen=True, kw_only=True, tag="plan"):
    """Create a dag in one atomic operation; `name` makes it a plan that can be applied again."""

    declaration: ClassVar = Declaration("plan", "member", "POST", PROJECT + "/dags")

    tasks: tuple[NewTask, ...]
    title: str = ""
    name: str | None = None
    prune: bool = False
    tracks: tuple[NewTrack, ...] = ()  # created with the tasks if new; that needs the role admin
    dry_run: bool = False  # show what would happen, and undo it
    on_end: dict[str, Template] = {}  # completed, failed, cancelled → template created at the dag's end
    budget: str | None = None  # the dag's budget in dollars; setting it needs the role admin


class Link(Command, frozen=True, kw_only=True, tag="link"):
    """Make `task` wait for `needs`."""

    declaration: ClassVar = Declaration("graph", "member", "POST", TASK + "/link")

    task: str
    needs: str
    on_failure: str = "block"


class Unlink(Command, frozen=True, kw_only=True, tag="unlink"):
    """Remove the dependency of `task` on `needs`."""

    declaration: ClassVar = Declaration("graph", "member", "POST", TASK + "/unlink")

    task: str
    needs: str


class Publish(Command, frozen=True, kw_only=True, tag="publish"):
    """Publish a draft, or all drafts of a dag."""

    declaration: ClassVar = Declaration("graph", "member", "POST", PROJECT + "/publish")

    task: str | None = None
    dag: str | None = None
