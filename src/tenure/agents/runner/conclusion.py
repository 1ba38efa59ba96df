"""The report of a claim after its agent has ended, repeated until the store has answered.

| the agent | reported |
| --- | --- |
| ended its claim itself | usage only; what it submitted is checked and landed |
| finished | submit, also where the claim was lost meanwhile: the store decides, and keeps a refused result |
| was cancelled, or stopped because another agent has the task | usage only |
| was stopped by a pause, or with the runner | a checkpoint, then release: no attempt is lost |
| failed, crashed, was too slow | fail, with the class that its output gives |
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from tenure.agents.runner.agent_output import AgentOutput, Failure
from tenure.agents.runner.clis.cli import GENERIC
from tenure.agents.runner.outbox import Finished, is_unknown, named, send
from tenure.agents.runner.shared import AttemptEnd
from tenure.core import limits
from tenure.core.commands import Totals
from tenure.core.errors import PASSING, InvalidInput, NotFound, TenureError
from tenure.core.land_request import JUDGE, LandRequest
from tenure.core.lifecycle import COMPLETED, VALIDATING, spoken
from tenure.core.money import parse_usd, usd_text
from tenure.core.outcomes import Outcome
from tenure.core.records import replace
from tenure.core.redaction import without_secrets
from tenure.core.safe_text import storable
from tenure.core.validation import BEFORE, NONE, validator_of
from tenure.processes.supervisor import Ended

if TYPE_CHECKING:
    from tenure.agents.runner.attempt import Attempt
    from tenure.agents.runner.held_claim import OwnEnding

MOST_TEXT = limits.AGENT_MESSAGE
MOST_SUMMARY = limits.SUMMARY
SLOWEST = 5.0  # seconds between tries while the store is unavailable
_FENCED = re.compile(r"^```[a-zA-Z]*[ \t]*\n(.*?)\n```[ \t]*$", re.DOTALL | re.MULTILINE)
STOPPED_BY_US = ("interrupted", "settled", "cancel", "pause", "abort")


def conclude(attempt: Attempt, ended: Ended, output: AgentOutput) -> AttemptEnd:
    """Report the end to the store and keep the transcript: after a result, before anything else.

    A result must not wait for megabytes of transcript. But once an attempt has failed, the next may begin at any
    moment, and the store takes nothing more of this one.
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
        attempt.try_to(attempt.report_usage)
        return _settled(attempt, claim.own_ending)
    failure = failure_of(ended, output, is_namespace=attempt.options.bwrap is not None)
    if failure is None and attempt.options.cli.type != GENERIC and not did_anything(output, attempt.usage()):
        failure = Failure("environment", f"{attempt.options.cli.program} ended without a message and used no tokens")
    if failure is not None:
        attempt.keep_transcript()
    if claim.stop is not None and (failure is not None or claim.stop.directive == "cancel"):
        attempt.try_to(attempt.report_usage)
        if claim.stop.directive == "pause":
            _leave_checkpoint(attempt, output, claim.stop.why)
            _stopped(attempt, claim.stop.why)
        return _done(attempt, "stopped", claim.stop.why)
    if failure is None:
        return _submit(attempt, output)
    if ended.why == "interrupted":
        _leave_checkpoint(attempt, output, "the runner was stopped")
        return _reported(attempt, _stopped(attempt, "the runner was stopped"), "released")
    return _fail(attempt, failure)


def failure_of(ended: Ended, output: AgentOutput, *, is_namespace: bool = False) -> Failure | None:
    """How the agent failed; None where it has finished."""
    if ended.failed is not None:
        return Failure("environment", ended.failed)
    if ended.is_lost:
        return Failure("crash", "the agent's supervisor was killed")
    if ended.why == "timeout":
        return Failure("timeout", "it exceeded its time limit")
    if ended.why in STOPPED_BY_US and not (output.is_whole and output.failure is None):
        return Failure("task", f"it was stopped: {ended.why}")
    code = ended.code or 0
    if is_namespace and code > 128:
        code = 128 - code  # bwrap reports a signal as a shell does
    if code < 0 and ended.why is None:
        return Failure("crash", f"it was ended by {_signal_name(-code)}")
    return output.failure


def did_anything(output: AgentOutput, usage: tuple[Totals, ...]) -> bool:
    """Whether an agent CLI that ended well has worked: some print an error that nobody understands, and exit with 0."""
    return bool(output.text.strip() or output.data is not None or usage)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _look_once_more(attempt: Attempt) -> None:
    """The agent may have ended its claim a moment ago: its last message is not a second result then."""
    try:
        with attempt.claim.mutex:
            attempt.claim.look()
    except TenureError:
        pass  # the store is unavailable: the submit will get its answer


# --- reports ------------------------------------------------------------------------------------------------


def _submit(attempt: Attempt, output: AgentOutput) -> AttemptEnd:
    text = output.text if len(output.text) <= MOST_TEXT else "… " + output.text[-MOST_TEXT:]
    data: Any = output.data
    if data is None and is_judged(attempt.task):
        data = result_data(attempt.task, text)
    elif data is None:
        data = {"output": text, "transcript": _transcript(attempt)}
        if output.session:
            data["session"] = output.session
    summary = (output.summary or _beginning(output.text))[:MOST_SUMMARY]
    fields: dict[str, Any] = {"what": "submit", "data": data, "summary": summary}
    if is_checked_later(attempt.task):
        attempt.keep_transcript()  # the verdict may come at once
    try:
        if attempt.tree is not None:
            fields |= _committed(attempt, data, summary)
        outcome = report(attempt, **fields)
    except TenureError as error:
        return _fail(attempt, _failure_by(error))
    if outcome is not None and outcome.outcome == "INVALID_OUTPUT":
        return _fail(attempt, Failure("invalid_output", outcome.message))
    if outcome is not None and outcome.outcome == "VALIDATING":
        return _validated(attempt, outcome, (outcome.validation or {}).get("phase", JUDGE))
    if outcome is not None and outcome.outcome == "CHANGED":
        return _outdated(attempt, output, outcome)
    if outcome is not None and not outcome.ok and attempt.claim.stop is not None:
        _leave_checkpoint(attempt, output, attempt.claim.stop.why)  # a person's pause holds the branch
    is_review = outcome is not None and outcome.outcome == "REVIEW"
    return _reported(attempt, outcome, "waiting" if is_review else "completed")


def _outdated(attempt: Attempt, output: AgentOutput, refused: Outcome) -> AttemptEnd:
    """The agent worked by an older description and has ended: the next one starts with the new text."""
    why = f"the description was changed while the agent worked:\n{refused.diff}"
    _leave_checkpoint(attempt, output, why[:4000])
    return _reported(attempt, _stopped(attempt, "the description was changed"), "released")


def _settled(attempt: Attempt, own: OwnEnding) -> AttemptEnd:
    """The agent has ended its claim: a result that it submitted is checked and landed as one of the runner is."""
    submitted: Mapping[str, Any] = {}
    if own.what == "completed":
        with suppress(TenureError):
            submitted = attempt.client.show(attempt.claim.id)
    check: Mapping[str, Any] = submitted.get("validation") or {}
    if submitted.get("state") != VALIDATING or check.get("generation") != attempt.claim.generation:
        return _done(attempt, own.what, own.sentence)
    return _validated(attempt, Outcome(outcome="VALIDATING", state=VALIDATING), check["phase"])


def _validated(attempt: Attempt, submitted: Outcome, phase: str) -> AttemptEnd:
    """Check and land at once, while the worktree is there; what cannot be done here is left to other processes."""
    attempt.claim.close()  # the claim has ended: there is nothing to renew
    if phase != JUDGE:
        return _landed(attempt, submitted)
    from tenure.agents.result_checker import ResultChecker, tools_for, verdict_outcome

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
        return _waits(attempt, checked)
    outcome = replace(verdict_outcome(submitted, checked), usage=submitted.usage)
    if outcome.outcome == "INVALID_OUTPUT":
        return _reported(attempt, replace(outcome, outcome="OK"), "failed", Failure("invalid_output", outcome.message))
    if outcome.outcome != "ACCEPTED" and checked.verdict is not None and checked.verdict.ok and checked.outcome.ok:
        return _landed(attempt, outcome)
    return _reported(attempt, outcome, "completed" if outcome.outcome == "ACCEPTED" else "validating")


def _landed(attempt: Attempt, submitted: Outcome) -> AttemptEnd:
    """The result has passed: its commit is put on its branch, by this process or by another that took it before."""
    from tenure.agents.landings import LANDED, REFUSED

    try:
        done = attempt.shared.lander(attempt.checker).land(
            attempt.claim.id, lambda: not attempt.shared.stopping.is_set()
        )
        state = done.outcome.state if done is not None else attempt.client.show(attempt.claim.id)["state"]
    except TenureError as error:
        return _waits(attempt, f"not landed yet: {error.message}")
    if done is not None and done.what == REFUSED:
        attempt.say(f"{attempt.key}: it is {spoken(state or '')} now")
        return _done(attempt, "failed", done.message, Failure(done.error_class or "task", done.message))
    if state == COMPLETED and (done is None or done.what == LANDED):
        return _reported(attempt, Outcome(outcome="ACCEPTED", usage=submitted.usage), "completed")
    return _done(attempt, "validating", done.message if done is not None else "it waits to be landed")


def _waits(attempt: Attempt, why: str) -> AttemptEnd:
    """Nothing lands before its verdict: the commits stay on the branch of the worktree, and the result names them."""
    tree = attempt.tree
    count = tree.commits() if attempt.options.land and tree is not None else 0
    said = f"; {count} commit{'' if count == 1 else 's'} on {tree.branch} until then" if count and tree else ""
    attempt.say(f"{attempt.key}: submitted; {why}{said}")
    return _done(attempt, "validating", why)


def _committed(attempt: Attempt, data: Any, summary: str) -> dict[str, Any]:
    """The fields of a submit that names the commits of a worktree, and asks for them to be landed."""
    tree, land = attempt.tree, None
    assert tree is not None
    where = tree.commit(f"{attempt.task.get('ref', attempt.key)}: {attempt.task['title']}\n\n{summary}\n")
    if attempt.options.land and not tree.commits():
        return {"data": data, "summary": summary, "lines": 0, "test_files": 0}
    if attempt.options.land:
        from tenure.agents.land import no_target

        land = LandRequest(commit=where["commit"], onto=tree.made.onto or no_target())
        where = where | {"branch": land.onto}  # where they are once the result counts
    counted = tree.changed()
    result = Finished(
        what="submit", project="", key="", receipt="", data=data, summary=summary, judged=is_judged(attempt.task)
    )
    submitted = named(result, where)
    return {
        "data": submitted.data, "summary": submitted.summary, "lines": counted.lines, "test_files": counted.test_files,
        "land": land,
    }  # fmt: skip


def _failure_by(error: TenureError) -> Failure:
    if error.code in ("MERGE_CONFLICT", "COMMIT_REFUSED", "HOOK_REFUSED", "TREE_NOT_CLEAN"):
        return Failure("task", f"{error.message}; {error.hint}" if error.hint else error.message)
    if isinstance(error, InvalidInput):
        return Failure("invalid_output", f"the result cannot be stored: {error.message}")
    return Failure("environment", error.message)


def _fail(attempt: Attempt, failure: Failure) -> AttemptEnd:
    attempt.keep_transcript()
    outcome = report(
        attempt,
        what="fail",
        error_class=failure.error_class,
        message=storable(failure.message, limits.TEXT_BYTES // 4),
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
        attempt.say(f"{attempt.key}: the result is kept in the outbox; the next `tenure run` submits it")
        return _done(attempt, "kept", "the store has not answered", failure)
    if not outcome.ok:
        attempt.say(f"{attempt.key}: refused: {outcome.message}" + (f"; {outcome.hint}" if outcome.hint else ""))
        return _done(attempt, "refused", outcome.message, failure)
    if failure is None:
        done = _done(attempt, what, outcome.work_product or "")
        attempt.say(f"{attempt.key}: {what} after {done.seconds:.0f} s{_cost(done, outcome.usage)}")
        return done
    lines = failure.message.strip().splitlines() or [""]
    now_is = spoken(outcome.state or "")
    attempt.say(f"{attempt.key}: failed ({failure.error_class}): {lines[-1].strip()[:300]}; it is {now_is} now")
    return _done(attempt, what, failure.message, failure)


def _cost(done: AttemptEnd, booked: Mapping[str, Any] | None) -> str:
    """The cost that the agent reports, else the cost that the store computed from tokens."""
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


def _stopped(attempt: Attempt, why: str) -> Outcome | None:
    """Release the task: the agent had to stop, and may get it again at once."""
    return report(attempt, what="release", message=why, stopped=True)


def report(attempt: Attempt, **fields: Any) -> Outcome | None:
    """The store's answer; None where the runner stops before there is one. It is in the outbox before the first try."""
    outbox, claim = attempt.shared.outbox, attempt.claim
    path, wait = "", 0.1
    while True:
        with claim.mutex:  # the receipt may change between two tries, never within one
            finished = Finished(
                project=attempt.client.project,
                key=attempt.key,
                receipt=claim.receipt,
                request_id=f"{attempt.word}.{fields['what']}",  # it may send two commands
                usage=attempt.claim_usage.own(attempt.usage()),
                process=attempt.shared.process,
                **fields,
            )
            older, path = path, _kept(attempt, finished)
            if older not in ("", path):
                outbox.answered(older)
            try:
                outcome = send(attempt.client, finished)
                attempt.claim_usage.reported(attempt.usage())
                if is_unknown(finished, outcome):
                    attempt.say(f"{attempt.key}: this store does not know the claim: it is a different store")
                    return None
                outbox.answered(path)
                if outcome.ok:
                    claim.finished()
                return outcome
            except PASSING as error:
                if wait == 0.1:
                    attempt.say(f"{attempt.key}: cannot be submitted yet: {error.message}")
            except NotFound as error:
                attempt.say(f"{attempt.key}: {error.message}: it is a different store")
                return None
            except InvalidInput:
                outbox.refused(path)
                raise
            except TenureError:
                outbox.answered(path)  # the failure that is reported instead gets its own entry
                raise
        if attempt.shared.stopping.wait(wait):
            return None
        wait = min(SLOWEST, wait * 2)


def _kept(attempt: Attempt, finished: Finished) -> str:
    """The path of the entry in the outbox; empty where it cannot be written, and only the store remains."""
    try:
        return attempt.shared.outbox.put(finished)
    except (OSError, ValueError) as error:  # of the disk, or of text that is not valid UTF-8
        attempt.say(f"{attempt.key}: cannot be kept in the outbox: {error}")
        return ""


def _leave_checkpoint(attempt: Attempt, output: AgentOutput, why: str) -> None:
    """For the next agent, unless this one saved a checkpoint itself."""
    notes: dict[str, Any] = {
        "why": why,
        "last_words": without_secrets(output.text)[-2000:],
        "transcript": _transcript(attempt),
    }
    if attempt.tree is not None:
        try:
            notes |= attempt.tree.commit(f"{attempt.key}: work in progress when it was stopped\n")
        except TenureError as error:
            attempt.say(f"{attempt.key}: {error.message}")
    kept = {"next_action": "continue where the previous agent was stopped", "notes": notes}

    def leave() -> None:
        checkpoint: Mapping[str, Any] = attempt.client.show(attempt.claim.id).get("checkpoint") or {}
        if checkpoint.get("generation") != attempt.claim.generation:
            attempt.client.checkpoint(attempt.claim.receipt, kept)

    attempt.try_to(leave)


def _transcript(attempt: Attempt) -> str:
    return os.path.relpath(attempt.transcript.path, attempt.options.home.root)


def _beginning(text: str) -> str:
    """The first lines of the agent's message, as a summary."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines)[:MOST_SUMMARY]


# --- the result in the last message, in the form that the task's contract requires ---------------------------
# Where a contract checks the data itself, the message is submitted without a wrapper, and the summary holds the rest.


def is_judged(task: Mapping[str, Any]) -> bool:
    """Does the contract check the data itself?"""
    return validator_of(task.get("output") or {}) in BEFORE


def is_checked_later(task: Mapping[str, Any]) -> bool:
    """Can a verdict after the submit fail the attempt?"""
    return validator_of(task.get("output") or {}) not in (NONE, *BEFORE)


def result_data(task: Mapping[str, Any], text: str) -> Any:
    """The data in a last message: its JSON where the contract has a schema and there is JSON, else the text."""
    return _json(text) if validator_of(task.get("output") or {}) == "json-schema" else text


def _json(text: str) -> Any:
    """From the whole message, or from its last fenced block."""
    for part in (text, *reversed(_FENCED.findall(text))):
        try:
            return msgspec.json.decode(part)
        except (msgspec.DecodeError, RecursionError):
            continue
    return text
