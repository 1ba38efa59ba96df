-- breaking: no
-- since: 0.1.0
--
-- One table a kind of row, one column a field: `python -m tenure.stores.sql.columns --postgres` prints the lists.
-- Text is compared by its bytes (COLLATE "C"), which for UTF-8 is the order of code points and that of every store.

-- The one row of facts about the store. `place` names the server and database at its last settling: elsewhere it is a
-- copy. Who runs with an older schema than `breaking` must stop. `epoch` is for tenants that have none of their own.
CREATE TABLE meta (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch text NOT NULL,
    schema bigint NOT NULL,
    breaking bigint NOT NULL,
    place text NOT NULL
);

CREATE TABLE epoch (
    tenant text COLLATE "C" PRIMARY KEY,
    epoch text NOT NULL,
    place text NOT NULL
);

CREATE TABLE migration (
    number bigint PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    since text NOT NULL,
    breaking boolean NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE task_hot (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "sequence" bigint NOT NULL,
    "state" text COLLATE "C" NOT NULL,
    "run" bigint NOT NULL,
    "generation" bigint NOT NULL,
    "attempts" bigint NOT NULL,
    "agent" text COLLATE "C",
    "session" text COLLATE "C",
    "claimed_at" bigint,
    "lease" bigint,
    "lease_until" bigint,
    "renewals" bigint NOT NULL,
    "presented_at" bigint,
    "claim_epoch" text COLLATE "C",
    "answerable" boolean NOT NULL,
    "percent" bigint,
    "parked" text COLLATE "C",
    "price" bigint,
    "work_product" text COLLATE "C",
    "updated_at" bigint NOT NULL,
    "ready_at" bigint,
    "started_at" bigint,
    "completed_at" bigint,
    "version" bigint NOT NULL,
    "lane" text COLLATE "C",
    "band" bigint NOT NULL,
    "rank" bigint NOT NULL,
    "due_at" bigint,
    "plain" boolean NOT NULL,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 50);

CREATE TABLE task_base (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "key" text COLLATE "C" NOT NULL,
    "ref" text COLLATE "C" NOT NULL,
    "track" text COLLATE "C" NOT NULL,
    "type" text COLLATE "C" NOT NULL,
    "dag" text COLLATE "C" NOT NULL,
    "parent" text COLLATE "C",
    "local_name" text COLLATE "C",
    "parent_run" bigint NOT NULL,
    "depth" bigint NOT NULL,
    "root" text COLLATE "C",
    "lineage" bigint NOT NULL,
    "children" bigint NOT NULL,
    "idempotency_key" text COLLATE "C",
    "state_before" text COLLATE "C",
    "reason" text COLLATE "C",
    "answers" text COLLATE "C" NOT NULL,
    "given_back" bigint NOT NULL,
    "max_attempts" bigint NOT NULL,
    "retry_at" bigint,
    "last_error" text COLLATE "C",
    "troubled" text COLLATE "C" NOT NULL,
    "cool_offs" text COLLATE "C" NOT NULL,
    "priority" bigint NOT NULL,
    "boost" bigint NOT NULL,
    "deadline" bigint,
    "not_before" bigint,
    "missed" boolean NOT NULL,
    "height" bigint NOT NULL,
    "waits_on" bigint NOT NULL,
    "unmet" bigint NOT NULL,
    "dependents" bigint NOT NULL,
    "requires" text COLLATE "C" NOT NULL,
    "region" text COLLATE "C",
    "tags" text COLLATE "C" NOT NULL,
    "guarded" boolean NOT NULL,
    "capped" boolean NOT NULL,
    "checked" boolean NOT NULL,
    "models" text COLLATE "C" NOT NULL,
    "fallback_models" text COLLATE "C" NOT NULL,
    "metered" boolean NOT NULL,
    "wanted" text COLLATE "C",
    "step" text COLLATE "C",
    "progress_at" bigint,
    "done_by" bigint,
    "warned_at" bigint,
    "funded" boolean NOT NULL,
    "resume_at" bigint,
    "max_duration" bigint,
    "artifacts" bigint NOT NULL,
    "offer_to" text COLLATE "C",
    "offer_until" bigint,
    "created_by" text COLLATE "C" NOT NULL,
    "trace_id" text COLLATE "C",
    "created_at" bigint NOT NULL,
    "failed_at" bigint,
    "dead_lettered_at" bigint,
    "archived_at" bigint,
    PRIMARY KEY (id, project, tenant)
);

CREATE VIEW task AS SELECT h.tenant, h."project", h."id", b."key", b."ref", b."track", h."sequence", b."type",
    b."dag", b."parent", b."local_name", b."parent_run", b."depth", b."root", b."lineage", b."children",
    b."idempotency_key", h."state", b."state_before", b."reason", b."answers", h."run", h."generation", h."attempts",
    b."given_back", b."max_attempts", b."retry_at", b."last_error", b."troubled", b."cool_offs", b."priority",
    b."boost", b."deadline", b."not_before", b."missed", b."height", b."waits_on", b."unmet", b."dependents",
    b."requires", b."region", b."tags", b."guarded", b."capped", b."checked", b."models", b."fallback_models",
    b."metered", h."agent", h."session", h."claimed_at", h."lease", h."lease_until", h."renewals", h."presented_at",
    h."claim_epoch", h."answerable", b."wanted", h."percent", b."step", b."progress_at", b."done_by", b."warned_at",
    b."funded", b."resume_at", b."max_duration", b."artifacts", b."offer_to", b."offer_until", h."parked", h."price",
    h."work_product", b."created_by", b."trace_id", b."created_at", h."updated_at", h."ready_at", h."started_at",
    h."completed_at", b."failed_at", b."dead_lettered_at", b."archived_at", h."version", h."lane", h."band", h."rank",
    h."due_at", h."plain" FROM task_hot AS h JOIN task_base AS b ON b.tenant = h.tenant AND b.project = h.project AND
    b.id = h.id;

CREATE TABLE brief (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "title" text COLLATE "C" NOT NULL,
    "description" text COLLATE "C" NOT NULL,
    "metadata" text COLLATE "C" NOT NULL,
    "spec" text COLLATE "C" NOT NULL,
    "constraints" text COLLATE "C" NOT NULL,
    "output" text COLLATE "C" NOT NULL,
    "retry" text COLLATE "C" NOT NULL,
    "touches" text COLLATE "C" NOT NULL,
    "on_lost" text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE claim (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "generation" bigint NOT NULL,
    "run" bigint NOT NULL,
    "attempt" bigint NOT NULL,
    "nonce" bytea NOT NULL,
    "epoch" text COLLATE "C" NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "session" text COLLATE "C" NOT NULL,
    "user" text COLLATE "C",
    "acquired_at" bigint NOT NULL,
    "lease" bigint NOT NULL,
    "state" text COLLATE "C" NOT NULL,
    "reason" text COLLATE "C",
    "released_at" bigint,
    "renewals" bigint NOT NULL,
    "counted" boolean NOT NULL,
    "continues" boolean NOT NULL,
    "result_accepted" boolean,
    "work_product" text COLLATE "C",
    "error_class" text COLLATE "C",
    "error" text COLLATE "C",
    "model" text COLLATE "C",
    "refused" bigint NOT NULL,
    "invalid" bigint NOT NULL,
    "process" text COLLATE "C",
    "funds" text COLLATE "C",
    "request_id" text COLLATE "C",
    "request_hash" text COLLATE "C",
    grant_event bigint,
    result_event bigint,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 50);

CREATE TABLE result (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "run" bigint NOT NULL,
    "generation" bigint NOT NULL,
    "session" text COLLATE "C" NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "user" text COLLATE "C",
    "submitted_at" bigint NOT NULL,
    "accepted" boolean NOT NULL,
    "reason" text COLLATE "C" NOT NULL,
    "data" text COLLATE "C",
    "summary" text COLLATE "C" NOT NULL,
    "size" bigint NOT NULL,
    "digest" text COLLATE "C" NOT NULL,
    "processing" bigint,
    "work_product" text COLLATE "C",
    "work_lost" boolean NOT NULL,
    "late" boolean NOT NULL,
    "request_id" text COLLATE "C",
    "artifacts" text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE validation (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "claimed" bigint NOT NULL,
    "run" bigint NOT NULL,
    "result" text COLLATE "C" NOT NULL,
    "validator" text COLLATE "C" NOT NULL,
    "state" text COLLATE "C" NOT NULL,
    "generation" bigint NOT NULL,
    "nonce" bytea NOT NULL,
    "epoch" text COLLATE "C" NOT NULL,
    "holder" text COLLATE "C",
    "agent" text COLLATE "C",
    "taken_at" bigint,
    "lease" bigint NOT NULL,
    "until" bigint NOT NULL,
    "tries" bigint NOT NULL,
    "retry_at" bigint,
    "note" text COLLATE "C",
    "held_back" text COLLATE "C",
    "reasons" text COLLATE "C" NOT NULL,
    "details" text COLLATE "C" NOT NULL,
    "created_at" bigint NOT NULL,
    "decided_at" bigint,
    "decided_by" text COLLATE "C",
    "request_id" text COLLATE "C",
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE checkpoint (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "data" text COLLATE "C" NOT NULL,
    "generation" bigint NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "session" text COLLATE "C" NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE usage (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "generation" bigint NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "session" text COLLATE "C" NOT NULL,
    "model" text COLLATE "C" NOT NULL,
    "late" boolean NOT NULL,
    "fresh" bigint NOT NULL,
    "cached" bigint NOT NULL,
    "written" bigint NOT NULL,
    "output" bigint NOT NULL,
    "cost" bigint,
    "computed" boolean NOT NULL,
    "duration" bigint NOT NULL,
    "at" bigint NOT NULL,
    "pairs" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 85);

CREATE TABLE budget (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "scope" text COLLATE "C" NOT NULL,
    "currency" text COLLATE "C" NOT NULL,
    "allocated" bigint NOT NULL,
    "default_estimate" bigint NOT NULL,
    "task" text COLLATE "C",
    "period" text COLLATE "C",
    "zone" text COLLATE "C" NOT NULL,
    "begins_at" bigint,
    "ends_at" bigint,
    "throttle" boolean NOT NULL,
    "created_at" bigint NOT NULL,
    "created_by" text COLLATE "C" NOT NULL,
    "priced_at" bigint NOT NULL,
    "consumed" bigint NOT NULL,
    "reserved" bigint NOT NULL,
    "earlier" bigint NOT NULL,
    "since" bigint NOT NULL,
    "until" bigint,
    "alerts" text COLLATE "C" NOT NULL,
    "burn" text COLLATE "C" NOT NULL,
    "next_claim_at" bigint,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 50);

CREATE TABLE landing (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "generation" bigint NOT NULL,
    "run" bigint NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "branch" text COLLATE "C" NOT NULL,
    "old" text COLLATE "C" NOT NULL,
    "new" text COLLATE "C" NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE artifact (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "generation" bigint NOT NULL,
    "run" bigint NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "name" text COLLATE "C" NOT NULL,
    "type" text COLLATE "C" NOT NULL,
    "digest" text COLLATE "C" NOT NULL,
    "size" bigint NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE content (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "size" bigint NOT NULL,
    "uses" bigint NOT NULL,
    "idle_at" bigint,
    "dropped_at" bigint,
    "gone" boolean NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE body (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "content" bytea NOT NULL,
    "uses" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE edge (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "needs" text COLLATE "C" NOT NULL,
    "on_failure" text COLLATE "C" NOT NULL,
    "subtask" boolean NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE dag (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "title" text COLLATE "C" NOT NULL,
    "plan" text COLLATE "C",
    "run" bigint NOT NULL,
    "status" text COLLATE "C" NOT NULL,
    "total" bigint NOT NULL,
    "live" bigint NOT NULL,
    "blocked" bigint NOT NULL,
    "completed" bigint NOT NULL,
    "cancelled" bigint NOT NULL,
    "dead" bigint NOT NULL,
    "fired" text COLLATE "C" NOT NULL,
    "created_by" text COLLATE "C" NOT NULL,
    "created_at" bigint NOT NULL,
    "ended_at" bigint,
    "on_end" text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 70);

CREATE TABLE dead_letter (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "run" bigint NOT NULL,
    "dag" text COLLATE "C" NOT NULL,
    "error_class" text COLLATE "C" NOT NULL,
    "error" text COLLATE "C" NOT NULL,
    "history" text COLLATE "C" NOT NULL,
    "poison_pill" boolean NOT NULL,
    "dead_lettered_at" bigint NOT NULL,
    "reviewed_by" text COLLATE "C",
    "reviewed_at" bigint,
    "resolution" text COLLATE "C",
    "note" text COLLATE "C",
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE track (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "name" text COLLATE "C" NOT NULL,
    "purpose" text COLLATE "C" NOT NULL,
    "last_sequence" bigint NOT NULL,
    "completed" bigint NOT NULL,
    "cancelled" bigint NOT NULL,
    "pruned" bigint NOT NULL,
    "gone" text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 70);

CREATE TABLE project (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "default_track" text COLLATE "C" NOT NULL,
    "boost" bigint NOT NULL,
    "agents_may_operate" boolean NOT NULL,
    "stopped" text COLLATE "C" NOT NULL,
    "limits" text COLLATE "C" NOT NULL,
    "watch" text COLLATE "C",
    "created_at" bigint NOT NULL,
    "routing" boolean NOT NULL,
    "limited" text COLLATE "C" NOT NULL,
    "typical" text COLLATE "C" NOT NULL,
    "funded" text COLLATE "C" NOT NULL,
    "parked" text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE agent (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "type" text COLLATE "C" NOT NULL,
    "capabilities" text COLLATE "C" NOT NULL,
    "models" text COLLATE "C" NOT NULL,
    "region" text COLLATE "C",
    "tracks" text COLLATE "C" NOT NULL,
    "max_concurrent_tasks" bigint,
    "draining" boolean NOT NULL,
    "left_at" bigint,
    "health" text COLLATE "C" NOT NULL,
    "host" text COLLATE "C",
    "boot" text COLLATE "C",
    "pid" bigint,
    "pid_start" bigint,
    "heartbeat" bigint NOT NULL,
    "stale_after" bigint NOT NULL,
    "registered_at" bigint NOT NULL,
    "last_seen" bigint NOT NULL,
    "stale" boolean NOT NULL,
    "memory_mb" bigint,
    "cpu_percent" bigint,
    "step" text COLLATE "C",
    "troubles" bigint NOT NULL,
    "cool_until" bigint,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 70);

CREATE TABLE session (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "user" text COLLATE "C",
    "created_at" bigint NOT NULL,
    "last_activity" bigint NOT NULL,
    "ended_at" bigint,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 70);

CREATE TABLE model (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "troubles" bigint NOT NULL,
    "cool_until" bigint,
    "tried_by" text COLLATE "C",
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE message (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "message" text COLLATE "C" NOT NULL,
    "sender" text COLLATE "C" NOT NULL,
    "recipient" text COLLATE "C" NOT NULL,
    "address" text COLLATE "C" NOT NULL,
    "type" text COLLATE "C" NOT NULL,
    "text" text COLLATE "C" NOT NULL,
    "reply_to" text COLLATE "C",
    "sent_at" bigint NOT NULL,
    "read_at" bigint,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE reservation (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "pattern" text COLLATE "C" NOT NULL,
    "mode" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C",
    "generation" bigint NOT NULL,
    "nonce" bytea NOT NULL,
    "epoch" text COLLATE "C" NOT NULL,
    "agent" text COLLATE "C" NOT NULL,
    "session" text COLLATE "C" NOT NULL,
    "created_at" bigint NOT NULL,
    "lease" bigint,
    "until" bigint,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE leader (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "holder" text COLLATE "C" NOT NULL,
    "term" bigint NOT NULL,
    "elected_at" bigint NOT NULL,
    "lease" bigint NOT NULL,
    "until" bigint NOT NULL,
    "ticks" text COLLATE "C" NOT NULL,
    "cycles" text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, project, tenant)
) WITH (fillfactor = 70);

CREATE TABLE request (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "digest" text COLLATE "C" NOT NULL,
    "outcome" text COLLATE "C" NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE archived (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "key" text COLLATE "C" NOT NULL,
    "ref" text COLLATE "C" NOT NULL,
    "track" text COLLATE "C" NOT NULL,
    "type" text COLLATE "C" NOT NULL,
    "dag" text COLLATE "C",
    "parent" text COLLATE "C",
    "root" text COLLATE "C",
    "idempotency_key" text COLLATE "C",
    "state" text COLLATE "C" NOT NULL,
    "priority" bigint NOT NULL,
    "tags" text COLLATE "C" NOT NULL,
    "deadline" bigint,
    "created_at" bigint NOT NULL,
    "updated_at" bigint NOT NULL,
    "completed_at" bigint,
    "archived_at" bigint NOT NULL,
    "out" boolean NOT NULL,
    "events" bigint NOT NULL,
    "size" bigint NOT NULL,
    "document" bytea NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE api_key (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "name" text COLLATE "C" NOT NULL,
    "role" text COLLATE "C" NOT NULL,
    "user" text COLLATE "C",
    "agent" text COLLATE "C",
    "projects" text COLLATE "C" NOT NULL,
    "digest" bytea NOT NULL,
    "previous" bytea NOT NULL,
    "previous_until" bigint,
    "created_at" bigint NOT NULL,
    "created_by" text COLLATE "C" NOT NULL,
    "rotated_at" bigint,
    "expires_at" bigint,
    "revoked_at" bigint,
    "request_id" text COLLATE "C",
    "request_hash" text COLLATE "C",
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE schedule (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "cron" text COLLATE "C" NOT NULL,
    "zone" text COLLATE "C" NOT NULL,
    "misfire" text COLLATE "C" NOT NULL,
    "template" text COLLATE "C" NOT NULL,
    "enabled" boolean NOT NULL,
    "reason" text COLLATE "C",
    "next_at" bigint,
    "last_at" bigint,
    "last_made" text COLLATE "C",
    "last_error" text COLLATE "C",
    "fired" bigint NOT NULL,
    "missed" bigint NOT NULL,
    "failed" bigint NOT NULL,
    "created_by" text COLLATE "C" NOT NULL,
    "created_at" bigint NOT NULL,
    "changed_at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE trigger (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "kind" text COLLATE "C" NOT NULL,
    "filter" text COLLATE "C" NOT NULL,
    "template" text COLLATE "C" NOT NULL,
    "enabled" boolean NOT NULL,
    "behind" bigint NOT NULL,
    "most" bigint NOT NULL,
    "hour_at" bigint,
    "hour" bigint NOT NULL,
    "fired" bigint NOT NULL,
    "failed" bigint NOT NULL,
    "held_back" bigint NOT NULL,
    "told_at" bigint,
    "last_at" bigint,
    "last_made" text COLLATE "C",
    "last_error" text COLLATE "C",
    "signature" text COLLATE "C",
    "secret" bytea NOT NULL,
    "previous" bytea NOT NULL,
    "previous_until" bigint,
    "request_id" text COLLATE "C",
    "request_hash" text COLLATE "C",
    "created_by" text COLLATE "C" NOT NULL,
    "created_at" bigint NOT NULL,
    "changed_at" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE log_cursor (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "sequence" bigint NOT NULL,
    PRIMARY KEY (id, project, tenant)
);

CREATE TABLE event (
    sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "time" bigint NOT NULL,
    "kind" text COLLATE "C" NOT NULL,
    "level" text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C",
    "key" text COLLATE "C",
    "version" bigint,
    "track" text COLLATE "C",
    "generation" bigint,
    "agent" text COLLATE "C",
    "session" text COLLATE "C",
    "user" text COLLATE "C",
    "address" text COLLATE "C",
    "previous_state" text COLLATE "C",
    "new_state" text COLLATE "C",
    "message" text COLLATE "C" NOT NULL,
    "details" text COLLATE "C" NOT NULL,
    "patch" text COLLATE "C" NOT NULL,
    "trace_id" text COLLATE "C",
    "causation_id" text COLLATE "C",
    of_claim boolean NOT NULL DEFAULT false,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id()
);

-- Many events of one kind and moment as one row, an item each in every array: see `blocks`. They have the sequences from
-- `first` to `last`, drawn from the same source as those of single events.
CREATE TABLE event_block (
    first bigint NOT NULL,
    last bigint PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    project text COLLATE "C" NOT NULL,
    time bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    new_state text COLLATE "C" NOT NULL,
    epoch text COLLATE "C",
    "id" text[] COLLATE "C" NOT NULL,
    "task" text[] COLLATE "C" NOT NULL,
    "key" text[] COLLATE "C" NOT NULL,
    "version" bigint[] NOT NULL,
    "track" text[] COLLATE "C" NOT NULL,
    "generation" bigint[] NOT NULL,
    "agent" text[] COLLATE "C" NOT NULL,
    "session" text[] COLLATE "C" NOT NULL,
    "user" text[] COLLATE "C",
    "address" text[] COLLATE "C",
    "previous_state" text[] COLLATE "C" NOT NULL,
    "trace_id" text[] COLLATE "C",
    "causation_id" text[] COLLATE "C" NOT NULL,
    "claimer" text[] COLLATE "C",
    "request_id" text[] COLLATE "C",
    "request_hash" text[] COLLATE "C",
    "said" text[] COLLATE "C",
    "facts" text[] COLLATE "C" NOT NULL,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id()
);
-- Written out as they are: to press them together costs more than to write them.
ALTER TABLE event_block ALTER "id" SET STORAGE EXTERNAL, ALTER "task" SET STORAGE EXTERNAL, ALTER "key" SET STORAGE
    EXTERNAL, ALTER "version" SET STORAGE EXTERNAL, ALTER "track" SET STORAGE EXTERNAL, ALTER "generation" SET STORAGE
    EXTERNAL, ALTER "agent" SET STORAGE EXTERNAL, ALTER "session" SET STORAGE EXTERNAL, ALTER "user" SET STORAGE
    EXTERNAL, ALTER "address" SET STORAGE EXTERNAL, ALTER "previous_state" SET STORAGE EXTERNAL, ALTER "trace_id" SET
    STORAGE EXTERNAL, ALTER "causation_id" SET STORAGE EXTERNAL, ALTER "claimer" SET STORAGE EXTERNAL, ALTER
    "request_id" SET STORAGE EXTERNAL, ALTER "request_hash" SET STORAGE EXTERNAL, ALTER "said" SET STORAGE EXTERNAL,
    ALTER "facts" SET STORAGE EXTERNAL;

-- Covering: `lanes` and `ready` are answered by the first alone.
CREATE INDEX task_ready ON task_hot (tenant, project, lane, band, rank, sequence, id) INCLUDE (plain)
    WHERE lane IS NOT NULL;
CREATE INDEX task_due ON task_hot (tenant, project, due_at, id) WHERE due_at IS NOT NULL;
CREATE UNIQUE INDEX task_ref ON task_base (ref, project, tenant);
CREATE INDEX task_key ON task_base (tenant, project, key, id);
CREATE UNIQUE INDEX task_idempotency ON task_base (idempotency_key, project, tenant) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX task_spawned ON task_base (parent, parent_run, local_name, project, tenant) WHERE local_name IS NOT NULL;
CREATE INDEX task_dag ON task_base (tenant, project, dag, id);
CREATE INDEX task_parent ON task_base (parent, project, tenant, id) WHERE parent IS NOT NULL;
CREATE INDEX task_state ON task_hot (tenant, project, state, id);
CREATE INDEX task_agent ON task_hot (tenant, project, agent, id) WHERE agent IS NOT NULL;
CREATE INDEX task_session ON task_hot (session, project, tenant, id) WHERE session IS NOT NULL;
CREATE INDEX task_offer ON task_base (tenant, project, offer_to, id) WHERE offer_to IS NOT NULL;
CREATE INDEX task_parked ON task_hot (parked, project, tenant, id) WHERE parked IS NOT NULL;
-- Of what is parked under a budget the best come out first.
CREATE INDEX task_unpaid ON task_hot (parked, project, tenant, band, rank, id) WHERE price IS NOT NULL;
CREATE INDEX task_created ON task_base (tenant, project, created_at, id);
-- The tags themselves are not in it: a long list of them would be larger than an index entry can be.
CREATE INDEX task_tagged ON task_base (tenant, project, id) WHERE tags <> '[]';

CREATE INDEX edge_task ON edge (task, project, tenant, id);
CREATE INDEX edge_needs ON edge (needs, project, tenant, id);

CREATE UNIQUE INDEX claim_generation ON claim (task, generation, project, tenant);
CREATE INDEX claim_session ON claim (session, project, tenant, id);
-- Not unique: one request may take several tasks.
CREATE INDEX claim_request ON claim (request_id, project, tenant) WHERE request_id IS NOT NULL;
-- Live claims only: the end of a claim forgets its process.
CREATE INDEX claim_process ON claim (process, project, tenant) WHERE process IS NOT NULL;

CREATE INDEX usage_task ON usage (task, generation, project, tenant);
CREATE INDEX usage_late ON usage (tenant, project) WHERE late;

CREATE INDEX landing_task ON landing (task, generation, project, tenant);

CREATE INDEX artifact_task ON artifact (task, generation, project, tenant);
-- Only what nobody refers to any more: the few that a sweep looks for.
CREATE INDEX content_idle ON content (tenant, project, idle_at) WHERE idle_at IS NOT NULL;

-- Also the second wall behind the rule "one accepted result for a task and run".
CREATE UNIQUE INDEX result_task ON result (task, (CASE WHEN accepted THEN run::text ELSE id END), project, tenant);

CREATE INDEX validation_task ON validation (task, project, tenant, id);
CREATE INDEX validation_open ON validation (tenant, project, state, created_at, id);

CREATE INDEX session_open ON session (tenant, project, agent, id) WHERE ended_at IS NULL;

CREATE INDEX message_recipient ON message (tenant, project, recipient, read_at);

CREATE INDEX archived_key ON archived (tenant, project, key, id);
CREATE INDEX archived_created ON archived (tenant, project, created_at, id);
CREATE INDEX archived_idempotency ON archived (tenant, project, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX archived_dag ON archived (tenant, project, dag, id) WHERE dag IS NOT NULL;

CREATE INDEX reservation_task ON reservation (task, project, tenant) WHERE task IS NOT NULL;
CREATE INDEX reservation_pattern ON reservation (tenant, project, pattern);
CREATE INDEX schedule_next ON schedule (tenant, next_at, id) WHERE next_at IS NOT NULL;

-- The log of a project, and its last event: who writes there is never earlier than it.
CREATE INDEX event_project ON event (tenant, project, sequence);
CREATE UNIQUE INDEX event_version ON event (task, version, project, tenant) WHERE task IS NOT NULL;
-- An event is `of_claim` whose session is that of a claim of its task: it is found by that claim.
CREATE INDEX event_session ON event (tenant, project, session, sequence) WHERE session IS NOT NULL AND NOT of_claim;
-- What a command caused is found by its time, which its id tells: nobody asks often, and everybody writes.
CREATE INDEX event_time ON event USING brin (time);
CREATE INDEX event_block_project ON event_block (tenant, project, last);

-- Rows here are written often and die soon: cleaned up by the hundred, not when a fifth of the table is dead.
ALTER TABLE task_hot SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE agent SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE session SET (autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE like_tasks (
    tenant text COLLATE "C" NOT NULL,
    "project" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "type" text COLLATE "C" NOT NULL,
    "size" text COLLATE "C" NOT NULL,
    "finished" text COLLATE "C" NOT NULL,
    PRIMARY KEY (id, project, tenant)
);
