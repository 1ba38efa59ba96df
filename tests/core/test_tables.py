"""The tables that interfaces and docs are made from cover all that the code uses."""

import ast
import re
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path

import pytest

import tenure
from tenure.core import commands, errors, events, outcomes, queries, records, roles
from tenure.core.commands import Command, Principal
from tenure.core.errors import NotAllowed, TenureError
from tenure.core.webhook_delivery import STATUS_CHANGED
from tenure.testing.engine.operators import some_command

SOURCE = Path(tenure.__file__).parent
SUBJECTS = sorted({kind.partition(".")[0] for kind in events.KINDS})
RULES = [p for folder in ("core", "engine") for p in sorted((SOURCE / folder).rglob("*.py"))]


@cache
def nodes() -> tuple[ast.AST, ...]:
    return tuple(node for path in RULES for node in ast.walk(ast.parse(path.read_text())))


@cache
def texts() -> tuple[str, ...]:
    """Every literal text in the rules and the engine."""
    return tuple(n.value for n in nodes() if isinstance(n, ast.Constant) and isinstance(n.value, str))


def calls(*names: str) -> Iterator[ast.Call]:
    for node in nodes():
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name in names:
                yield node


def all_commands() -> set[type[Command]]:
    return {k for k in vars(commands).values() if isinstance(k, type) and issubclass(k, Command)} - {Command}


def test_every_outcome_that_is_used_has_its_meaning() -> None:
    named = {
        k.value.value
        for call in calls("Outcome")
        for k in call.keywords
        if k.arg == "outcome" and isinstance(k.value, ast.Constant)
    }
    shaped = {t for t in texts() if re.fullmatch(r"(DENIED|STALE|TASK|ALREADY|FUTURE|SESSION|NO|NOT)_[A-Z_]+", t)}
    errors_codes = {e.code for e in every_error()}
    assert named
    assert (named | shaped) - errors_codes <= set(outcomes.CODES)


def test_every_meaning_has_a_kind_that_interfaces_know() -> None:
    kinds = {"ok", "nothing", "held", "stale", "denied", "invalid", "missing"}
    assert {code.kind for code in outcomes.CODES.values()} <= kinds
    assert all(code.meaning for code in outcomes.CODES.values())


def test_every_event_that_is_recorded_has_its_meaning() -> None:
    named = {t for t in texts() if re.fullmatch(rf"({'|'.join(SUBJECTS)})\.[a-z_]+", t)}
    assert {n for n in named if n not in events.KINDS} <= {STATUS_CHANGED}  # a message of webhooks, not an event
    recorded = {
        call.args[0].value
        for call in calls("record", "end_held", "give_back", "_gave_up", "_pause_held", "_offered")
        if call.args and isinstance(call.args[0], ast.Constant)
    }
    assert recorded <= set(events.KINDS)


def test_every_event_in_the_table_is_recorded_somewhere() -> None:
    used = set(texts())
    spelled = {f"dag.{status}" for status in ("completed", "failed", "cancelled")}
    counted = [t for t in texts() if t in events.KINDS]
    assert {k for k in events.KINDS if k not in used | spelled} == set()
    # each stands in the table once, and at least once more where it is recorded
    alone = {k for k in events.KINDS if counted.count(k) < 2} - spelled
    assert alone == set()


def test_every_command_has_its_role_and_its_handler() -> None:
    from tenure.engine.runtime.decision import handlers_of

    assert set(commands.ALL) == all_commands()
    assert all(kind in handlers_of(kind.declaration.theme) for kind in commands.ALL)


def test_every_query_has_its_function() -> None:
    from tenure.engine.reads.query_table import reads_of

    assert all(kind in reads_of(kind.declaration.theme) for kind in queries.ALL)


def test_no_route_carries_two_kinds() -> None:
    declared = [kind.declaration for kind in (*commands.ALL, *queries.ALL)]
    routes = [(one.method, one.path) for one in declared if one.path]
    assert len(set(routes)) == len(routes)


def test_the_roles_are_the_specs() -> None:
    member = {
        "plan", "link", "unlink", "publish", "pause", "resume", "answer", "cancel", "retry", "reset", "adopt",
        "archive", "edit", "assign", "reassign", "recover", "abort", "note", "undo", "drain", "terminate",
        "resume_agent", "files_changed", "assign_track", "release_track",
    }  # fmt: skip
    admin = ["stop_line", "start_line", "define_project", "define_track", "create_key", "rotate_key", "revoke_key"]
    admin += ["set_budget", "remove_budget", "move_budget", "confirm_usage", "reject_usage", "reorder"]
    admin += ["set_schedule", "pause_schedule", "resume_schedule", "remove_schedule", "run_schedule", "set_trigger"]
    admin += ["pause_trigger", "resume_trigger", "remove_trigger", "rotate_secret", "try_trigger", "set_watch"]
    admin += ["pause_relay", "resume_relay", "rewind_relay", "remove_relay", "set_webhook", "pause_webhook"]
    admin += ["resume_webhook", "remove_webhook", "rotate_webhook", "test_webhook", "replay_webhook"]
    admin += ["set_pool", "pause_pool", "resume_pool", "remove_pool"]
    admin += ["invite_member", "change_member", "remove_member", "rotate_data_key", "reseal"]
    needed = {str(kind.__struct_config__.tag): role for kind, role in roles.NEEDS.items()}
    assert {tag for tag, role in needed.items() if role == "member"} == member
    assert {tag for tag, role in needed.items() if role == "admin"} == set(admin)
    owner = {"audit_on", "add_tenant", "change_tenant", "close_tenant", "reopen_tenant"}
    assert {tag for tag, role in needed.items() if role == "owner"} == owner
    assert set(needed.values()) == {"agent", "member", "admin", "owner"}


@pytest.mark.parametrize("role", roles.ROLES)
@pytest.mark.parametrize("free", [True, False])
def test_a_role_may_do_what_those_below_it_may(role: str, free: bool) -> None:
    acts_as = "member" if role == "agent" and free else role
    here = Principal(role=role)
    principal = Principal(role=role, address="192.0.2.1", capabilities=(roles.CHECKER,))
    for kind, needed in roles.NEEDS.items():
        command = some_command(kind, "A-001")
        allowed = roles.ROLES.index(acts_as) >= roles.ROLES.index(needed)
        # With a term it is the leader's verb: the engine compares it with the leader's row.
        led = (commands.Assign, commands.Reassign, commands.Recover)
        allowed = allowed or (role == "agent" and isinstance(command, led) and command.term is not None)
        expected = nullcontext() if allowed else pytest.raises(NotAllowed, match=f"needs the role {needed}")
        with expected:
            roles.check_role(here if kind is commands.Gone else principal, command, agents_may_operate=free)


def test_tags_of_commands_are_their_names() -> None:
    tags = [str(kind.__struct_config__.tag) for kind in all_commands()]
    assert len(set(tags)) == len(tags)
    for kind in all_commands():
        # `claim`, `checkpoint` and `usage` are rows too: the classes of the commands say what is done with them
        name = kind.__name__.removeprefix("Save").removeprefix("Report").removesuffix("Task")
        assert str(kind.__struct_config__.tag).replace("_", "") == name.lower()


def every_error() -> list[type[TenureError]]:
    found, todo = [], [TenureError]
    while todo:
        kind = todo.pop()
        found.append(kind)
        todo += kind.__subclasses__()
    return found


def test_every_error_has_a_code_of_its_own_and_stands_in_the_tree() -> None:
    kinds = [k for k in every_error() if k.__module__ == errors.__name__]
    assert len({k.code for k in kinds}) == len(kinds)
    for kind in kinds:
        assert kind.__name__ in (errors.__doc__ or "")
    assert [k.__name__ for k in kinds if not k.definite] == ["OutcomeUnknown"]


def test_no_text_for_people_names_a_destructive_command() -> None:
    for text in texts():
        assert not re.search(r"tenure (cancel|reset|prune|db(?! clock`)|undo)|--force|rm -", text), text


def test_every_kind_of_row_is_kept_and_what_it_hides_exists() -> None:
    kinds = {k for k in vars(records).values() if isinstance(k, type) and issubclass(k, records.Row)} - {records.Row}
    assert set(records.KINDS) == kinds
    for kind, kept in records.KINDS.items():
        assert kept.unlogged <= set(kind.__struct_fields__)
    assert len({k.table for k in records.KINDS.values()}) == len(records.KINDS)
    assert "process" in records.KINDS[records.Claim].unlogged
    assert "nonce" in records.KINDS[records.Claim].unlogged & records.KINDS[records.Reservation].unlogged
