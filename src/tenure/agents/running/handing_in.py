"""What is told of a claim when its agent has ended, and telling it until the store has answered.

| the agent | told |
| --- | --- |
| ended its claim itself | nothing more, but what it cost |
| finished | submit: also where the claim was lost meanwhile; the store judges, and keeps what it refuses |
| was cancelled, or stopped because another has the task | nothing: it is no longer ours |
| was stopped by a pause, or with the runner | a checkpoint, then release: no attempt is lost |
| failed, crashed, was too slow | fail, with the class that its output gives |
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tenure.agents.running.ground import Done
from tenure.agents.running.outbox import Finished, is_unknown, send
from tenure.agents.running.reading import Failure, Reading
from tenure.agents.running.results import is_checked_later, is_judged, said
from tenure.core.errors import InvalidInput, NotFound, StoreError, TenureError
from tenure.core.money import parse_usd, usd_text
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.processes.supervisor import Ended

if TYPE_CHECKING:
    from tenure.agents.running.work import Work

MOST_TEXT = 128 << 10  # characters of an agent's last words that are handed in
MOST_SUMMARY = 1000
SLOWEST = 5.0  # seconds between tries while the store is away
STOPPED_BY_US = ("interrupted", "settled", "cancel", "pause", "abort")


def conclude(work: Work, ended: Ended, reading: Reading) -> Done:
    """Tell what became of it, and keep what the agent said: with a result that comes after, else before.

    A result must not wait for megabytes of talk. But once an attempt is given up another may begin at any moment, and
    nothing more is taken of this one then.
    """
    done = _conclude(work, ended, reading)
    work.keep_transcript()
    return done


def _conclude(work: Work, ended: Ended, reading: Reading) -> Done:
    for note in reading.notes:
        work.say(f"{work.key}: {note}")
    _look_once_more(work)
    hold = work.hold
    if hold.own_word is not None:
        work.tell(work.tell_usage)
        return _done(work, hold.own_word.what, hold.own_word.sentence)
    failure = failure_of(ended, reading, is_namespace=work.options.bwrap is not None)
    if failure is not None:
        work.keep_transcript()
    if hold.stop is not None and (failure is not None or hold.stop.directive == "cancel"):
        work.tell(work.tell_usage)
        if hold.stop.directive == "pause":
            _leave_checkpoint(work, reading, hold.stop.why)
            _hand_in(work, what="release", message=hold.stop.why)
        return _done(work, "stopped", hold.stop.why)
    if failure is None:
        return _submit(work, reading)
    if ended.why == "interrupted":
        _leave_checkpoint(work, reading, "the runner was stopped")
        return _told(work, _hand_in(work, what="release", message="the runner was stopped"), "released")
    return _fail(work, failure)


def failure_of(ended: Ended, reading: Reading, *, is_namespace: bool = False) -> Failure | None:
    """How the agent failed; None where it has finished."""
    if ended.failed is not None:
        return Failure("environment", ended.failed)
    if ended.is_lost:
        return Failure("crash", "the process that kept the agent was killed")
    if ended.why == "timeout":
        return Failure("timeout", "it took longer than it was given")
    if ended.why in STOPPED_BY_US and not (reading.is_whole and reading.failure is None):
        return Failure("task", f"it was stopped: {ended.why}")
    code = ended.code or 0
    if is_namespace and code > 128:
        code = 128 - code  # bwrap tells of a signal as a shell does
    if code < 0 and ended.why is None:
        return Failure("crash", f"it was ended by {_signal_name(-code)}")
    return reading.failure


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _look_once_more(work: Work) -> None:
    """The agent may have ended its claim a moment ago: what it said afterwards is no second result."""
    try:
        with work.hold.mutex:
            work.hold.look()
    except TenureError:
        pass  # the store is away: there will be time to hear of it


# --- telling ------------------------------------------------------------------------------------------------


def _submit(work: Work, reading: Reading) -> Done:
    text = reading.text if len(reading.text) <= MOST_TEXT else "… " + reading.text[-MOST_TEXT:]
    data: Any = reading.data
    if data is None and is_judged(work.task):
        data = said(work.task, text)
    elif data is None:
        data = {"output": text, "transcript": _transcript(work)}
        if reading.session:
            data["session"] = reading.session
    summary = (reading.summary or _beginning(reading.text))[:MOST_SUMMARY]
    fields: dict[str, Any] = {"what": "submit", "data": data, "summary": summary}
    if is_checked_later(work.task):
        work.keep_transcript()  # whoever refuses it may be quick
    try:
        if work.tree is not None:
            fields |= _committed(work, data, summary)
        outcome = _hand_in(work, **fields)
    except TenureError as error:
        return _fail(work, _failure_by(error))
    if outcome is not None and outcome.outcome == "INVALID_OUTPUT":
        return _fail(work, Failure("invalid_output", outcome.message))
    if outcome is not None and outcome.outcome == "VALIDATING":
        return _validated(work, outcome)
    if outcome is not None and outcome.outcome == "CHANGED":
        return _outdated(work, reading, outcome)
    return _told(work, outcome, "waiting" if outcome is not None and outcome.outcome == "REVIEW" else "completed")


def _outdated(work: Work, reading: Reading, refused: Outcome) -> Done:
    """The agent has worked by an older description and is gone: the next one begins with the new text."""
    why = f"the description was changed while the agent worked:\n{refused.diff}"
    _leave_checkpoint(work, reading, why[:4000])
    return _told(work, _hand_in(work, what="release", message="the description was changed"), "released")


def _validated(work: Work, submitted: Outcome) -> Done:
    """Checked here and now, while the worktree is there; what cannot be is left to whoever can."""
    from tenure.agents.examining import Examiner, tools_for, verdict_outcome

    work.hold.close()  # the claim has ended: there is nothing to renew, or to take again
    options = work.options
    examiner = Examiner(
        work.checker, tools_for(options.folder, options.environ), say=work.say,
        is_wanted=lambda: not work.ground.stopping.is_set(),
    )  # fmt: skip
    try:
        examined = examiner.examine_task(work.hold.id)
    except TenureError as error:
        examined = error.message
    if isinstance(examined, str):
        work.say(f"{work.key}: handed in; {examined}")
        return _done(work, "validating", examined)
    outcome = replace(verdict_outcome(submitted, examined), usage=submitted.usage)
    if outcome.outcome == "INVALID_OUTPUT":
        return _told(work, replace(outcome, outcome="OK"), "failed", Failure("invalid_output", outcome.message))
    return _told(work, outcome, "completed" if outcome.outcome == "ACCEPTED" else "validating")


def _committed(work: Work, data: Any, summary: str) -> dict[str, Any]:
    """What is handed in with the commits of a worktree, or to be landed first."""
    assert work.tree is not None
    where = work.tree.commit(f"{work.task.get('ref', work.key)}: {work.task['title']}\n\n{summary}\n")
    if work.options.land:
        folder = work.options.folder
        return {"what": "land", "folder": folder, "branch": work.tree.branch, "onto": work.tree.made.onto}
    counted = work.tree.changed()
    if is_judged(work.task):
        at = f" (branch {where['branch']}, commit {where['commit']})"
        return {
            "summary": summary[: MOST_SUMMARY - len(at)] + at, "lines": counted.lines,
            "test_files": counted.test_files,
        }  # fmt: skip
    return {
        "data": {**data, **where} if isinstance(data, dict) else {**where, "result": data},
        "lines": counted.lines, "test_files": counted.test_files,
    }  # fmt: skip


def _failure_by(error: TenureError) -> Failure:
    """What a result that cannot be handed in says of the attempt."""
    if error.code in ("MERGE_CONFLICT", "COMMIT_REFUSED", "HOOK_REFUSED", "TREE_NOT_CLEAN"):
        return Failure("task", f"{error.message}; {error.hint}" if error.hint else error.message)
    if isinstance(error, InvalidInput):
        return Failure("invalid_output", f"the result cannot be stored: {error.message}")
    return Failure("environment", error.message)


def _fail(work: Work, failure: Failure) -> Done:
    work.keep_transcript()
    outcome = _hand_in(
        work, what="fail", error_class=failure.error_class, message=failure.message, retry_after=failure.retry_after,
        model=failure.model,
    )  # fmt: skip
    done = _told(work, outcome, "failed", failure)
    if work.chosen is None or failure.error_class != "environment" or "model" not in failure.message.lower():
        return done
    work.say(f"{work.chosen} is not for {work.options.cli.program}, which chooses its own from now on; see tiers")
    return done._replace(unknown_model=work.chosen)


def _told(work: Work, outcome: Outcome | None, what: str, failure: Failure | None = None) -> Done:
    if outcome is None:
        work.say(f"{work.key}: what is finished is kept in the outbox; `tenure run` hands it in when it starts")
        return _done(work, "kept", "the store has not answered", failure)
    if not outcome.ok:
        work.say(f"{work.key}: refused: {outcome.message}" + (f"; {outcome.hint}" if outcome.hint else ""))
        return _done(work, "refused", outcome.message, failure)
    if failure is None:
        done = _done(work, what, outcome.work_product or "")
        work.say(f"{work.key}: {what} after {done.seconds:.0f} s{_cost(done, outcome.usage)}")
        return done
    lines = failure.message.strip().splitlines() or [""]
    work.say(f"{work.key}: failed ({failure.error_class}): {lines[-1].strip()[:300]}; it is {outcome.state} now")
    return _done(work, what, failure.message, failure)


def _cost(done: Done, booked: Mapping[str, Any] | None) -> str:
    """What the agent says, else what the store has worked out of its tokens."""
    spent = [parse_usd(totals.cost_usd) for totals in done.usage if totals.cost_usd is not None]
    if spent:
        return f", ${usd_text(sum(spent))}"
    return f", ≈ ${booked['cost_usd']}" if booked and booked.get("cost_usd") else ""


def _done(work: Work, what: str, message: str, failure: Failure | None = None) -> Done:
    return Done(
        agent=work.agent, key=work.key, generation=work.hold.generation, what=what, message=message,
        error_class=failure.error_class if failure else None, retry_after=failure.retry_after if failure else None,
        transcript=work.transcript.path, seconds=round(time.monotonic() - work.began, 3), usage=work.usage(),
    )  # fmt: skip


def _hand_in(work: Work, **fields: Any) -> Outcome | None:
    """The store's answer; None where the runner must go before there is one. It is in the outbox from the first."""
    outbox, hold = work.ground.outbox, work.hold
    path, wait = "", 0.1
    while True:
        with hold.mutex:  # the receipt may become another's between two tries, never within one
            finished = Finished(
                project=work.client.project, key=work.key, receipt=hold.receipt, request_id=work.client.session,
                usage=work.spending.own(work.usage()), process=work.ground.process, **fields,
            )  # fmt: skip
            older, path = path, _kept(work, finished)
            if older not in ("", path):
                outbox.answered(older)
            try:
                outcome = send(work.client, finished)
                work.spending.told(work.usage())
                if is_unknown(finished, outcome):
                    work.say(f"{work.key}: this store does not know the claim: it is another store")
                    return None
                outbox.answered(path)
                return outcome
            except StoreError as error:
                if wait == 0.1:
                    work.say(f"{work.key}: cannot be handed in yet: {error.message}")
            except NotFound as error:
                work.say(f"{work.key}: {error.message}: it is another store")
                return None
            except InvalidInput:
                outbox.refused(path)
                raise
            except TenureError:
                outbox.answered(path)  # what is told instead is put there in its turn
                raise
        if work.ground.stopping.wait(wait):
            return None
        wait = min(SLOWEST, wait * 2)


def _kept(work: Work, finished: Finished) -> str:
    """The path of the outbox's file; empty where there is no room for one, and only the store is left to try."""
    try:
        return work.ground.outbox.put(finished)
    except OSError as error:
        work.say(f"{work.key}: cannot be kept in the outbox: {error}")
        return ""


def _leave_checkpoint(work: Work, reading: Reading, why: str) -> None:
    """For whoever goes on; unless the agent has left one itself."""
    notes: dict[str, Any] = {"why": why, "last_words": reading.text[-2000:], "transcript": _transcript(work)}
    if work.tree is not None:
        try:
            notes |= work.tree.commit(f"{work.key}: what there was when it was stopped\n")
        except TenureError as error:
            work.say(f"{work.key}: {error.message}")
    kept = {"next_action": "go on where the agent before was stopped", "notes": notes}

    def leave() -> None:
        checkpoint = work.client.show(work.hold.id).get("checkpoint") or {}
        if checkpoint.get("generation") != work.hold.generation:
            work.client.checkpoint(work.hold.receipt, kept)

    work.tell(leave)


def _transcript(work: Work) -> str:
    return os.path.relpath(work.transcript.path, work.options.home.root)


def _beginning(text: str) -> str:
    """The first lines of what the agent said, as a summary."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines)[:MOST_SUMMARY]
