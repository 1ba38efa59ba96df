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

from tenure.agents.runner.agent_output import AgentOutput, Failure
from tenure.agents.runner.outbox import Finished, is_unknown, send
from tenure.agents.runner.result_data import is_checked_later, is_judged, said
from tenure.agents.runner.shared import AttemptEnd
from tenure.core.errors import InvalidInput, NotFound, StoreError, TenureError
from tenure.core.money import parse_usd, usd_text
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.processes.supervisor import Ended

if TYPE_CHECKING:
    from tenure.agents.runner.attempt import Attempt

MOST_TEXT = 128 << 10  # characters of an agent's last words that are handed in
MOST_SUMMARY = 1000
SLOWEST = 5.0  # seconds between tries while the store is away
STOPPED_BY_US = ("interrupted", "settled", "cancel", "pause", "abort")


def conclude(attempt: Attempt, ended: Ended, output: AgentOutput) -> AttemptEnd:
    """Tell what became of it, and keep what the agent said: with a result that comes after, else before.

    A result must not wait for megabytes of talk. But once an attempt is given up another may begin at any moment, and
    nothing more is taken of this one then.
    """
    done = _conclude(attempt, ended, output)
    attempt.keep_transcript()
    return done


def _conclude(attempt: Attempt, ended: Ended, output: AgentOutput) -> AttemptEnd:
    for note in output.notes:
        attempt.say(f"{attempt.key}: {note}")
    _look_once_more(attempt)
    claim = attempt.claim
    if claim.own_ending is not None:
        attempt.tell(attempt.tell_usage)
        return _done(attempt, claim.own_ending.what, claim.own_ending.sentence)
    failure = failure_of(ended, output, is_namespace=attempt.options.bwrap is not None)
    if failure is not None:
        attempt.keep_transcript()
    if claim.stop is not None and (failure is not None or claim.stop.directive == "cancel"):
        attempt.tell(attempt.tell_usage)
        if claim.stop.directive == "pause":
            _leave_checkpoint(attempt, output, claim.stop.why)
            _send(attempt, what="release", message=claim.stop.why)
        return _done(attempt, "stopped", claim.stop.why)
    if failure is None:
        return _submit(attempt, output)
    if ended.why == "interrupted":
        _leave_checkpoint(attempt, output, "the runner was stopped")
        return _reported(attempt, _send(attempt, what="release", message="the runner was stopped"), "released")
    return _fail(attempt, failure)


def failure_of(ended: Ended, output: AgentOutput, *, is_namespace: bool = False) -> Failure | None:
    """How the agent failed; None where it has finished."""
    if ended.failed is not None:
        return Failure("environment", ended.failed)
    if ended.is_lost:
        return Failure("crash", "the process that kept the agent was killed")
    if ended.why == "timeout":
        return Failure("timeout", "it took longer than it was given")
    if ended.why in STOPPED_BY_US and not (output.is_whole and output.failure is None):
        return Failure("task", f"it was stopped: {ended.why}")
    code = ended.code or 0
    if is_namespace and code > 128:
        code = 128 - code  # bwrap tells of a signal as a shell does
    if code < 0 and ended.why is None:
        return Failure("crash", f"it was ended by {_signal_name(-code)}")
    return output.failure


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _look_once_more(attempt: Attempt) -> None:
    """The agent may have ended its claim a moment ago: what it said afterwards is no second result."""
    try:
        with attempt.claim.mutex:
            attempt.claim.look()
    except TenureError:
        pass  # the store is away: there will be time to hear of it


# --- telling ------------------------------------------------------------------------------------------------


def _submit(attempt: Attempt, output: AgentOutput) -> AttemptEnd:
    text = output.text if len(output.text) <= MOST_TEXT else "… " + output.text[-MOST_TEXT:]
    data: Any = output.data
    if data is None and is_judged(attempt.task):
        data = said(attempt.task, text)
    elif data is None:
        data = {"output": text, "transcript": _transcript(attempt)}
        if output.session:
            data["session"] = output.session
    summary = (output.summary or _beginning(output.text))[:MOST_SUMMARY]
    fields: dict[str, Any] = {"what": "submit", "data": data, "summary": summary}
    if is_checked_later(attempt.task):
        attempt.keep_transcript()  # whoever refuses it may be quick
    try:
        if attempt.tree is not None:
            fields |= _committed(attempt, data, summary)
        outcome = _send(attempt, **fields)
    except TenureError as error:
        return _fail(attempt, _failure_by(error))
    if outcome is not None and outcome.outcome == "INVALID_OUTPUT":
        return _fail(attempt, Failure("invalid_output", outcome.message))
    if outcome is not None and outcome.outcome == "VALIDATING":
        return _validated(attempt, outcome)
    if outcome is not None and outcome.outcome == "CHANGED":
        return _outdated(attempt, output, outcome)
    is_review = outcome is not None and outcome.outcome == "REVIEW"
    return _reported(attempt, outcome, "waiting" if is_review else "completed")


def _outdated(attempt: Attempt, output: AgentOutput, refused: Outcome) -> AttemptEnd:
    """The agent has worked by an older description and is gone: the next one begins with the new text."""
    why = f"the description was changed while the agent worked:\n{refused.diff}"
    _leave_checkpoint(attempt, output, why[:4000])
    return _reported(attempt, _send(attempt, what="release", message="the description was changed"), "released")


def _validated(attempt: Attempt, submitted: Outcome) -> AttemptEnd:
    """Checked here and now, while the worktree is there; what cannot be is left to whoever can."""
    from tenure.agents.result_checker import ResultChecker, tools_for, verdict_outcome

    attempt.claim.close()  # the claim has ended: there is nothing to renew, or to take again
    options = attempt.options
    checker = ResultChecker(
        attempt.checker,
        tools_for(options.folder, options.environ),
        say=attempt.say,
        is_wanted=lambda: not attempt.shared.stopping.is_set(),
    )
    try:
        checked = checker.check_task(attempt.claim.id)
    except TenureError as error:
        checked = error.message
    if isinstance(checked, str):
        attempt.say(f"{attempt.key}: handed in; {checked}")
        return _done(attempt, "validating", checked)
    outcome = replace(verdict_outcome(submitted, checked), usage=submitted.usage)
    if outcome.outcome == "INVALID_OUTPUT":
        return _reported(attempt, replace(outcome, outcome="OK"), "failed", Failure("invalid_output", outcome.message))
    return _reported(attempt, outcome, "completed" if outcome.outcome == "ACCEPTED" else "validating")


def _committed(attempt: Attempt, data: Any, summary: str) -> dict[str, Any]:
    """What is handed in with the commits of a worktree, or to be landed first."""
    assert attempt.tree is not None
    where = attempt.tree.commit(f"{attempt.task.get('ref', attempt.key)}: {attempt.task['title']}\n\n{summary}\n")
    if attempt.options.land:
        folder = attempt.options.folder
        return {"what": "land", "folder": folder, "branch": attempt.tree.branch, "onto": attempt.tree.made.onto}
    counted = attempt.tree.changed()
    if is_judged(attempt.task):
        at = f" (branch {where['branch']}, commit {where['commit']})"
        return {
            "summary": summary[: MOST_SUMMARY - len(at)] + at,
            "lines": counted.lines,
            "test_files": counted.test_files,
        }
    return {
        "data": {**data, **where} if isinstance(data, dict) else {**where, "result": data},
        "lines": counted.lines,
        "test_files": counted.test_files,
    }


def _failure_by(error: TenureError) -> Failure:
    """What a result that cannot be handed in says of the attempt."""
    if error.code in ("MERGE_CONFLICT", "COMMIT_REFUSED", "HOOK_REFUSED", "TREE_NOT_CLEAN"):
        return Failure("task", f"{error.message}; {error.hint}" if error.hint else error.message)
    if isinstance(error, InvalidInput):
        return Failure("invalid_output", f"the result cannot be stored: {error.message}")
    return Failure("environment", error.message)


def _fail(attempt: Attempt, failure: Failure) -> AttemptEnd:
    attempt.keep_transcript()
    outcome = _send(
        attempt,
        what="fail",
        error_class=failure.error_class,
        message=failure.message,
        retry_after=failure.retry_after,
        model=failure.model,
    )
    done = _reported(attempt, outcome, "failed", failure)
    if attempt.chosen is None or failure.error_class != "environment" or "model" not in failure.message.lower():
        return done
    attempt.say(f"{attempt.options.cli.program} does not know {attempt.chosen} and uses its default from now on")
    return done._replace(unknown_model=attempt.chosen)


def _reported(attempt: Attempt, outcome: Outcome | None, what: str, failure: Failure | None = None) -> AttemptEnd:
    if outcome is None:
        attempt.say(f"{attempt.key}: what is finished is kept in the outbox; `tenure run` hands it in when it starts")
        return _done(attempt, "kept", "the store has not answered", failure)
    if not outcome.ok:
        attempt.say(f"{attempt.key}: refused: {outcome.message}" + (f"; {outcome.hint}" if outcome.hint else ""))
        return _done(attempt, "refused", outcome.message, failure)
    if failure is None:
        done = _done(attempt, what, outcome.work_product or "")
        attempt.say(f"{attempt.key}: {what} after {done.seconds:.0f} s{_cost(done, outcome.usage)}")
        return done
    lines = failure.message.strip().splitlines() or [""]
    attempt.say(f"{attempt.key}: failed ({failure.error_class}): {lines[-1].strip()[:300]}; it is {outcome.state} now")
    return _done(attempt, what, failure.message, failure)


def _cost(done: AttemptEnd, booked: Mapping[str, Any] | None) -> str:
    """What the agent says, else what the store has worked out of its tokens."""
    spent = [parse_usd(totals.cost_usd) for totals in done.usage if totals.cost_usd is not None]
    if spent:
        return f", ${usd_text(sum(spent))}"
    return f", ≈ ${booked['cost_usd']}" if booked and booked.get("cost_usd") else ""


def _done(attempt: Attempt, what: str, message: str, failure: Failure | None = None) -> AttemptEnd:
    return AttemptEnd(
        agent=attempt.agent,
        key=attempt.key,
        generation=attempt.claim.generation,
        what=what,
        message=message,
        error_class=failure.error_class if failure else None,
        retry_after=failure.retry_after if failure else None,
        transcript=attempt.transcript.path,
        seconds=round(time.monotonic() - attempt.began, 3),
        usage=attempt.usage(),
    )


def _send(attempt: Attempt, **fields: Any) -> Outcome | None:
    """The store's answer; None where the runner must go before there is one. It is in the outbox from the first."""
    outbox, claim = attempt.shared.outbox, attempt.claim
    path, wait = "", 0.1
    while True:
        with claim.mutex:  # the receipt may become another's between two tries, never within one
            finished = Finished(
                project=attempt.client.project,
                key=attempt.key,
                receipt=claim.receipt,
                request_id=attempt.client.session,
                usage=attempt.claim_usage.own(attempt.usage()),
                process=attempt.shared.process,
                **fields,
            )
            older, path = path, _kept(attempt, finished)
            if older not in ("", path):
                outbox.answered(older)
            try:
                outcome = send(attempt.client, finished)
                attempt.claim_usage.told(attempt.usage())
                if is_unknown(finished, outcome):
                    attempt.say(f"{attempt.key}: this store does not know the claim: it is another store")
                    return None
                outbox.answered(path)
                return outcome
            except StoreError as error:
                if wait == 0.1:
                    attempt.say(f"{attempt.key}: cannot be handed in yet: {error.message}")
            except NotFound as error:
                attempt.say(f"{attempt.key}: {error.message}: it is another store")
                return None
            except InvalidInput:
                outbox.refused(path)
                raise
            except TenureError:
                outbox.answered(path)  # what is told instead is put there in its turn
                raise
        if attempt.shared.stopping.wait(wait):
            return None
        wait = min(SLOWEST, wait * 2)


def _kept(attempt: Attempt, finished: Finished) -> str:
    """The path of the outbox's file; empty where there is no room for one, and only the store is left to try."""
    try:
        return attempt.shared.outbox.put(finished)
    except OSError as error:
        attempt.say(f"{attempt.key}: cannot be kept in the outbox: {error}")
        return ""


def _leave_checkpoint(attempt: Attempt, output: AgentOutput, why: str) -> None:
    """For whoever goes on; unless the agent has left one itself."""
    notes: dict[str, Any] = {"why": why, "last_words": output.text[-2000:], "transcript": _transcript(attempt)}
    if attempt.tree is not None:
        try:
            notes |= attempt.tree.commit(f"{attempt.key}: what there was when it was stopped\n")
        except TenureError as error:
            attempt.say(f"{attempt.key}: {error.message}")
    kept = {"next_action": "go on where the agent before was stopped", "notes": notes}

    def leave() -> None:
        checkpoint = attempt.client.show(attempt.claim.id).get("checkpoint") or {}
        if checkpoint.get("generation") != attempt.claim.generation:
            attempt.client.checkpoint(attempt.claim.receipt, kept)

    attempt.tell(leave)


def _transcript(attempt: Attempt) -> str:
    return os.path.relpath(attempt.transcript.path, attempt.options.home.root)


def _beginning(text: str) -> str:
    """The first lines of what the agent said, as a summary."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines)[:MOST_SUMMARY]
