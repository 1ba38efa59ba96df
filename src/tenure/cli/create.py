"""`add`, `link`, `unlink`, `publish`: tasks and their dependencies."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from tenure.cli.main import Answer, Run, answered, arg, options, verb_of
from tenure.cli.option_kinds import In, contents, contract, instant, json_value, priority, retry_policy, seconds, secret
from tenure.core import commands as c
from tenure.core.commands import Dependency, NewTask
from tenure.core.errors import InvalidInput

# Options for single fields of a task, for `add` and `edit` alike.
FIELDS = (
    arg("-d", "--description", type=contents, metavar="TEXT", help="the description: text, @FILE, or - for stdin"),
    arg(
        "-p",
        "--priority",
        type=priority,
        metavar="P",
        help="critical, high, normal, low, background; or 0 (first) to 100",
    ),
    arg("-t", "--tag", action="append", metavar="TAG", help="a tag (may be repeated)"),
    arg("--deadline", type=instant, metavar="WHEN", help="2026-03-01T12:00Z, a date, or 2h, 3d from now"),
    arg("--cap", action="append", metavar="NAME", help="a capability that an agent must have (may be repeated)"),
    arg("--touches", action="append", metavar="GLOB", help="paths it will change (may be repeated)"),
    arg("--spec", type=json_value, metavar="JSON", help="the specification, as an object"),
    arg("--metadata", type=json_value, metavar="JSON", help="your own data, as an object"),
    arg("--max-attempts", type=int, metavar="N", help="failed attempts before it becomes a dead letter"),
    arg("--validate", type=contract, metavar="HOW",
        help="how its output is checked: review, test-pass=COMMAND, regex=PATTERN, json-schema=@FILE, "
        "llm-judge=RUBRIC, none; or a plug-in's name=JSON of its settings"),
)  # fmt: skip


def fields_of(given: Namespace) -> dict[str, Any]:
    """The fields that were given, by the names of NewTask."""
    fields: dict[str, Any] = {
        "description": given.description, "priority": given.priority, "spec": given.spec,
        "metadata": given.metadata, "max_attempts": given.max_attempts,
        "tags": given.tag and tuple(given.tag), "touches": given.touches and tuple(given.touches),
        "constraints": given.cap and {"required_capabilities": list(given.cap)},
        "output": given.validate,
        **_when("deadline", given.deadline),
    }  # fmt: skip
    return {name: value for name, value in fields.items() if value is not None}


def _when(name: str, when: int | In | None) -> dict[str, Any]:
    """A duration stays one: it counts from the store's clock."""
    return {f"{name}_in": float(when)} if isinstance(when, In) else {name: when}


@options(
    arg("title", help="what to do, in one line"),
    arg("--track", metavar="CODE", help="the track, as B or C (else the project's default)"),
    arg("--after", action="append", default=[], metavar="TASK", help="waits for this task (may be repeated)"),
    arg("--on-failure", choices=("block", "cancel", "ignore"), default="block",
        help="what a failed dependency means"),
    arg("--parent", metavar="TASK", help="make it a subtask of this one"),
    arg("--type", metavar="NAME", help="what kind of work: code, research, review …"),
    arg("--context", action="append", default=[], type=contents, metavar="TEXT",
        help="what the agent should know: text, @FILE, or - for stdin (may be repeated)"),
    arg("--ref", action="append", default=[], metavar="REF",
        help="task:KEY:output or artifact:KEY/NAME, passed on with the claim (may be repeated)"),
    arg("--secret", action="append", default=[], type=secret, metavar="NAME=VALUE",
        help="sealed, for the holder alone: VALUE, @FILE, - for stdin, or env:VARIABLE (may be repeated)"),
    arg("--not-before", type=instant, metavar="WHEN", help="not claimable before then"),
    arg("--key", metavar="KEY", help="its key, as B-003-write-the-tests (else made from track and title)"),
    arg("--idempotency-key", metavar="TEXT", help="a retry with the same text creates nothing twice"),
    arg("--draft", action="store_true", help="not claimable until published"),
    arg("--complexity", type=float, metavar="POINTS", help="complexity from 1 to 10, for estimates and model choice"),
    arg("--tokens", type=int, metavar="N", help="expected tokens, if known"),
    arg("--model", action="append", metavar="NAME", help="the model to use (may be repeated, the best first)"),
    arg("--fallback-model", action="append", metavar="NAME", help="a model to use after two failed attempts"),
    arg("--max-cost", metavar="USD", help="dollars that it may cost"),
    arg("--max-duration", type=seconds, metavar="DURATION", help="how long an attempt may take, as in 2h"),
    arg("--estimate", type=seconds, metavar="DURATION", help="how long it will probably take"),
    arg("--needs", action="append", metavar="NAME", help="reserved with the claim, as in env:staging, port:8080"),
    arg("--retry", type=retry_policy, metavar="HOW",
        help="exponential, fixed or immediate; or the policy as a JSON object"),
    *FIELDS,
)  # fmt: skip
def add(run: Run, given: Namespace) -> Answer:
    """Add a task. `--after` adds dependencies; `--touches` keeps two agents off the same files."""
    fields = fields_of(given)
    if run.client.is_remote:  # a server has its own settings, and those of this folder come first
        for name in ("priority", "max_attempts", "on_lost"):
            if name not in fields and (default := run.setting(f"tasks.{name}")) is not None:
                fields[name] = default
    if given.ref:
        fields["spec"] = {**fields.get("spec", {}), "context_refs": given.ref}
    if given.context:
        fields["spec"] = {**fields.get("spec", {}), "context": "\n\n".join(given.context)}
    if given.secret:
        fields["spec"] = with_secrets(fields.get("spec", {}), given.secret)
    if given.retry is not None:
        fields["retry"] = given.retry
    if given.not_before is not None:
        fields |= _when("not_before", given.not_before)
    for name in ("track", "parent", "type", "key"):
        if getattr(given, name) is not None:
            fields[name] = getattr(given, name)
    constraints = {
        "complexity": given.complexity, "estimated_tokens": given.tokens, "model_preferences": given.model,
        "fallback_models": given.fallback_model, "max_cost_usd": given.max_cost, "max_duration": given.max_duration,
        "estimated_duration": given.estimate, "needs": given.needs,
    }  # fmt: skip
    constraints = {name: value for name, value in constraints.items() if value is not None}
    if constraints:
        fields["constraints"] = {**fields.get("constraints", {}), **constraints}
    after = [Dependency(task=name, on_failure=given.on_failure) for name in given.after]
    fields["idempotency_key"] = given.idempotency_key
    outcome = run.client.add(given.title, after=after, draft=given.draft, **fields)
    answer = answered(outcome)
    task = outcome.task
    # Scripts need the task; the outcome is added to it.
    value = {**answer.value.pop("task"), **answer.value}
    waits = f", waits for {', '.join(given.after)}" if given.after and task["state"] == "pending" else ""
    # A number says nothing of its tier; the default needs no word.
    is_usual = given.priority is None and task["tier"] == "normal"
    tier = "" if is_usual else f", {task['tier']} ({task['priority']})"
    return Answer(value, f"{task['key']}  {task['state']}{tier}{waits}", answer.code)


def with_secrets(spec: dict[str, Any], secrets: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The specification with these secrets in its context; a context that is a text becomes its part `text`."""
    context = spec.get("context", {})
    context = dict(context) if isinstance(context, dict) else {"text": context}
    given: dict[str, Any] = {}
    for name, value in secrets:
        if name in given:
            raise InvalidInput(f"the secret {name} is given twice", "give each name once")
        given[name] = {"$secret": value}
    return {**spec, "context": context | given}


def tasks_of(listed: Any, titles: Iterable[str] = ()) -> list[NewTask]:
    """Tasks from a JSON list and from titles alone."""
    import msgspec

    if not isinstance(listed, list):
        raise InvalidInput('tasks: must be a list, as in [{"title": "Write the tests"}]')
    try:
        tasks = [msgspec.convert({"name": part.get("title"), **part}, NewTask) for part in listed]
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        raise InvalidInput(f"tasks: {error}") from None
    return [*tasks, *(NewTask(title=title, name=title) for title in titles)]


DEPENDENT = arg("task", help="the dependent task")

link = verb_of(
    c.Link,
    "Make one task depend on another. A cycle is refused, and printed.",
    DEPENDENT,
    arg("needs", help="the dependency"),
    arg("--on-failure", choices=("block", "cancel", "ignore"), default="block", help="what its failure means"),
)
unlink = verb_of(c.Unlink, "Remove a dependency.", DEPENDENT, arg("needs", help="the dependency to remove"))
publish = verb_of(
    c.Publish,
    "Publish a draft, or all drafts of a dag.",
    arg("task", nargs="?", help="the draft"),
    arg("--dag", metavar="ID", help="all drafts of this dag"),
)
