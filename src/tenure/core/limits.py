"""Every limit of every interface: its value, its unit, what it bounds, who may change it, and what happens there.

Modules read their constants from here, so that each number is written once; `docs/reference/limits.md` is generated
from it. A value is in the unit of the code that uses it: seconds (`s`) or microseconds (`us`) for times. Intervals of
polling, page sizes of one transaction and the layout of screens are not limits: they refuse, cut or delete nothing,
and stay next to their code.
"""

from __future__ import annotations

from typing import TypeVar

N = TypeVar("N", int, float)
# section, value, unit, the bounded thing, who may change it and where, what happens at the limit. Plain tuples: a class
# of rows would cost each start of the command line half a millisecond.
Row = tuple[str, float, str, str, str, str]

_rows: list[Row] = []
_sections = [""]
_KIB = 1024
_MIB = 1024 * _KIB
_US = 1_000_000
_MINUTES = 60
_HOURS = 3600
_DAYS = 24 * _HOURS
_FIXED = "fixed"
_CUT = "the rest is cut"
_EXPIRES = "it expires, and others may claim"
_INVALID = "refused with `INVALID_INPUT`"
_REACHED = "refused with `LIMIT_REACHED`"
_TOO_LARGE = "refused with `TOO_LARGE`"


def limit(value: N, unit: str, what: str, by: str, then: str) -> N:
    _rows.append((_sections[-1], value, unit, what, by, then))
    return value


def table() -> dict[str, Row]:
    """Name → row. A module keeps its names in the order of their definition, as `_rows` does."""
    names = [name for name in globals() if name.isupper() and not name.startswith("_") and name != "N"]
    return dict(zip(names, _rows, strict=True))


# fmt: off

_sections.append("Leases and deadlines")
LEASE = limit(300.0, "s", "a claim, when no lease is given", "argument `lease`, `Worker(lease=)`", _EXPIRES)
LEASE_IN_A_SHELL = limit(1800.0, "s", "a claim from the command line", "setting `lease`", _EXPIRES)
LEASE_MIN = limit(1.0, "s", "any lease", "project limit `min_lease`", _INVALID)
LEASE_MAX = limit(30.0 * _DAYS, "s", "any lease", "project limit `max_lease`", _INVALID)
UNATTENDED = limit(2 * _HOURS * _US, "us", "renewing a claim for an agent that does not act itself", _FIXED,
    "the lease is not extended further")
RESERVATION_LEASE = limit(1800.0, "s", "a reservation without a claim", "argument `lease`", _EXPIRES)
VALIDATION_LEASE = limit(60.0, "s", "taking a validation", "argument `lease`", "another validator may take it")
OFFER = limit(60.0, "s", "offering a task to one agent", "argument `seconds`", "the task is open to every agent again")
LEADER_LEASE = limit(30.0, "s", "leading the coordinator", "argument `lease`",
    "another process may lead, with the next term")
LEADER_BACK_OFF = limit(10.0, "s", "waiting after a failed round of duties", _FIXED, "the next round starts")
AGENT_LEADER_LEASE = limit(30 * _US, "us", "leading a project, as an agent whose commands renew it",
    "argument `lease` of `lead`", "another agent may lead, with the next term")
AGENT_LEADER_WRITTEN = limit(10 * _US, "us", "writing that renewal", _FIXED, "not written more often")
TRACK_IDLE = limit(10 * _MINUTES * _US, "us", "an agent that holds nothing on its track, with the router on", _FIXED,
    "the track is free for another agent")
ORDER_LONGEST = limit(4 * _HOURS * _US, "us", "an estimate in the order `shortest`; also a task without one", _FIXED,
    "counts as this long")
HUNG_TIMES = limit(3, "times", "work beyond its `estimated_duration` without progress", _FIXED,
    "the holder is warned")
HUNG_AFTER = limit(30 * _MINUTES * _US, "us", "work past its estimated end without progress", _FIXED,
    "the holder is warned")
ABORT_AFTER = limit(10 * _MINUTES * _US, "us", "silence after that warning", _FIXED,
    "the claim ends; the attempt counts")
TOOL_CALL_TEXT = limit(200, "characters", "a tool call in `tenure logs`", _FIXED, _CUT)
RUN_TIMEOUT = limit(3600.0, "s", "one agent process of `tenure run`", "setting `run.timeout`",
    "the process is stopped, the claim fails")
SPAWN_GRACE = limit(4.0, "s", "a spawned agent that is ended, from SIGTERM on", _FIXED, "its process tree is killed")
SPAWN_SECONDS = limit(10.0, "s", "one call of a spawner", _FIXED, "whether the agent runs is unknown")
SPAWN_FILE_KEPT = limit(3600.0, "s", "the file of a spawned process that has ended", _FIXED, "the file is removed")
GATEWAY_CHILDREN = limit(32, "agents", "agents of one gateway at once", "setting `gateway.size`",
    "refused with 429 `LIMIT_REACHED`")
GATEWAY_CHILDREN_MAX = limit(1000, "agents", "the setting `gateway.size`", _FIXED, "refused with exit code 2")
RESPONSE_WAIT = limit(60.0, "s", "one long poll over HTTP", "query `wait`, up to this",
    "the answer is `NO_TASK`; ask again")
CLOCK_AHEAD = limit(600 * _US, "us", "a host clock ahead of the store", "`tenure db clock`",
    "writes are refused with `CLOCK_JUMP`")
COOL_OFF_MAX = limit(30 * _MINUTES * _US, "us", "cooling off an agent or a model", _FIXED, "it may claim again")
COOL_OFF_OF_TASK = limit(10 * _MINUTES * _US, "us", "an agent that failed a task", _FIXED,
    "it may claim that task again")
COOL_OFF_AFTER_RELEASE = limit(5 * _MINUTES * _US, "us", "an agent that released a task", _FIXED,
    "it may claim that task again")
SPACING_MAX = limit(_HOURS * _US, "us", "waiting of a throttled claim", _FIXED,
    "the claim is granted if the budget allows it")
SCHEDULE_GRACE = limit(60 * _US, "us", "a tick that fires late", _FIXED,
    "a later tick is missed: the misfire policy decides")
KEY_GRACE = limit(30.0 * _DAYS, "s", "the old secret of a rotated key", "argument `grace`, up to this", _INVALID)
WEBHOOK_GRACE = limit(30.0 * _DAYS, "s", "the old secret of a rotated webhook", "argument `grace`, up to this",
    _INVALID)
FACTS_A_MINUTE = limit(60, "facts", "emitting, per principal and session", _FIXED, "refused with RATE_LIMITED")
CHANNEL_COMMAND = limit(8 * 1024, "bytes", "a command that a program sends to a channel of Redis", _FIXED, _INVALID)
CHANNEL_COMMANDS = limit(100, "commands", "one read of a channel of Redis", _FIXED, "the rest comes with the next read")
FACT_SIZE = limit(8 * 1024, "bytes", "the data of an emitted fact", _FIXED, _INVALID)
FILES_WATCHED = limit(200_000, "files", "files of the repository that are watched for triggers", _FIXED,
                      "later files are not watched")
FILES_IN_EVENT = limit(100, "paths", "changed files in one event", _FIXED, "the others are counted")
WEBHOOK_TOLERANCE = limit(300 * _US, "us", "the timestamp of a signed delivery", _FIXED, "the delivery is refused")
SIGN_IN_LIFETIME = limit(12 * _HOURS * _US, "us", "a dashboard session", _FIXED, "sign in again")
JWT_LIFETIME = limit(86400.0, "s", "a JWT, from `iat` to `exp`", "setting `serve.jwt_longest`", "refused with 401")
JWT_LEEWAY = limit(10, "s", "the clock of a JWT's issuer", _FIXED, "refused with 401")

_sections.append("Staleness")
AGENT_HEARTBEAT = limit(30.0, "s", "between two signs of life of an agent", "setting `agents.heartbeat`", "nothing")
HEALTH_MINUTES = limit(60, "minutes", "an agent's memory and CPU, one row a minute", _FIXED,
    "the oldest is overwritten")
HEARTBEAT_MEMORY = limit(1 << 30, "MB", "memory that a heartbeat may report", _FIXED, _INVALID)
HEARTBEAT_CPU = limit(1_000_000, "%", "CPU that a heartbeat may report, of one core", _FIXED, _INVALID)
PRESENCE_OF_READERS = limit(60 * _US, "us", "signs of life by commands that only read", _FIXED,
    "no other is written before")
AGENT_STALE = limit(180.0, "s", "an agent without a sign of life", "argument `stale_after` of `register`",
    "the agent is shown as stale (`agent.stale`)")
CLI_AGENT_STALE = limit(1800.0, "s", "an agent CLI or MCP client without a sign of life", _FIXED,
    "the agent is shown as stale")
PRESENCE = limit(15 * _US, "us", "writing an agent's last sign of life", _FIXED, "not written more often")
PRESENCE_OF_WORKERS = limit(30.0, "s", "a worker's or runner's sign of life", _FIXED, "one is sent")
SESSION_IDLE = limit(_HOURS * _US, "us", "a session without activity or claim", _FIXED, "the session ends")
MCP_IDLE = limit(7200.0, "s", "an MCP session over HTTP without a request", _FIXED,
    "forgotten; its client starts a new one")
WRITE_IDLE = limit(30.0, "s", "an open write transaction without a statement (PostgreSQL, MariaDB)", _FIXED,
    "the server ends it")
KEY_CACHE = limit(2.0, "s", "an API key in a server's memory", _FIXED, "read from the store again")
UNKNOWN_KEY_CACHE = limit(60.0, "s", "an unknown key id in a server's memory", _FIXED, "looked up again")
TOKEN_CACHE = limit(60.0, "s", "a verified JWT in a server's memory", _FIXED, "verified again")
JWKS_FRESH = limit(600.0, "s", "fetched signing keys", _FIXED, "fetched again")
JWKS_OLDEST = limit(24.0 * _HOURS, "s", "signing keys whose issuer is unavailable", _FIXED,
    "tokens are refused with 503")
GAUGES_KEPT = limit(5.0, "s", "gauges of `/metrics`", _FIXED, "read again, at most 5 % of the time")
SPENDING_KEPT = limit(30.0, "s", "spending in `/metrics`", _FIXED, "read again, at most 5 % of the time")
GAUGES_OLDEST = limit(60.0, "s", "old gauges while a new reading takes long", _FIXED, "left out of `/metrics`")
PUT_AGAIN = limit(3600.0, "s", "an object that S3 already has", _FIXED,
    "uploaded again, so that no lifecycle rule removes it")
AGENT_FORGOTTEN = limit(_DAYS * _US, "us", "an agent that was not seen", _FIXED, "`status` counts it, without a line")

_sections.append("Retention")
ARCHIVE_AFTER = limit(90 * _DAYS * _US, "us", "a finished task that no open task can reach",
    "project limit `archive_after`", "moved into the archive, readable as before")
ARCHIVE_LONGEST = limit(100_000 * _DAYS * _US, "us", "`archive_after` and `history_retention`", _FIXED,
    "a larger value counts as this one")
REQUEST_KEPT = limit(_DAYS * _US, "us", "a request id and its answer", _FIXED,
    "deleted; a repeat counts as a new request")
ARTIFACT_IDLE = limit(_DAYS * _US, "us", "artifact bytes that no row refers to", _FIXED, "deleted")
LOST_CLAIM = limit(1.0 * _DAYS, "s", "a lost or ended claim in the state folder", _FIXED,
    "deleted; commands no longer need its name")
LOST_CLAIM_IN_STORE = limit(_DAYS * _US, "us", "a lost claim, as the store sees it", _FIXED,
    "commands no longer need its name")
CLAIM_UNANSWERED = limit(86400.0, "s", "the request id of a claim whose answer was lost", _FIXED,
    "deleted; the next `claim` is a new one")
JOIN_RECORD = limit(7.0 * _DAYS, "s", "the record of a process that joined and has ended", _FIXED, "deleted")
HOOK_RECORD = limit(7.0 * _DAYS, "s", "what hooks have reported to a session", _FIXED, "deleted")
STORE_NOTES = limit(2000, "files", "last sequences in the state folder", _FIXED, "the oldest are deleted")
STORE_NOTE_EPOCHS = limit(64, "epochs", "one such file", _FIXED, "the oldest are deleted")
KEY_SESSIONS = limit(100, "sessions", "dashboard sessions of one key", _FIXED, "the oldest ends")
OLD_SESSIONS = limit(100, "sessions", "ended dashboard sessions that one sign-in deletes", _FIXED,
    "the next sign-in deletes more")
COORDINATOR_NOTES = limit(200, "notes", "a coordinator's log in memory", _FIXED, "the oldest are dropped")
CLAIM_REQUESTS = limit(16, "requests", "request ids kept with a claim", _FIXED,
    "the oldest is dropped; a repeat is judged like a new request")
CLAIM_ANSWERS = limit(32 * _KIB, "bytes", "their answers", _FIXED, "the oldest are dropped, never the last")
REFUSED_RESULTS = limit(3, "results", "refused results kept per generation", _FIXED,
    "later ones are refused and not kept")
ANSWERS_KEPT = limit(20, "answers", "answers to questions kept with a task", _FIXED, "the log has the older ones")
FINISHED_KEPT = limit(25, "tasks", "finished tasks that an estimate is made from, per type and size", _FIXED,
    "the oldest is dropped")
FORECAST_HISTORY = limit(1000, "tasks", "finished tasks that a forecast is made from", _FIXED,
    "older ones do not count")
FORECAST_SAMPLE = limit(200, "attempts", "attempts of like tasks that a forecast draws from", _FIXED,
    "older ones do not count")
FORECAST_TASKS = limit(10_000, "tasks", "open tasks in one forecast", _FIXED, _TOO_LARGE)
FORECAST_AGENTS = limit(1000, "agents", "agents of one forecast", _FIXED, _INVALID)
FORECAST_RETRIES = limit(3, "retries", "retries of one dead letter in a run of a forecast", _FIXED,
    "it stays a dead letter")
FORECAST_RUNS = limit(1000, "runs", "runs of one forecast", _FIXED, _INVALID)

_sections.append("Sizes")
BATCH = limit(500, "commands", "one batch", _FIXED, _TOO_LARGE)
BATCH_BYTES = limit(8 * _MIB, "bytes", "one command or batch", _FIXED, _TOO_LARGE)
RESULT_BYTES = limit(_MIB, "bytes", "a result in a row", "project limit `max_result_size`",
    "kept as an artifact, or `TOO_LARGE`")
CHECKPOINT_BYTES = limit(64 * _KIB, "bytes", "a checkpoint", _FIXED, _TOO_LARGE)
CLAIM_METADATA_BYTES = limit(4 * _KIB, "bytes", "metadata of a claim", _FIXED, _TOO_LARGE)
DESCRIPTION_BYTES = limit(64 * _KIB, "bytes", "a description", _FIXED, _TOO_LARGE)
SPEC_BYTES = limit(256 * _KIB, "bytes", "a spec", _FIXED, _TOO_LARGE)
TEXT_BYTES = limit(64 * _KIB, "bytes", "a message, note, question or error", _FIXED, _TOO_LARGE)
INPUT_BYTES = limit(256 * _KIB, "bytes", "inputs handed over with a claim", _FIXED,
    "the rest is named, and read with `show`")
INLINE_BYTES = limit(4 * _KIB, "bytes", "a value in its row", _FIXED, "a larger one is a separate row")
CALL_TITLE = limit(200, "characters", "the title of an enqueued call of a worker's function", _FIXED, _CUT)
TITLE = limit(255, "characters", "a title", _FIXED, _INVALID)
NAME = limit(255, "characters", "a name", _FIXED, _TOO_LARGE)
INTEGER = limit((1 << 63) - 1, "–", "an integer", _FIXED, _INVALID)
INTEGER_DIGITS = limit(20, "characters", "an integer in JSON", _FIXED, _INVALID)
NESTING = limit(100, "levels", "lists and objects inside each other", _FIXED, _INVALID)
LIST = limit(100, "entries", "tags, touches, capabilities … of a task", _FIXED, _TOO_LARGE)
PID = limit((1 << 32) - 1, "–", "a process id", _FIXED, _INVALID)
ARTIFACT_BYTES = limit(100 * _MIB, "bytes", "an artifact", "project limit `max_result_size`", _TOO_LARGE)
ARTIFACTS = limit(1000, "artifacts", "a task", _FIXED, _REACHED)
ARTIFACT_NAME = limit(1024, "bytes", "an artifact's name", _FIXED, _TOO_LARGE)
ARTIFACT_NAME_PART = limit(255, "bytes", "one part of an artifact's name", _FIXED, _INVALID)
ARTIFACT_NAME_PARTS = limit(16, "parts", "an artifact's name", _FIXED, _INVALID)

_sections.append("Tasks, claims and the graph")
CLAIMS_AT_ONCE = limit(100, "tasks", "one claim command", "argument `n`, up to this", _INVALID)
GENERATIONS = limit(100, "claims", "a task in one run", "project limit `max_generations_per_task`", "dead letter")
ADDED_AT_ONCE = limit(1000, "tasks", "one batch of `add_many`", _FIXED, _TOO_LARGE)
PLAN_TASKS = limit(10_000, "tasks", "one plan", _FIXED, _TOO_LARGE)
DEPENDENCIES = limit(1000, "dependencies", "a task", _FIXED, _TOO_LARGE)
CHILDREN = limit(200, "subtasks", "a task", _FIXED, _REACHED)
SUBTASK_DEPTH = limit(5, "levels", "subtasks of subtasks", _FIXED, _REACHED)
LINEAGE = limit(1000, "tasks", "a task with all tasks below it", _FIXED, _REACHED)
WEIGHT_DEPTH = limit(10, "tasks", "the path that adds to a task's priority", _FIXED, "a longer path adds nothing")
ATTEMPTS = limit(1000, "attempts", "`max_attempts` and `retry.poison`", _FIXED, _INVALID)
GIVEN_BACK = limit(10, "attempts", "attempts given back in one run", _FIXED, "later ones count")
LEASE_SAMPLES = limit(20, "tasks", "completed tasks of a type, for the lease `auto`", _FIXED,
    "with fewer the default lease applies")
LEASE_SAMPLED = limit(500, "tasks", "last completed tasks that are read for it", _FIXED, "older ones do not count")
TRACK_AGENTS = limit(1000, "agents", "`max_agents` of a track", _FIXED, _INVALID)
REORDERED = limit(500, "tasks", "one page of `project reorder`", _FIXED, "the answer has `next`, to go on")
FAILURES_KEPT = limit(100, "failures", "failures whose agents a task remembers", _FIXED, "the oldest is dropped")
COMPLEXITY = limit(1000, "points", "the complexity of a task", _FIXED, _INVALID)
ESTIMATED_TOKENS = limit(10**12, "tokens", "the estimate of a task", _FIXED, _INVALID)
ESTIMATE_SIZE = limit(10, "points", "complexity that estimates distinguish", _FIXED, "larger tasks count as one size")
ESTIMATE_SIZES = limit(500, "pairs", "types and sizes of a project with their own estimate", _FIXED,
    "new pairs are not learned")
UNFINISHED_NAMED = limit(3, "tasks", "unfinished tasks that a claim reminds of", _FIXED, "the rest is counted")
LANDINGS = limit(1000, "landings", "one claim", _FIXED, _REACHED)
LANDINGS_NAMED = limit(20, "landings", "earlier landings in an answer", _FIXED, "the oldest are left out")
PROCESSES_GONE = limit(1000, "processes", "one `gone` command", _FIXED, _TOO_LARGE)
PREFIX_MIN = limit(3, "characters", "the beginning of a key that names a task", _FIXED, "not found")
UNDO_EVENTS = limit(50_000, "events", "a command that `undo` reverses", _FIXED, "later events are not read")
RESTARTS = limit(1000, "transactions", "one command", _FIXED, "the command fails")
FAST_PATH_SKIPS = limit(64, "commands", "commands that skip the fast path after misses", _FIXED,
    "the fast path is tried again")

_sections.append("Budgets and usage")
BUDGET_USD = limit(1_000_000_000, "dollars", "a budget", _FIXED, _INVALID)
BUDGET_TOKENS = limit(10**15, "tokens", "a budget", _FIXED, _INVALID)
USAGE_USD = limit(100_000, "dollars", "one model under one claim", _FIXED, _INVALID)
USAGE_TOKENS = limit(10**12, "tokens", "one count of one model under one claim", _FIXED, _INVALID)
USAGE_MODELS = limit(100, "pairs of model and operation", "usage of one claim", _FIXED, _TOO_LARGE)
USAGE_DURATION = limit(366.0 * _DAYS, "s", "compute time under one claim", _FIXED, _INVALID)
BUDGET_PROJECTS = limit(2000, "projects", "a tenant with a budget", _FIXED, _REACHED)
RESUMED = limit(5000, "tasks", "tasks that a raised budget resumes at once", _FIXED,
    "resume the rest with `resume --budget`")
BUDGETS_SET_ASIDE = limit(200, "budgets", "budgets whose unaffordable tasks are set aside", _FIXED,
    "tasks of others are checked by each claim")
UNPAID = limit(500, "tasks", "unaffordable tasks that one claim checks", _FIXED,
    "the claim answers `NO_TASK`; the next goes on")
ESTIMATED = limit(5000, "tasks", "open tasks that a projection adds up", _FIXED,
    "the rest counts by the budget's default estimate")
EFFICIENCY_MIN = limit(10_000, "tokens", "a result that is checked for efficiency", _FIXED,
    "a smaller one is not checked")
MODEL_NAME = limit(255, "characters", "the name of a model in a price table", _FIXED, _INVALID)
MODELS_CACHED = limit(1000, "names", "model names matched to a tier, in memory", _FIXED, "matched again")
OWN_TABLE_BYTES = limit(_MIB, "bytes", "a file of prices or tiers", _FIXED, _INVALID)

_sections.append("Validation")
INVALID_OUTPUTS = limit(3, "outputs", "outputs that quick checks refuse under one claim", _FIXED, "the attempt ends")
VALIDATION_TRIES = limit(5, "tries", "validators without a verdict", _FIXED, "the task is paused for a person")
REASONS = limit(5, "reasons", "a verdict", _FIXED, _CUT)
REASON = limit(500, "characters", "one reason", _FIXED, _CUT)
DETAILS_BYTES = limit(128 * _KIB, "bytes", "details of a verdict", _FIXED, "left out")
REASONS_TEXT = limit(2000, "characters", "all reasons as one text", _FIXED, _CUT)
CHECKS_WAITING = limit(200, "checks", "quick checks that wait for a thread", _FIXED, "the result waits for a validator")
CHECKS_CACHED = limit(1000, "answers", "answers of quick checks in memory", _FIXED, "checked again")
CHECKS_RANKED = limit(500, "validations", "open validations from which one is chosen", _FIXED, "the rest waits")
CHECK_WAIT = limit(20.0, "s", "waiting for a free process that checks outputs", _FIXED,
    "undecided: the result waits for a validator")
CHECK_REPLY_BYTES = limit(_MIB, "bytes", "the reply of such a process", _FIXED, "undecided")
SCHEMA_BYTES = limit(256 * _KIB, "bytes", "a JSON Schema", _FIXED, _TOO_LARGE)
SCHEMA_DEPTH = limit(64, "levels", "a JSON Schema", _FIXED, _INVALID)
SCHEMA_OUTPUT_BYTES = limit(32 * _MIB, "bytes", "an output that json-schema reads", _FIXED, "the output is refused")
PATTERN = limit(4096, "characters", "a pattern", _FIXED, _TOO_LARGE)
COMMAND_TIMEOUT = limit(600.0, "s", "a test command", "`timeout` of the command, up to a day",
    "the verdict is a refusal that names the limit")
COMMAND_TIMEOUT_MAX = limit(24.0 * _HOURS, "s", "`timeout` of a test command", _FIXED, _INVALID)
JUDGE_TIMEOUT = limit(120.0, "s", "a judge", "`timeout` of the judge, up to an hour", "undecided: asked again")
JUDGE_TIMEOUT_MAX = limit(3600.0, "s", "`timeout` of a judge", _FIXED, _INVALID)
JUDGE_RETRY_MAX = limit(3600.0, "s", "`Retry-After` of a judge's server", _FIXED, "a longer one counts as this")
JUDGE_REPLY_BYTES = limit(_MIB, "bytes", "the answer of a judge's server", _FIXED, "undecided")
JUDGE_TOKENS = limit(2048, "tokens", "the answer of a judge", _FIXED, "the model stops")
JUDGE_OUTPUT = limit(200_000, "characters", "an output that a judge reads", _FIXED, "the output is refused")
JUDGE_STDERR = limit(2000, "characters", "a judge's stderr that is kept", _FIXED, "its beginning is cut off")
RUBRIC = limit(16 * _KIB, "characters", "a rubric", _FIXED, _TOO_LARGE)

_sections.append("Schedules, triggers, webhooks")
SCHEDULES = limit(1000, "schedules", "a project", _FIXED, _REACHED)
SCHEDULE_NAME = limit(64, "characters", "a schedule's name", _FIXED, _INVALID)
SCHEDULE_TICKS_SHOWN = limit(100, "ticks", "a preview of a schedule", "argument `ticks`, up to this",
    "a larger number counts as this")
SCHEDULE_TURNS = limit(100, "transactions", "one project's schedules, per tick of the duty", _FIXED,
    "the rest waits for the next tick")
MISSED_TICKS = limit(100, "ticks", "missed ticks made up for with `misfire: all`", _FIXED, "older ones are skipped")
CRON = limit(200, "characters", "a cron expression", _FIXED, _INVALID)
TEMPLATE_TASKS = limit(100, "tasks", "a template", _FIXED, _TOO_LARGE)
TEMPLATE_VALUE = limit(2000, "characters", "a value filled into a template", _FIXED, _CUT)
TEMPLATE_VALUE_IN_TITLE = limit(120, "characters", "a value filled into a title", _FIXED, _CUT)
TEMPLATE_PATH = limit(10, "parts", "a path in a template", _FIXED, "not filled in")
TRIGGERS = limit(200, "triggers", "a project", _FIXED, _REACHED)
TRIGGER_CHAIN = limit(3, "triggers", "triggers that lead to one another", _FIXED, "the next one does not fire")
TRIGGER_FIRINGS = limit(10_000, "firings", "`most` of a trigger, per hour", _FIXED, _INVALID)
TRIGGER_CONDITIONS = limit(20, "conditions", "a trigger", _FIXED, _TOO_LARGE)
TRIGGER_CHOICES = limit(100, "values", "one `in` condition", _FIXED, _INVALID)
TRIGGER_VALUE = limit(500, "characters", "a value in a condition", _FIXED, _TOO_LARGE)
TRIGGER_TEXT = limit(10_000, "characters", "a text that a pattern is matched against", _FIXED,
    "the rest is not matched")
TRIGGER_TURNS = limit(100, "transactions", "one project's triggers, per tick of the duty", _FIXED,
    "the rest waits for the next tick")
TRIGGER_ROUNDS = limit(100, "rounds", "triggers fired by what triggers made, in one pass", _FIXED,
    "the rest waits for the next tick")
TRIGGER_ERROR = limit(500, "characters", "the error of a schedule or trigger", _FIXED, _CUT)
WEBHOOK_BYTES = limit(_MIB, "bytes", "a delivery", _FIXED, "refused with 413")
WEBHOOK_SIGNATURES = limit(10, "signatures", "one header", _FIXED, "the rest is ignored")
WATCH_EVENTS = limit(20_000, "events", "the part of the log that the failure watch reads", _FIXED,
    "older events do not count")
WATCH_ATTEMPTS = limit(5_000, "events", "ended attempts among them", _FIXED, "older ones do not count")
WATCH_SHOWN = limit(50, "subjects", "subjects that the watch lists", _FIXED, "the rest is left out")
WATCH_TASKS = limit(5, "tasks", "investigations created at once", _FIXED, "the rest waits for the next tick")
WATCH_NAMED = limit(20, "tasks", "failed tasks named in an investigation", _FIXED, "the oldest are left out")
WATCH_ERROR = limit(300, "characters", "an error quoted in an investigation", _FIXED, _CUT)

_sections.append("Relays")
RELAY_SEND = limit(10.0, "s", "one page sent to a sink", _FIXED, "the rest of the page is sent again")
RELAY_BACK_OFF = limit(30.0, "s", "waiting for a sink that fails", _FIXED, "it is tried again")
RELAY_LAG = limit(7 * _DAYS * _US, "us", "a sink that does not take events", "setting `sinks.NAME.max_lag`",
    "it is cut off, and no longer holds the archive back")
ANNOUNCED_AGAIN = limit(600 * _US, "us", "between two announcements of a ready task to a broker", _FIXED,
    "it is announced again")
ANNOUNCEMENTS = limit(1000, "commands", "one sweep of ready tasks to a broker", _FIXED,
    "the rest comes with the next sweep")

_sections.append("Pools")
POOLS = limit(20, "pools", "a project", _FIXED, _REACHED)
POOL_SIZE = limit(1000, "places", "a pool", "argument `size`, up to this", _INVALID)
POOL_NAME = limit(60, "characters", "the name of a pool, a program or a spawner", _FIXED, _INVALID)
POOL_IDLE = limit(60.0, "s", "a process of a pool without a claim", "argument `idle`", "it is ended")
SPAWN_OFFER = limit(120 * _US, "us", "offering a task to an agent that a pool starts", _FIXED,
    "the task is open to every agent again, and the spawn is lost")
SPAWN_UNKNOWN = limit(10 * _US, "us", "a process that its spawner does not know and that holds nothing", _FIXED,
    "the spawn is lost")
SPAWN_ABSENT = limit(20 * _US, "us", "a spawn that its spawner has started no process for", _FIXED,
    "the spawn has ended, and so have its claims")
SPAWN_BACK_OFF = limit(60 * _US, "us", "waiting after spawns of a pool that claimed nothing", _FIXED,
    "the next agent is started")
POOL_ERROR = limit(300, "characters", "why a spawn ended", _FIXED, _CUT)
SPAWNS_KEPT = limit(200, "spawns", "ended spawns of a project", _FIXED, "the oldest are dropped")
SPAWNS_AT_ONCE = limit(16, "spawns", "agents started in one step of a pool", _FIXED, "the rest follows with the next")

_sections.append("Outgoing webhooks, hooks and notices")
SEND_SECONDS = limit(10.0, "s", "one delivery to a webhook, a mail server or a Slack channel, in all", _FIXED,
    "it has failed, and is tried again")
SEND_ANSWER = limit(64 * _KIB, "bytes", "the answer of a webhook's receiver", _FIXED, "the rest is not read")
SEND_IDLE = limit(16, "connections", "open connections to receivers that wait for the next delivery", _FIXED,
    "the oldest is closed")
SEND_URL = limit(2000, "characters", "the URL of a webhook", _FIXED, _INVALID)
SENDS = limit(8, "deliveries", "deliveries to one webhook at the same time", _FIXED, "the rest waits")
WEBHOOKS = limit(100, "webhooks", "a project", _FIXED, _REACHED)
WEBHOOK_KINDS = limit(50, "kinds", "a webhook", _FIXED, _TOO_LARGE)
WEBHOOK_DOWN = limit(10 * _MINUTES * _US, "us", "an endpoint without a successful delivery", _FIXED,
    "it is down: nothing more is read for it until one succeeds")
WEBHOOK_PARKED = limit(1000, "deliveries", "parked deliveries of a webhook", _FIXED, "it is down until there are fewer")
WEBHOOK_LOG = limit(1000, "deliveries", "the delivery log of a webhook", _FIXED, "the oldest are dropped")
WEBHOOK_RETRY_AFTER = limit(_DAYS * _US, "us", "`Retry-After` of a receiver", _FIXED, "a longer one counts as this")
NOTICE_WINDOW = limit(60 * _US, "us", "notices of one kind after a message", _FIXED,
    "they go out in one message")
NOTICES_AN_HOUR = limit(20, "messages", "one channel and kind of notice, in an hour", _FIXED,
    "the rest goes out as one digest")
NOTICES_NAMED = limit(10, "notices", "notices named in one message", _FIXED, "the rest is counted")
NOTICE_TEXT = limit(500, "characters", "one notice", _FIXED, _CUT)
NOTICE_STORE_UNAVAILABLE = limit(5 * _MINUTES * _US, "us", "a store that is unavailable", _FIXED, "people get a notice")
COMMANDS_AT_ONCE = limit(4, "commands", "local hooks and command notices at the same time", _FIXED, "the rest waits")
HOOKS_WAITING = limit(1000, "events", "events that wait for a local hook", _FIXED, "the oldest are dropped")
COMMAND_SECONDS = limit(10.0, "s", "one local hook or command notice", _FIXED, "its process group is killed")
HOOK_COMMANDS = limit(10, "commands", "one local hook", _FIXED, _INVALID)
SLACK_TEXT = limit(3000, "characters", "a message to Slack", _FIXED, _CUT)
MAIL_SUBJECT = limit(200, "characters", "the subject of a mail", _FIXED, _CUT)
MAIL_RECIPIENTS = limit(20, "addresses", "a mail", _FIXED, _INVALID)

_sections.append("Secrets")
SECRET_BYTES = limit(64 * _KIB, "bytes", "a secret", _FIXED, _TOO_LARGE)
MASTER_KEY_TIMEOUT = limit(10.0, "s", "the command that prints the master key", _FIXED, "refused with `SECRETS_OFF`")
MASTER_KEYS = limit(10, "keys", "the current master key and those before it", _FIXED, "refused with `BAD_CONFIG`")

_sections.append("Sinks")
MESSAGE_BYTES = limit(256 * _KIB, "bytes", "a message to a sink", _FIXED,
    "its payload is cut to ids, and `truncated` is set")
NATS_DUPLICATES = limit(120, "s", "a message id that a stream of NATS knows", "the stream's settings",
    "a repeat is stored again, with the same id")
COMMANDS_KEPT = limit(7 * _DAYS, "s", "a command in a stream of NATS", "the stream's settings", "deleted by the broker")
EVENTS_KEPT = limit(30 * _DAYS, "s", "an event in a stream of NATS", "the stream's settings", "deleted by the broker")
BROKER_COMMANDS = limit(10_000, "messages", "a queue of commands in RabbitMQ, or a stream in Redis", _FIXED,
    "the oldest is dropped; ready tasks are announced again")
COMMAND_LIFETIME = limit(10 * _MINUTES, "s", "a command in a queue of RabbitMQ", _FIXED,
    "dropped; ready tasks are announced again")
LETTERS_WAITING = limit(100_000, "messages", "dead letters in RabbitMQ or Redis", _FIXED, "the oldest is dropped")
EVENTS_WAITING = limit(100_000, "messages", "the stream of events in Redis", "option `length` of the sink's URL",
    "the oldest is dropped")
REDIS_HELD = limit(10_000, "tasks", "held tasks of a project in the keys of Redis", _FIXED, "later tasks are left out")
REDIS_IDS = limit(10_000, "ids", "ids kept beside a stream of Redis", _FIXED, "an older repeat is appended again")
ACKNOWLEDGE_WITHIN = limit(30.0, "s", "a command that a worker has received and not acknowledged", _FIXED,
    "delivered again, to any worker of the pool")
DEFERRED_FOR = limit(30.0, "s", "a command for a task that its worker may not claim now, until it is delivered again",
    _FIXED, "delivered again, to any worker of the pool")
DEFERRALS = limit(5, "deliveries", "a command that is deferred each time", _FIXED,
    "acknowledged; the task is announced again while it is ready")
REDIS_HEARTBEAT = limit(60.0, "s", "the key of an agent's last sign of life in Redis", _FIXED, "it goes")
REDIS_CONTEXT = limit(3600.0, "s", "the key of a session's context in Redis", _FIXED, "it goes")
REDIS_ALERTS = limit(100, "alerts", "the list of budget alerts in Redis", _FIXED, "the oldest is dropped")
MAILBOX_IDLE = limit(7 * _DAYS, "s", "the mailbox of an agent in RabbitMQ or Redis that nobody uses", _FIXED,
    "deleted by the broker; mail stays in the store")

_sections.append("Reads")
LISTED = limit(1000, "rows", "one page of tasks, budgets, usage or validations", "argument `limit`, up to this",
    "a larger number counts as this")
NAMED_BEHIND = limit(20, "tasks", "tasks named behind a dead letter", _FIXED, "the rest is counted")
COUNTED_BEHIND = limit(2000, "events", "events added to kept counts of tasks", _FIXED, "the tasks are counted again")
COUNTS_KEPT = limit(600, "s", "counts of tasks that a server keeps", _FIXED, "the tasks are counted again")
SORTED = limit(500, "tasks", "tasks of the wanted states that are read by state and sorted", _FIXED,
    "they are read in the order's index")
SEARCHED = limit(10_000, "tasks", "tasks that a text search reads", _FIXED, "later tasks are not searched")
EVENTS_LISTED = limit(10_000, "events", "one page of the log", "argument `limit`, up to this",
    "a larger number counts as this")
NOTES_SHOWN = limit(20, "events", "the last notes, retries and edits that a briefing has", _FIXED,
    "older ones are left out")
BUDGETS_SHOWN = limit(20, "budgets", "`status`", _FIXED, "the rest is left out")
COORDINATOR_LOG = limit(1000, "notes", "one page of the coordinator's log", "argument `limit`, up to this",
    "a larger number counts as this")
MAIL_COUNTED = limit(1000, "messages", "unread messages that are counted", _FIXED, "the count stops there")
RECALLED = limit(100, "tasks", "tasks named when archived tasks come back", _FIXED, "the rest is left out")
COPY_NAMED = limit(5, "claims", "live claims named when a copy is refused", _FIXED, "the rest is left out")
OVERVIEW_MINUTES = limit(7 * 24 * 60, "minutes", "the overview's time span", "argument `minutes`, up to this", _INVALID)
OVERVIEW_EVENTS = limit(20_000, "events", "the part of the log that the overview reads", _FIXED, "`is_whole` is false")
OVERVIEW_MOVES = limit(2_000, "events", "moves among them", _FIXED, "`is_whole` is false")
OVERVIEW_HELD = limit(1000, "claims", "live claims whose age is read", _FIXED, "the rest does not count")
OVERVIEW_SAMPLED = limit(200, "claims", "claims whose waiting time is read", _FIXED, "older ones do not count")
GAUGE_TASKS = limit(100_000, "tasks", "tasks of a project that gauges count by priority tier", _FIXED,
    "the tier is `any`")
GAUGE_OVERDUE = limit(10_000, "tasks", "overdue tasks that are counted", _FIXED, "the count stops there")
GAUGE_READY = limit(100, "tasks", "ready tasks read for the oldest one", _FIXED, "the rest does not count")
LANE_PAGE = limit(256, "tasks", "tasks of a lane read at once by a claim", _FIXED, "the next page is read")

_sections.append("Server")
BATCHER_WAITING = limit(10_000, "commands", "commands that wait for a batch", "`most_waiting` of the batcher",
    "refused with `OVERLOADED`")
READS_WAITING = limit(1000, "requests", "reads or batches that wait for a thread", _FIXED, "refused with 503")
REQUEST_RATE = limit(1000.0, "requests/s", "one key or token", "setting `serve.rate`", "refused with 429")
WORKERS = limit(64, "processes", "workers of one server", "setting `serve.workers`, up to this", _INVALID)
WORKERS_PATIENCE = limit(30.0, "s", "workers of a server that is stopped", _FIXED, "they are killed")
CALLERS = limit(10_000, "callers", "callers whose rate is remembered", _FIXED, "the longest silent one is forgotten")
HEADER_BYTES = limit(64 * _KIB, "bytes", "request line and headers", _FIXED, "refused with 431")
HEADER_SECONDS = limit(15.0, "s", "sending the headers of a request", _FIXED, "the connection is closed")
CONNECTIONS_PER_ADDRESS = limit(256, "connections", "connections of one address before sign-in", _FIXED,
    "the oldest is closed")
CONNECTIONS = limit(2048, "connections", "all connections before sign-in", _FIXED, "the oldest is closed")
SIGN_IN_BYTES = limit(4096, "bytes", "the body of a sign-in", _FIXED, "refused with 413")
SIGN_IN_TRIES = limit(10.0, "failures", "failed sign-ins of one address at once", _FIXED,
    "more are refused with 429; one more every 6 s")
JWT_CHARACTERS = limit(8 * _KIB, "characters", "a JWT", _FIXED, "refused with 401")
JWT_SUBJECT = limit(255, "characters", "`sub` of a JWT", _FIXED, "refused with 401")
JWT_SECRET_MIN = limit(32, "characters", "`serve.jwt_secret`", _FIXED, "the server does not start")
TOKENS_CACHED = limit(10_000, "tokens", "verified JWTs in memory", _FIXED, "verified again")
JWKS_BYTES = limit(256 * _KIB, "bytes", "fetched signing keys", _FIXED, "the fetch fails")
JWKS_TIMEOUT = limit(5.0, "s", "fetching signing keys", _FIXED, "the fetch fails; known keys are used")
KEYS_CACHED = limit(10_000, "keys", "API keys in memory", _FIXED, "read again")
KEYS_AT_ONCE = limit(1000, "keys", "key ids looked up by one read", _FIXED, "the rest waits for the next read")
KEY_NAME = limit(100, "characters", "the name of an API key", _FIXED, _TOO_LARGE)
TRANSFERS = limit(64, "transfers", "artifacts sent or received at once", _FIXED, "refused with 503")
STREAM_BEHIND = limit(1000, "events", "a stream behind the log", _FIXED,
    "the stream ends; its reader reconnects with its cursor")
READY_WAIT = limit(2.0, "s", "the store's answer to a readiness probe", _FIXED, "the probe answers 503")
STORE_START_WAIT = limit(300.0, "s", "waiting for PostgreSQL at the start of `serve`", "setting `serve.store_wait`",
    "the server does not start")
STORE_RETRY = limit(15.0, "s", "pause between two tries at the start", _FIXED, "the next try")
METRIC_PROJECTS = limit(100, "projects", "label values of metrics", _FIXED, "the rest is `other`")
METRIC_AGENTS = limit(200, "agents", "label values of metrics", _FIXED, "the rest is `other`")
METRIC_MODELS = limit(20, "models", "label values of metrics", _FIXED, "the rest is `other`")
METRIC_BUDGETS = limit(200, "budgets", "budgets of a project in metrics", _FIXED, "the rest is left out")
METRIC_POOLS = limit(100, "pools", "label values of metrics", _FIXED, "the rest is `other`")
METRIC_TYPES = limit(50, "types", "label values of metrics", _FIXED, "the rest is `other`")
METRIC_CLASSES = limit(30, "classes", "label values of metrics", _FIXED, "the rest is `other`")
METRIC_EVENTS = limit(50_000, "events", "events that wait to be counted", _FIXED,
    "the oldest are not counted, and the log says so")
METRIC_ANSWERS = limit(2000, "claims", "answers kept until their events are counted", _FIXED,
    "the rows are read instead")
METRIC_CLOSE = limit(5.0, "s", "counting at the end of a server", _FIXED, "the rest is not counted")
METRIC_TASKS = limit(20_000, "tasks", "tasks remembered for durations", _FIXED, "read from the store")
LOG_DEPTH = limit(6, "levels", "a value in the server's log", _FIXED, _CUT)
LOG_TEXT = limit(8 * _KIB, "characters", "a text in the server's log", _FIXED, _CUT)
TRACE_PARENT = limit(512, "characters", "the header `traceparent`", _FIXED, "a new trace begins")

_sections.append("Tenants")
TENANT_NAME = limit(40, "characters", "a tenant's name", _FIXED, _INVALID)
TENANTS = limit(10_000, "tenants", "a deployment, closed ones included", _FIXED, _REACHED)
MEMBERS = limit(10_000, "members", "a tenant, former ones included", _FIXED, _REACHED)
_sections.append("MCP")
MCP_WAIT = limit(300.0, "s", "`wait` of a tool", "argument `wait`, up to this", _INVALID)
MCP_LISTED = limit(20, "entries", "a list in a reply", "argument `limit`", "the rest is left out")
MCP_CONNECTIONS = limit(10_000, "connections", "connections over HTTP", _FIXED, "the longest unused is forgotten")
MCP_RECEIPTS = limit(100, "receipts", "one connection over HTTP", _FIXED, "the oldest is forgotten")
MCP_ROOTS_WAIT = limit(5.0, "s", "a client that names its folders", _FIXED, "the server's own folder is used")
MCP_CLOSE = limit(15.0, "s", "the last replies at the end of a session", _FIXED, "they are dropped")

_sections.append("Client and workers")
CONNECT_TIMEOUT = limit(5.0, "s", "connecting to a server", _FIXED, "retried within the client's patience")
ANSWER_TIMEOUT = limit(30.0, "s", "an answer, beyond the time it was asked to wait", _FIXED,
    "retried with the same request id")
RETRY_FOR = limit(10.0, "s", "retrying a request that a server does not answer", _FIXED,
    "the call raises; the outcome may be unknown")
IDLE_CONNECTIONS = limit(16, "connections", "connections kept open by a blocking client", _FIXED,
    "more are closed after use")
ASYNC_CONNECTIONS = limit(100, "connections", "connections of an async client", _FIXED, "calls wait")
POLL_PIECE = limit(30.0, "s", "one request of a long poll", _FIXED, "the client asks again")
TASKS_PER_QUERY = limit(100, "tasks", "tasks named in one URL", _FIXED, "sent as several requests")
WORKER_POLL = limit(60.0, "s", "one wait of an idle worker", _FIXED, "the worker asks again")
WORKER_GRACE = limit(10.0, "s", "functions of a worker that must stop now", "`Worker(grace=)`",
    "their claims are released")
TRACE = limit(8000, "characters", "the stack trace of a failed attempt", _FIXED, _CUT)
WORKER_ERROR = limit(4000, "characters", "the message of a failed function", _FIXED, _CUT)

_sections.append("Agents and the runner")
RUN_AGENTS = limit(64, "agents", "`tenure run -n`", _FIXED, "refused with exit code 2")
HOOK_TIMEOUT = limit(5, "s", "one hook of an agent CLI", "the agent CLI's settings", "the agent CLI goes on without it")
SESSION_BRIEF = limit(600, "tokens", "the brief at a session's start", _FIXED, "the least important lines are left out")
QUOTED = limit(200_000, "characters", "one quotation in a prompt", _FIXED, _CUT)
TRANSCRIPT_READ = limit(256 << 20, "bytes", "an agent's transcript that a hook reads for usage", _FIXED,
    "its usage is not reported")
CLAIM_FILES = limit(500, "files", "receipts kept for one agent before old ones are deleted", _FIXED,
    "those older than a day are deleted")
JOIN_FILES = limit(100, "files", "records of joined processes before old ones are deleted", _FIXED,
    "those older than a week are deleted")
HOOK_ENTRIES = limit(64, "entries", "what hooks remember of a session", _FIXED, "the oldest are dropped")
LAND_TRIES = limit(100, "tries", "a landing whose branch moved", _FIXED, "the landing fails; nothing has moved")
LAND_BUSY = limit(40, "tries", "a landing that waits for another git command", _FIXED,
    "the landing fails; nothing has moved")
FENCE_TRIES = limit(20, "tries", "moving a task's fence in git", _FIXED, "the landing fails; nothing has moved")
FILES_NAMED = limit(10, "files", "files named in a message", _FIXED, "the rest is counted")
COMMAND_OUTPUT = limit(256 * _KIB, "characters", "output of a command agent that becomes its result", _FIXED,
    "the beginning is cut")
AGENT_MESSAGE = limit(128 * _KIB, "characters", "an agent's last message in a result", _FIXED, "the beginning is cut")
SUMMARY = limit(1000, "characters", "a summary made by the runner", _FIXED, _CUT)
OUTPUT_LINE_BYTES = limit(8 * _MIB, "bytes", "one line of an agent's output", _FIXED, _CUT)
FILES_BYTES = limit(64 * _MIB, "bytes", "earlier artifacts put into an agent's folder", _FIXED,
    "the rest stays in the store")
FILES = limit(200, "files", "earlier artifacts put into an agent's folder", _FIXED, "the rest stays in the store")
TRANSCRIPT_BYTES = limit(16 * _MIB, "bytes", "a transcript", _FIXED, "the middle is left out")
TRANSCRIPT_PIECE = limit(1 * _MIB, "bytes", "one answer with a part of a transcript", _FIXED, "the next answer goes on")
RUN_SUMMARY = limit(1000, "tasks", "tasks in the runner's summary", _FIXED, "the rest is counted")

_sections.append("Command line")
INPUT_SHOWN = limit(2000, "characters", "an input that `claim` prints", _FIXED, _CUT)
STATUS_HELD = limit(500, "tasks", "held tasks whose progress `status` shows", _FIXED, "the rest is counted")
WATCH_SCREEN_TASKS = limit(300, "tasks", "one state in `watch`", _FIXED, "the rest is left out")
WATCH_SCREEN_EVENTS = limit(300, "events", "events in `watch`", _FIXED, "older ones are left out")
WATCH_SCREEN_LINES = limit(40, "lines", "a description in `watch`", _FIXED, _CUT)
WATCH_REFRESH_MIN = limit(0.1, "s", "`watch --refresh`", _FIXED, "refused with exit code 2")
DOCTOR_NAMED = limit(5, "names", "one finding of `doctor`", _FIXED, "the rest is counted")
DOCTOR_ROWS = limit(200, "rows", "rows of a kind that `doctor` reads", _FIXED, "later rows are not checked")
DOCTOR_FILES = limit(10_000, "files", "files whose permissions `doctor` checks", _FIXED, "later files are not checked")
DOCTOR_SESSIONS = limit(2000, "sessions", "sessions with receipts that `doctor` checks", _FIXED,
    "later ones are not checked")
HOOK_LOG_BYTES = limit(64 * _KIB, "bytes", "the log of failed hooks", _FIXED, "it starts again")
DEMO_WAIT = limit(60.0, "s", "one step of the demo", _FIXED, "the demo fails")

_sections.append("Plans and imports")
PLANS = limit(500, "plans", "one file", _FIXED, _TOO_LARGE)
IMPORT_BYTES = limit(64 * _MIB, "bytes", "an imported file", _FIXED, _INVALID)
IMPORT_NOTES = limit(10_000, "notes", "notes of one import", _FIXED, "the rest is left out")
PLAN_FINDINGS = limit(100, "errors", "errors of one plan file", _FIXED, "the rest is left out")
PLAN_CYCLES = limit(10, "cycles", "cycles named in one error", _FIXED, "the rest is left out")
PLAN_SUGGESTIONS = limit(20, "names", "unknown names with a suggestion", _FIXED, "later ones get none")
PLAN_NUMBER = limit(100, "characters", "a number in a plan file", _FIXED, _INVALID)
PLAN_YAML_KEY = limit(100, "characters", "a plain key in exported YAML", _FIXED, "written as a complex key")
PLAN_DURATION = limit(10 * 365 * _DAYS * _US, "us", "a duration in a plan file", _FIXED, _INVALID)
PLAN_LABEL = limit(60, "characters", "a label in a drawing", _FIXED, _CUT)

_sections.append("Stores and trust")
WRITE_WAIT = limit(10.0, "s", "waiting for the write lock or a connection", "`Store(patience=)`",
    "the command fails; nothing was done")
MEMORY_WAIT = limit(30.0, "s", "waiting for the memory store's lock", _FIXED, "the command fails; nothing was done")
STATEMENT_TIMEOUT = limit(30.0, "s", "one statement on PostgreSQL or MariaDB", _FIXED, "the command fails")
POOL = limit(1000, "connections", "`pool` of a PostgreSQL or MariaDB address", _FIXED, _INVALID)
PREPARED = limit(300, "statements", "prepared statements of a connection", _FIXED, "others are not prepared")
NOTIFICATIONS = limit(256, "notifications", "notifications that a process remembers", _FIXED, "the oldest are dropped")
MARIADB_OLDEST = limit(1011, "version", "the MariaDB server: 10.11", _FIXED, "the store does not open")
MARIADB_PACKET = limit(16 * _MIB, "bytes", "the least `max_allowed_packet` of a MariaDB server", _FIXED,
    "the store does not open")
POSTGRES_OLDEST = limit(130000, "version", "the PostgreSQL server", _FIXED, "the store does not open")
VALUES_PER_QUERY = limit(16_384, "values", "values of one filter", _FIXED, _INVALID)
PROJECT_NAME_FILE = limit(512, "characters", "the file with the project's name", _FIXED, _CUT)
TRUST_BYTES = limit(_MIB, "bytes", "a `tenure.toml`", _FIXED, _INVALID)
TRUST_CHANGES = limit(20, "lines", "changes that `trust` lists", _FIXED, "the rest is counted")
TRUST_VALUE = limit(200, "characters", "a value that `trust` prints", _FIXED, _CUT)
TRUST_CACHED = limit(200, "files", "remembered owners of files", _FIXED, "read again")
# fmt: on
