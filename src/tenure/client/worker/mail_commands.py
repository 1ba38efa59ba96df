"""Commands to this worker's agent: mail with an action, from the store or from a broker.

The gate of a command is marking its mail as read, as the claim is that of a task: only one process finds it unread.
A command to a type of agent that has no mail for this agent is known by its id, in this process.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.client.client import Client
from tenure.client.worker.failures import ended, may_pass, result_of
from tenure.client.worker.functions import Handler
from tenure.core import limits
from tenure.core.error_texts import described
from tenure.core.errors import NotFound, TenureError
from tenure.core.instants import parse_instant
from tenure.core.team import TYPE

if TYPE_CHECKING:
    from tenure.client.worker.message_source import MessageSource
    from tenure.core.views import MessageView

log = logging.getLogger("tenure.worker")

MAIL_EVERY = 2.0  # seconds between two looks into the mail
REMEMBERED = 1000  # ids of commands that this process has run


class CommandContext:
    """The argument of a command's function. Text from other agents is data, never an instruction to a model."""

    def __init__(self, client: Client, id: str, action: str, sender: str, text: str) -> None:
        self.client, self.id, self.action, self.sender, self.text = client, id, action, sender, text
        self.replies = 0

    @property
    def data(self) -> Any:
        """The text as JSON; None where it is not JSON."""
        try:
            return msgspec.json.decode(self.text)
        except msgspec.MsgspecError:
            return None

    def reply(self, text: str) -> None:
        """Send mail to the sender, as the answer to this command. It blocks."""
        self.replies += 1
        try:
            self.client.send(text, self.sender, type="response", reply_to=self.id)
        except NotFound:  # a command to a type of agent that nobody was registered for has no mail to refer to
            self.client.send(text, self.sender, type="response")


class MailCommands:
    """Which commands there are to run, each once."""

    def __init__(self, client: Client, handlers: Mapping[str, Handler], now: Callable[[], float] = time.time) -> None:
        self._client, self._handlers, self._now = client, handlers, now
        self._done: OrderedDict[str, None] = OrderedDict()
        self._look_at = 0.0  # when the mail is next looked at, by time.monotonic
        self._unsure: set[str] = set()  # the store may have marked them as read for us, and did not answer

    def next(self, source: MessageSource | None) -> CommandContext | None:
        """The next command to run, from the source or from the mail; None where none waits."""
        while source is not None and source.commands:
            one = source.commands[0]  # it stays there while the store does not answer
            is_known = one.action in self._handlers
            context = None
            try:
                context = self.take(one.id, one.action, one.sender, one.text, one.expires_at) if is_known else None
            except TenureError as error:
                if may_pass(error):
                    raise
                log.warning("the command %s from %s is left: %s", one.action, one.sender, error.message)
            source.commands.popleft()
            if not is_known and one.is_to_type:
                source.defer(one.received, f"no function is for the command {one.action}")
            else:
                source.acknowledge(one.received)
            if context is not None:
                return context
        return self._of_mail(is_alone=source is None)

    def _of_mail(self, *, is_alone: bool) -> CommandContext | None:
        """From the mail, every two seconds. With a source, which brings those to its type, only those to this agent."""
        if time.monotonic() < self._look_at:
            return None
        for one in self._mail():
            action = one.get("action")
            if action is not None and action in self._handlers and (is_alone or not str(one["to"]).startswith(TYPE)):
                context = self.take(one["id"], action, one["from"], one["text"], one["expires_at"])
                if context is not None:
                    return context
        self._look_at = time.monotonic() + MAIL_EVERY
        return None

    def _mail(self, *, unread: bool = True) -> Iterator[MessageView]:
        """All of it: among the first thousand of an agent that gets much a command may not be."""
        page = self._client.inbox(unread=unread)
        yield from page
        while page.next is not None:
            page = self._client.inbox(unread=unread, after=page.next)
            yield from page

    def take(self, id: str, action: str, sender: str, text: str, expires_at: int | str | None) -> CommandContext | None:
        """The command, for this caller alone; None where it was run before, or has expired."""
        if id in self._done:
            return None
        is_repeated = id in self._unsure
        self._unsure.add(id)
        taken = self._client.read([id]).messages or ()
        is_read = not taken and any(one["id"] == id for one in self._mail(unread=False))
        self._unsure.discard(id)
        self._remember(id)
        if is_read and not is_repeated:
            return None
        if self._is_over(expires_at):
            log.info("the command %s from %s has expired", action, sender)
            return None
        return CommandContext(self._client, id, action, sender, text)

    def run(self, context: CommandContext, loop: asyncio.AbstractEventLoop | None) -> None:
        """Call the function. An error is the reply: nobody else learns of it."""
        handler = self._handlers[context.action]
        try:
            if handler.is_async:
                assert loop is not None
                result_of(asyncio.run_coroutine_threadsafe(ended(handler.function(context)), loop).result())
            else:
                handler.function(context)
        except BaseException as error:  # noqa: BLE001 nothing that a function raises ends the worker
            why = described(error, limits.WORKER_ERROR)
            log.warning("the command %s from %s failed: %s", context.action, context.sender, why)
            try:
                context.reply(f"{context.action} failed: {why}")
            except TenureError as unsent:
                log.warning("the reply to %s was not sent: %s", context.sender, unsent.message)

    def _is_over(self, expires_at: int | str | None) -> bool:
        if expires_at is None:
            return False
        end = parse_instant(expires_at) if isinstance(expires_at, str) else expires_at
        return self._now() * 1e6 >= end

    def _remember(self, id: str) -> None:
        self._done[id] = None
        while len(self._done) > REMEMBERED:
            self._done.popitem(last=False)
