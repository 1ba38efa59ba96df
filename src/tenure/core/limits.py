"""Every limit of every interface: its value, its unit, what it bounds, who may change it, and what happens there.

Modules read their constants from here, so that each number is written once; `docs/reference/limits.md` is generated
from it. A value is in the unit of the code that uses it: seconds (`s`) or microseconds (`us`) for times. Intervals of
polling, page sizes of one transaction and the layout of screens are not limits: they refuse, cut or delete nothing,
and stay next to their code.
"""

from __future__ import annotations

from tenure.core.limits_of_tasks import *  # noqa: F403 — one table for its readers, in two files
from tenure.core.limits_of_tasks import (
    _CUT,
    _DAYS,
    _FIXED,
    _INVALID,
    _KIB,
    _MIB,
    _MINUTES,
    _REACHED,
    _TOO_LARGE,
    _US,
    Row,
    _rows,
    _sections,
    limit,
)


def table() -> dict[str, Row]:
    """Name → row. A module keeps its names in the order of their definition, as `_rows` does."""
    names = [name for name in globals() if name.isupper() and not name.startswith("_") and name != "N"]
    return dict(zip(names, _rows, strict=True))


# fmt: off

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
NOTICE_WINDOW = limit(60 * _US, "us", "notices of one kind after a message", _FIXED, "they go out in one message")
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
TASK_SECRETS = limit(100, "secrets", "a task", _FIXED, _TOO_LARGE)
SECRET_SEARCHED = limit(4, "characters", "a secret that is searched for in what its holder writes", _FIXED,
    "a shorter one is sealed, and not searched for")
SEARCHED_TASKS = limit(100, "tasks", "tasks of one agent whose secrets are searched for in what it writes", _FIXED,
    "the secrets of further ones are not")
SECRET_KNOWN = limit(_DAYS * _US, "us", "an agent, or a key, after the end of its claim", _FIXED,
    "what it writes is no longer searched for the secrets of the task")
KNOWN_SECRETS = limit(200, "secrets", "secrets that one agent or key was given within a day", _FIXED,
    "what it writes is not searched for the first of them")
SEARCHES_KEPT = limit(64, "senders", "senders whose secrets a process keeps ready to be searched for", _FIXED,
    "the least recent is prepared again")
PLAIN_LOOKED = limit(500, "tasks", "tasks of a project where `doctor` and `serve` look for plain secrets", _FIXED,
    "older ones are not looked at; `tenure secret seal` looks at all")
SEARCHED_BYTES = limit(8 * _MIB, "bytes", "an artifact that is searched for secrets", _FIXED,
    "the rest is not searched")
SECRET_LINE = limit(16, "characters", "a line of a secret that is searched for by itself", _FIXED,
    "a shorter one is searched for with the lines around it")
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
COSTLY = limit(2, "queries", "questions that a process answers at once, of those that are costly: with `at`, a search "
    "for text, audits, forecasts, exports, files of plans, large previews, an overview of more than 4 hours", _FIXED,
    "behind a server up to `COSTLY_WAITING` wait; else refused with `OVERLOADED`")
COSTLY_WAITING = limit(8, "queries", "costly questions of a store that a server lets wait", _FIXED,
    "refused with `OVERLOADED`")
COSTLY_BODY = limit(64 * _KIB, "bytes", "the body of a preview that is not costly", _FIXED,
    "it is costly: see `COSTLY`")
OVERVIEW_SHORT = limit(4 * 60, "minutes", "an overview that is not costly", _FIXED, "it is costly: see `COSTLY`")
LISTED = limit(1000, "rows", "one page of a list", "argument `limit`, up to this",
    "a larger number is refused; an answer that stops says so")
NAMED_BEHIND = limit(20, "tasks", "tasks named behind a dead letter", _FIXED, "the rest is counted")
COUNTED_BEHIND = limit(2000, "events", "events added to kept counts of tasks", _FIXED, "the tasks are counted again")
COUNTS_KEPT = limit(600, "s", "counts of tasks that a server keeps", _FIXED, "the tasks are counted again")
SORTED = limit(500, "tasks", "tasks of the wanted states that are read by state and sorted", _FIXED,
    "they are read in the order's index")
PASSED_OVER = limit(1000, "tasks", "tasks of a state that the answer to a claim without a task counts", _FIXED,
    "the count stops")
EVENTS_OF_A_PAGE = limit(4000, "events", "events that a page of the last changed tasks is made from", _FIXED,
    "the tasks are sorted")
SEARCHED = limit(10_000, "tasks", "tasks that a page of a text search reads", _FIXED,
    "the page says where to search on")
EVENTS_LISTED = limit(10_000, "events", "one page of the log", "argument `limit`, up to this",
    "a larger number is refused; an answer that stops says so")
NOTES_SHOWN = limit(20, "events", "the last notes and edits of a briefing, and as many releases and retries",
    _FIXED, "older ones are left out")
BUDGETS_SHOWN = limit(20, "budgets", "`status`", _FIXED, "the rest is left out")
COORDINATOR_LOG = limit(1000, "notes", "one page of the coordinator's log", "argument `limit`, up to this",
    "a larger number counts as this")
MAIL_COUNTED = limit(1000, "messages", "unread messages that are counted", _FIXED, "the count stops there")
RECALLED = limit(100, "tasks", "tasks named when archived tasks come back", _FIXED, "the rest is left out")
COPY_NAMED = limit(5, "claims", "live claims named when a copy is refused", _FIXED, "the rest is left out")
LOST_NAMED = limit(5, "claims", "lost claims named in a task's last error", _FIXED, "the first ones are counted")
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
BATCHER_PROJECTS = limit(10, "projects", "a batch, where several run at once", _FIXED,
    "those of further projects are left to the next batch")
KNOWN_LANES = limit(64, "lanes", "lanes of a project that a process knows, with those that are empty now", _FIXED,
    "it knows those with tasks alone")
READS_WAITING = limit(1000, "requests", "reads or batches that wait for a thread", _FIXED, "refused with 503")
REQUEST_RATE = limit(1000.0, "requests/s", "one key or token", "setting `serve.rate`", "refused with 429")
WORKERS = limit(64, "processes", "workers of one server", "setting `serve.workers`, up to this", _INVALID)
ACCESS_KEYS = limit(100, "tasks", "tasks that a line of the access log names", _FIXED, "the rest is counted")
ACCESS_TEXT = limit(200, "characters", "a name or path in a line of the access log", _FIXED, _CUT)
WORKERS_PATIENCE = limit(30.0, "s", "workers of a server that is stopped", _FIXED, "they are killed")
CALLERS = limit(10_000, "callers", "callers whose rate is remembered", _FIXED, "the longest silent one is forgotten")
HEADER_BYTES = limit(64 * _KIB, "bytes", "request line and headers", _FIXED, "refused with 431")
HEADER_SECONDS = limit(15.0, "s", "sending the headers of a request", _FIXED, "the connection is closed")
CONNECTIONS_PER_ADDRESS = limit(256, "connections", "connections of one address before sign-in", _FIXED,
    "the oldest is closed")
CONNECTIONS = limit(2048, "connections", "all connections before sign-in, or a fifth of the file descriptors", _FIXED,
    "the oldest is closed")
OWN_DESCRIPTORS = limit(1024, "descriptors", "file descriptors that no connection gets, or a quarter of all",
    "the limit of open files (`ulimit -n`)",
    "the key with the most connections gives way: one that is idle, else its newest is refused with `OVERLOADED`")
BODY_SECONDS = limit(15.0, "s", "the time in which a body must bring `BODY_LEAST`", _FIXED, "the connection is closed")
BODY_LEAST = limit(16 * _KIB, "bytes", "the least of a body in `BODY_SECONDS`, until it is complete", _FIXED,
    "the connection is closed")
UNREAD_SECONDS = limit(60.0, "s", "an answer of which a client reads nothing", _FIXED, "the connection is closed")
SIGN_IN_BYTES = limit(4096, "bytes", "the body of a sign-in", _FIXED, "refused with 413")
SIGN_IN_TRIES = limit(10.0, "failures", "failed sign-ins of one address at once", _FIXED,
    "more are refused with 429; one more every 6 s")
JWT_CHARACTERS = limit(8 * _KIB, "characters", "a JWT", _FIXED, "refused with 401")
JWT_SUBJECT = limit(255, "characters", "`sub` of a JWT", _FIXED, "refused with 401")
JWT_SECRET_MIN = limit(32, "characters", "`serve.jwt_secret`", _FIXED, "the server does not start")
TOKENS_CACHED = limit(10_000, "tokens", "verified JWTs in memory", _FIXED, "verified again")
JWKS_BYTES = limit(256 * _KIB, "bytes", "fetched signing keys", _FIXED, "the fetch fails")
JWKS_TIMEOUT = limit(5.0, "s", "fetching signing keys", _FIXED, "the fetch fails; known keys are used")
METRICS_TOKEN = limit(32, "characters", "the token of `serve.metrics_token`, at least", _FIXED,
    "the server does not start")
KEYS_CACHED = limit(10_000, "keys", "API keys in memory", _FIXED, "read again")
KEYS_AT_ONCE = limit(1000, "keys", "key ids looked up by one read", _FIXED, "the rest waits for the next read")
KEY_NAME = limit(100, "characters", "the name of an API key", _FIXED, _TOO_LARGE)
TRANSFERS = limit(64, "transfers", "artifacts sent or received at once", _FIXED, "refused with 503")
STREAM_BEHIND = limit(1000, "events", "a stream behind the log", _FIXED,
    "the stream ends; its reader reconnects with its cursor")
WATCH_WAIT = limit(1.0, "s", "the check of a key for `/metrics` by the store", _FIXED, "its last answer counts")
WRITE_FAILURE_KEPT = limit(60.0, "s", "a failed write, in the answers of the probes", _FIXED, "it counts no more")
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
TENANT_ENGINES = limit(1000, "tenants", "tenants whose state a server keeps", _FIXED, "read from the store again")
TENANT_IDLE = limit(600.0, "s", "a tenant that nobody uses, in a server's memory", _FIXED, "its place is given up")
TENANT_LEASE = limit(600.0, "s", "the leader's lease on one of several tenants", _FIXED,
                     "renewed while it has work there")
COOKIE_SESSIONS = limit(8, "sessions", "tenants that a browser is signed in to at once", _FIXED,
                        "the oldest is signed out")
LISTED_TENANTS = limit(200, "tenants", "names in `/me` for the deployment's owner", _FIXED, "the rest is left out")
HOPS_TO_HOME = limit(2, "servers", "that a client follows to a tenant's home", _FIXED,
    "it waits before each further one, until `RETRY_FOR` is over")
MOST_STORES = limit(50, "stores", "stores of tenants that a server has open", "setting serve.most_stores",
                    "503 for the tenant that would be one more")
METRIC_PLACES = limit(1000, "projects", "label values of metrics, over all tenants", _FIXED, "the rest is `other`")
METRIC_TENANTS = limit(200, "tenants", "label values of metrics", _FIXED, "the rest is `other`")
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
ANSWER_BYTES = limit(64 * _MIB, "bytes", "an answer of a server, artifacts aside", _FIXED,
    "refused with `ANSWER_REFUSED`")
ANSWER_SECONDS = limit(300.0, "s", "an answer of a server in all, beyond the time it was asked to wait", _FIXED,
    "refused with `ANSWER_REFUSED`")
DOWNLOAD_RATE = limit(16 * _KIB, "bytes/s", "an artifact that a server sends, beyond `ANSWER_SECONDS`", _FIXED,
    "the download fails")
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
PRIVATE_KEY_LINES = limit(200, "lines", "a private key that an agent prints, in a transcript", _FIXED,
    "lines after them are kept as any other")

_sections.append("Agents and the runner")
RUN_AGENTS = limit(64, "agents", "`tenure run -n`", _FIXED, "refused with exit code 2")
RUN_HOLDS = limit(100, "tasks", "what an agent of a runner holds at once: its task and subtasks of it",
    "the agent's `max_concurrent_tasks`", "denied with DENIED_LIMIT")
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
STATEMENT_TIMEOUT = limit(30.0, "s", "one statement on PostgreSQL or MariaDB, one answer of Valkey", _FIXED,
    "the command fails")
SILENT_HOST = limit(60.0, "s", "a host of a store that answered nothing is tried last", _FIXED,
    "it is tried in its turn again")
UNANSWERED = limit(10.0, "s", "data or probes that a store's server does not acknowledge", _FIXED,
    "the connection is lost")
POOL = limit(1000, "connections", "`pool` of a PostgreSQL, MariaDB or Valkey address", _FIXED, _INVALID)
PREPARED = limit(300, "statements", "prepared statements of a connection", _FIXED, "others are not prepared")
NOTIFICATIONS = limit(256, "notifications", "notifications that a process remembers", _FIXED, "the oldest are dropped")
MARIADB_OLDEST = limit(1011, "version", "the MariaDB server: 10.11", _FIXED, "the store does not open")
MARIADB_PACKET = limit(16 * _MIB, "bytes", "the least `max_allowed_packet` of a MariaDB server", _FIXED,
    "the store does not open")
VALKEY_REPLICAS = limit(100, "replicas", "`replicas` of a Valkey address", _FIXED, _INVALID)
VALKEY_REPLICA_WAIT = limit(5.0, "s", "waiting for the replicas that a Valkey address asks for", _FIXED,
    "the outcome is unknown")
VALKEY_COMMIT = limit(5 * _US, "us", "a transaction on Valkey, from its time to its commit", _FIXED,
    "nothing is written, and the engine runs it again")
VALKEY_COPY = limit(3600 * _US, "us", "the same, where it brings a project that the store did not have", _FIXED,
    "nothing is written")
VALKEY_TURN = limit(3.0, "s", "a writer's turn on Valkey without a sign of it", _FIXED, "the next writer begins")
POSTGRES_OLDEST = limit(130000, "version", "the PostgreSQL server", _FIXED, "the store does not open")
VALUES_PER_QUERY = limit(16_384, "values", "values of one filter", _FIXED, _INVALID)
METRICS_TOKEN_FILE = limit(4096, "bytes", "the file with the token of metrics", _FIXED, _CUT)
PROJECT_NAME_FILE = limit(512, "characters", "the file with the project's name", _FIXED, _CUT)
COPY_EVERY = limit(600.0, "s", "between two copies of an embedded store that is written, beside its folder",
    "setting `copies.every`", "the next copy has it")
COPY_SOONEST = limit(60.0, "s", "the same, where a process that makes them begins; where it ends, none", _FIXED,
    "the next copy has it")
COPY_LARGEST = limit(256 * _MIB, "bytes", "an embedded store that is copied", _FIXED,
    "no copy is made, and the log says so once")
COPIES_OF_STORE = limit(3, "copies", "one store at one path, of its present epoch", _FIXED, "the oldest is deleted")
COPIES_OF_EARLIER = limit(2, "copies", "the same, of earlier epochs or former stores there: the last of each", _FIXED,
    "the oldest is deleted")
COPIES_BYTES = limit(1024 * _MIB, "bytes", "copies of all stores of a user", _FIXED, "the oldest are deleted")
TRUST_BYTES = limit(_MIB, "bytes", "a `tenure.toml`", _FIXED, _INVALID)
TRUST_CHANGES = limit(20, "lines", "changes that `trust` lists", _FIXED, "the rest is counted")
TRUST_VALUE = limit(200, "characters", "a value that `trust` prints", _FIXED, _CUT)
TRUST_CACHED = limit(200, "files", "remembered owners of files", _FIXED, "read again")
# fmt: on
