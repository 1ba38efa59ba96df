"""Mail between agents: sent once, marked as read by each recipient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenure.core import claims, commands, ids, inputs, roles, team
from tenure.core.errors import NotFound
from tenure.core.filters import Present
from tenure.core.outcomes import Outcome
from tenure.core.records import Agent, Leader, Message, Task, replace
from tenure.engine.runtime.rows import check_agent_name, fields_of, is_known_agent
from tenure.engine.runtime.unit_of_work import Handlers, UnitOfWork
from tenure.engine.verbs.agents import sign_of_life, unknown_agent
from tenure.engine.verbs.lead import PROJECT_LEADER

if TYPE_CHECKING:
    from tenure.core.views import MessageView


def send(work: UnitOfWork, cmd: commands.Send) -> Outcome:
    inputs.check_choice(cmd.type, team.MESSAGE_TYPES, "type")
    inputs.check_text(cmd.text, "message", required=True)
    roles.check_sender(work.principal, cmd.sender, cmd.type)
    check_agent_name(work, cmd.project, cmd.sender, "sender")
    if not cmd.to.startswith("@"):
        ids.check_name(cmd.to, "recipient")
        if not _is_known(work, cmd):
            raise unknown_agent(work, cmd.project, cmd.to)
    if cmd.reply_to is not None and not work.find(Message, {"project": cmd.project, "message": cmd.reply_to}, limit=1):
        raise NotFound(f"no message {cmd.reply_to[:80]!r} to reply to")
    expires_at = None if cmd.expires is None else work.now + inputs.micros(cmd.expires, "expires")
    if cmd.action is not None:
        ids.check_name(cmd.action, "action")
    sign_of_life(work, cmd.project, cmd.sender)
    to = _recipients(work, cmd)
    message = work.new_id("msg")
    fields = fields_of(cmd, "project sender type text reply_to action")
    fields |= {"address": cmd.to, "sent_at": work.now, "expires_at": expires_at}
    rows = [Message(id=row_id(message, name), message=message, recipient=name, **fields) for name in to]
    details: dict[str, Any] = {"message": message, "to": cmd.to, "recipients": list(to), "type": cmd.type}
    if cmd.action is not None:  # a broker carries it even where no agent of the type is registered
        details |= fields_of(cmd, "action text reply_to") | {"expires_at": expires_at}
    work.record("message.sent", *rows, project=cmd.project, agent=cmd.sender, details=details)
    text, hint = team.sent_text(cmd.to, to, for_programs=cmd.action is not None)
    sent = tuple(view(m) for m in rows[:1])
    return Outcome(outcome="CREATED", changed=to, messages=sent, command_id=work.command_id, message=text, hint=hint)


def _is_known(work: UnitOfWork, cmd: commands.Send) -> bool:
    """Whether the recipient is an agent, or has sent mail itself: a person who writes gets answers."""
    if cmd.to == cmd.sender or is_known_agent(work, cmd.project, cmd.to):
        return True
    return bool(work.find(Message, {"project": cmd.project, "sender": cmd.to}, limit=1))


def _recipients(work: UnitOfWork, cmd: commands.Send) -> tuple[str, ...]:
    agents = work.find(Agent, {"project": cmd.project}) if cmd.to.startswith("@") else []
    held = (
        [t for t in work.find(Task, {"project": cmd.project, "agent": Present()}) if claims.is_held(t)]
        if agents
        else []
    )
    leader = work.get(Leader, cmd.project, PROJECT_LEADER)
    track = cmd.to.removeprefix("@track:")
    return team.recipients(
        cmd.to,
        cmd.sender,
        agents,
        now=work.now,
        busy=[t.agent for t in held if t.agent],
        on_track=[t.agent for t in held if t.agent and t.track == track],
        leader=leader.holder if leader is not None and leader.until > work.now else None,
    )


def read(work: UnitOfWork, cmd: commands.Read) -> Outcome:
    where: dict[str, Any] = {"project": cmd.project, "recipient": cmd.agent, "read_at": Present(False)}
    if cmd.messages is not None:
        where["message"] = tuple(cmd.messages)
    sign_of_life(work, cmd.project, cmd.agent)
    found = work.find(Message, where)
    for message in found:
        work.put(replace(message, read_at=work.now))
    return Outcome(outcome="OK", messages=tuple(view(m) for m in found), mail=len(found))


def row_id(message: str, recipient: str) -> str:
    return f"{message}:{recipient}"


def view(message: Message) -> MessageView:
    fields = fields_of(message, "type text action expires_at reply_to sent_at read_at")
    answer: MessageView = {"id": message.message, "from": message.sender, "to": message.address} | fields
    return answer


HANDLERS: Handlers = {commands.Send: send, commands.Read: read}
