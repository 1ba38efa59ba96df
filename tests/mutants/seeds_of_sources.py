"""Seeded bugs in schedules, triggers, deliveries and the watch: `seeds.py` takes them in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COPYING = ("tests/engine/test_copying.py",)
SERVER = ("tests/server/test_deliveries.py",)
SCHEDULES = "engine/sources/schedules.py"
FIRING = "engine/sources/trigger_duty.py"
PRODUCING = "engine/sources/template_tasks.py"
TRIGGERS = "core/triggers.py"
SIGNATURES = "core/signatures.py"
TRIGGERING = "engine/sources/triggers.py"
DELIVERING = "engine/sources/deliveries.py"
ROUTE = "server/delivery_routes.py"

SOURCES = (
    # --- one task a tick, and none lost
    Mutant("schedule: a tick has no key", SCHEDULES, 'key=f"cron:{row.id}:{tick}"', "key=None"),
    Mutant("schedule: the next tick is not kept", SCHEDULES, "return replace(row, next_at=next_at)", "return row"),
    Mutant(
        "schedule: the turn's other ticks are lost", SCHEDULES, "(*due.ticks[1:], after)", "[after] * len(due.ticks)"
    ),
    Mutant(
        "schedule: one that is broken keeps the others waiting",
        SCHEDULES,
        "except (TenureError, *OUR_FAULTS) as error:\n        work.undo_to(bookmark)\n        why",
        "except () as error:\n        why",
    ),
    Mutant(
        "schedule: pauses are made up for",
        SCHEDULES,
        'at = _next(row.cron, row.zone, work.now)\n    return _kept(work, "schedule.resumed"',
        'at = _next(row.cron, row.zone, row.changed_at)\n    return _kept(work, "schedule.resumed"',
    ),
    Mutant(
        "schedule: fires with the next round only",
        "engine/duties/election.py",
        "schedules.fire, schedules.first_due)",
        "schedules.fire)",
    ),
    Mutant(
        "schedule: a failed template leaves its rows",
        PRODUCING,
        "    except FAULTS as error:\n        work.undo_to(bookmark)\n",
        "    except FAULTS as error:\n",
    ),
    # --- each event once, and none left out
    Mutant("trigger: an event has no key", FIRING, 'Cause(f"trigger:{name}:{event.id}"', "Cause(None"),
    Mutant(
        "trigger: the cursor goes to the end of the log",
        FIRING,
        "work.put(replace(cursor, sequence=events[read - 1].sequence))",
        "work.put(replace(cursor, sequence=work.tx.events({}, limit=1, last=True)[0].sequence))",
    ),
    Mutant(
        "trigger: the cursor passes what was put off",
        FIRING,
        "sequence=events[read - 1].sequence",
        "sequence=events[-1].sequence",
    ),
    Mutant("trigger: hears what was before it", FIRING, "event.sequence <= row.behind", "False"),
    Mutant("trigger: loops", FIRING, "if depth > rule.DEEPEST:", "if False:"),
    Mutant(
        "trigger: subtasks begin anew",
        "engine/sources/event_values.py",
        "first = task if task.root is None else work.get(Task, task.project, task.root)",
        "first = task",
    ),
    Mutant("trigger: fires without end", FIRING, "if rule.is_spent(row, work.now):", "if False:"),
    Mutant("trigger: hears of itself", TRIGGERS, "not k.startswith(_NEVER_HEARD) and ", ""),
    Mutant(
        "trigger: a dag's end fires twice",
        FIRING,
        "key = f\"dag:{dag.id}:{event.details.get('run')}:{status}\"",
        "key = None",
    ),
    Mutant(
        "trigger: texts of others are not quoted",
        "core/templates.py",
        "if quotes is None or _PLAIN.fullmatch(found):",
        "if True:",
    ),
    Mutant(
        "trigger: a cursor keeps its number in another store",
        "engine/project_copy.py",
        "        _follow(work, old, project)\n",
        "",
        COPYING,
    ),
    Mutant(
        "schedule: fires where the project was, too",
        PRODUCING,
        'if not row.stopped.get(LINE, "").startswith(MOVED)',
        "if True",
        COPYING,
    ),
    # --- deliveries
    Mutant("webhook: any signature", SIGNATURES, "found |= hmac.compare_digest(one, other)", "found = True"),
    Mutant("webhook: for ever", SIGNATURES, " or abs(int(time) * 1_000_000 - now) > TOLERANCE", ""),
    Mutant(
        "webhook: the id is not signed",
        SIGNATURES,
        'signed = b"%b.%b.%b" % (id.encode(), time.encode(), body)\n    wanted',
        'signed = b"%b.%b" % (time.encode(), body)\n    wanted',
    ),
    Mutant("webhook: the old secret for ever", SIGNATURES, "and now < trigger.previous_until and", "and"),
    Mutant(
        "webhook: a delivery counts twice", DELIVERING, "if tasks_by_idempotency(work, project.id, key):", "if False:"
    ),
    Mutant(
        "webhook: names can be told apart",
        DELIVERING,
        "if project is None or row is None or delivery is None:",
        "if row is None:\n        raise InvalidInput('no such trigger')\n    if project is None or delivery is None:",
    ),
    Mutant(
        "webhook: the secret is in the log",
        "core/records.py",
        'frozenset({"secret", "previous", "held_back", "told_at", "behind"})',
        'frozenset({"previous", "held_back", "told_at", "behind"})',
    ),
    Mutant(
        "webhook: a repeat rotates again",
        TRIGGERING,
        "    if _is_repeat(work, row, cmd):\n        return replace(_shown",
        "    if False:\n        return replace(_shown",
    ),
    Mutant("webhook: a body is read of anybody", ROUTE, "if not signatures.is_signed(headers):", "if False:", SERVER),
    Mutant(
        "webhook: guessers are heard",
        ROUTE,
        "        self._failures.take(name)\n",
        "",
        SERVER,
    ),
    # --- the watch
    Mutant(
        "watch: about itself",
        "engine/sources/failure_watch.py",
        " or first.created_by.startswith(failure_watch.CREATED_BY):",
        ":",
    ),
    Mutant(
        "watch: again while one is open",
        "engine/sources/failure_watch.py",
        "        and not _is_open(asked.get(subject.name))\n",
        "",
    ),
    Mutant(
        "watch: what was looked into counts again",
        "core/failure_watch.py",
        "if attempt.at > looked_into.get(name, -1):",
        "if True:",
    ),
    Mutant("watch: agents' troubles count", "core/failure_watch.py", "and error_class in retry.COUNTING", ""),
)
