"""The first half of `limits.py`: how a limit is written down, and the limits of tasks and of what makes them.

Other modules read `limits.NAME`, never this one.
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
LANDING_TODO = limit(60.0, "s", "how long a commit waits to be landed before `todo` shows it", _FIXED,
    "it is shown; a blocked one at once")
OFFER = limit(60.0, "s", "offering a task to one agent", "argument `seconds`", "the task is open to every agent again")
LEADER_LEASE = limit(30.0, "s", "leading the coordinator", "argument `lease`",
    "another process may lead, with the next term")
LEADER_BACK_OFF = limit(10.0, "s", "waiting after a failed round of duties", _FIXED, "the next round starts")
AGENT_LEADER_LEASE = limit(30 * _US, "us", "leading a project, as an agent whose commands renew it",
    "setting `agents.leader_lease`", "another agent may lead, with the next term")
AGENT_LEAD_LEASE = limit(1800.0, "s", "leading a project, as an agent that asked with `lead` at a command line",
    "setting `agents.leader_lease`, option `--lease`", "another agent may lead, with the next term")
AGENT_LEADER_WRITTEN = limit(10 * _US, "us", "writing that renewal", _FIXED, "not written more often")
LONGEST_LEADER_LEASE = limit(3600.0, "s", "leading a project or the store without a renewal", _FIXED, _INVALID)
TRACK_IDLE = limit(10 * _MINUTES * _US, "us", "an agent that holds nothing on its track, with the router on", _FIXED,
    "the track is free for another agent")
ORDER_LONGEST = limit(4 * _HOURS * _US, "us", "an estimate in the order `shortest`; also a task without one", _FIXED,
    "counts as this long")
HUNG_TIMES = limit(3, "times", "work beyond its `estimated_duration` without progress", _FIXED, "the holder is warned")
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

_sections.append("Audit")
SEAL_EVENTS = limit(1000, "events", "one seal of the log", _FIXED, "the next seal goes on")
SEAL_AFTER = limit(10 * _US, "us", "an event that waits for its seal, while a process leads", _FIXED, "it is sealed")
RETENTION_SOC2 = limit(365, "days", "history and access log, under the preset `soc2`", "`limits set --compliance`",
    "kept at least this long")
RETENTION_PCI = limit(365, "days", "history and access log, under the preset `pci`", "`limits set --compliance`",
    "kept at least this long")
RETENTION_HIPAA = limit(2190, "days", "history and access log, under the preset `hipaa`", "`limits set --compliance`",
    "kept at least this long")
UNSEALED_COUNTED = limit(10_000, "events", "unsealed events that `audit head` and the metric count", _FIXED,
    "later ones are not counted")
AUDIT_FINDINGS = limit(1000, "findings", "findings of `audit verify` that are listed", _FIXED, "the others are counted")

_sections.append("Staleness")
AGENT_HEARTBEAT = limit(30.0, "s", "between two signs of life of an agent, runner or worker",
    "setting `agents.heartbeat`, argument `heartbeat` of `Worker`", "one is sent")
HEALTH_MINUTES = limit(60, "minutes", "an agent's memory and CPU, a row a minute", _FIXED, "the oldest is overwritten")
HEARTBEAT_MEMORY = limit(1 << 30, "MB", "memory that a heartbeat may report", _FIXED, _INVALID)
HEARTBEAT_CPU = limit(1_000_000, "%", "CPU that a heartbeat may report, of one core", _FIXED, _INVALID)
PRESENCE_OF_READERS = limit(60 * _US, "us", "signs of life by commands that only read", _FIXED,
    "no other is written before")
AGENT_STALE = limit(180.0, "s", "an agent without a sign of life", "argument `stale_after` of `register`",
    "the agent is shown as stale (`agent.stale`)")
CLI_AGENT_STALE = limit(1800.0, "s", "an agent CLI or MCP client without a sign of life", _FIXED,
    "the agent is shown as stale")
PRESENCE = limit(15 * _US, "us", "writing an agent's last sign of life", _FIXED, "not written more often")
SESSION_IDLE = limit(_HOURS * _US, "us", "a session without activity or claim", _FIXED, "the session ends")
MCP_IDLE = limit(7200.0, "s", "an MCP session over HTTP without a request", _FIXED,
    "forgotten; its client starts a new one")
WRITE_IDLE = limit(30.0, "s", "an open write transaction without a statement (PostgreSQL, MariaDB)", _FIXED,
    "the server ends it")
KEY_CACHE = limit(2.0, "s", "an API key in a server's memory", _FIXED, "read from the store again")
UNKNOWN_KEY_CACHE = limit(60.0, "s", "an unknown key id in a server's memory", _FIXED, "looked up again")
KEY_REMEMBERED = limit(600.0, "s", "a checked key, for the metrics alone, while the store is unavailable", _FIXED,
    "the scrape answers 503")
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
ACCESS_LOG_SIZE = limit(64.0, "MB", "a file of the access log", "setting `serve.access_log_size`", "it is put aside")
ACCESS_LOG_DAYS = limit(365.0, "days", "a file of it that was put aside", "setting `serve.access_log_days`", "deleted")
FORECAST_HISTORY = limit(1000, "tasks", "finished tasks a forecast is made from", _FIXED, "older ones do not count")
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
HOLDERS_SEEN = limit(16, "claims", "claims of this host whose processes a claim looks at first", _FIXED,
    "the others have their turn at a later claim, or when nothing is ready")
HOLDERS_SEEN_EVERY = limit(1.0, "s", "between two such looks of a process", _FIXED, "a claim in between does not look")
UNWORKED_LOSSES = limit(3, "losses", "losses of a task in a row by one session, without a sign of work", _FIXED,
    "this one and later ones count as attempts")
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
USAGE_BELIEVED = limit(10, "times", "a stated cost of one attempt, as a multiple of what its tokens cost", _FIXED,
    "budgets do not count the rest until a person confirms it")
USAGE_NOT_DOUBTED = limit(1, "dollars", "a stated cost of one attempt that is never doubted", _FIXED,
    "a larger one is compared with its tokens")
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
    "a larger number is refused")
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
# fmt: on
