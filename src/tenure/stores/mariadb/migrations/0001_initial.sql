-- breaking: no
-- since: 0.2.0

-- Every statement may be run again: a step that was interrupted between two of them is finished by the next opening.
-- Statements end with a semicolon at the end of a line. `migration` comes first: its comment says whose tables these are.

CREATE TABLE IF NOT EXISTS migration (
    number INTEGER PRIMARY KEY,
    name VARCHAR(255) NOT NULL,
    checksum VARCHAR(64) NOT NULL,
    since VARCHAR(32) NOT NULL,
    breaking TINYINT NOT NULL,
    applied_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin COMMENT='tenure';

-- `held` counts who had the row alone: a cluster sends changes to its other nodes, and no locks.

-- One row. A writer holds it shared until its end: it has read the epoch and the schema that it writes by.
CREATE TABLE IF NOT EXISTS meta (
    one TINYINT PRIMARY KEY CHECK (one = 1),
    epoch VARCHAR(64) NOT NULL,
    "schema" INTEGER NOT NULL,
    breaking INTEGER NOT NULL,
    place VARCHAR(512) NOT NULL,
    held BIGINT NOT NULL DEFAULT 0
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- The epoch of a tenant that has begun another than that of the store.
CREATE TABLE IF NOT EXISTS epoch (
    tenant VARCHAR(64) PRIMARY KEY,
    epoch VARCHAR(64) NOT NULL,
    place VARCHAR(512) NOT NULL
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- The turn of a project: the transaction that writes there holds its row.
CREATE TABLE IF NOT EXISTS turn (
    tenant VARCHAR(64) NOT NULL,
    project VARCHAR(128) NOT NULL,
    held BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, project)
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

-- One row: the last sequence of the log. Taken right before a commit, so sequences are in the order of commits.
CREATE TABLE IF NOT EXISTS log_end (
    one TINYINT PRIMARY KEY CHECK (one = 1),
    last BIGINT NOT NULL
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;

INSERT IGNORE INTO log_end (one, last) VALUES (1, 0);

-- Lanes are of any length: the index has their hash.
CREATE TABLE IF NOT EXISTS "task" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(128) NOT NULL,
    "key" VARCHAR(440) NOT NULL,
    "ref" VARCHAR(512) NOT NULL,
    "track" LONGTEXT NOT NULL,
    "sequence" BIGINT NOT NULL,
    "type" LONGTEXT NOT NULL,
    "dag" VARCHAR(255) NOT NULL,
    "parent" VARCHAR(128),
    "local_name" VARCHAR(255),
    "parent_run" BIGINT NOT NULL,
    "depth" BIGINT NOT NULL,
    "root" LONGTEXT,
    "lineage" BIGINT NOT NULL,
    "children" BIGINT NOT NULL,
    "idempotency_key" VARCHAR(255),
    "state" VARCHAR(32) NOT NULL,
    "state_before" LONGTEXT,
    "pauses" LONGTEXT NOT NULL,
    "cancelled" LONGTEXT,
    "answers" LONGTEXT NOT NULL,
    "run" BIGINT NOT NULL,
    "generation" BIGINT NOT NULL,
    "attempts" BIGINT NOT NULL,
    "given_back" BIGINT NOT NULL,
    "max_attempts" BIGINT NOT NULL,
    "retry_at" BIGINT,
    "last_error" LONGTEXT,
    "troubled" LONGTEXT NOT NULL,
    "failures" LONGTEXT NOT NULL,
    "cool_offs" LONGTEXT NOT NULL,
    "priority" BIGINT NOT NULL,
    "boost" BIGINT NOT NULL,
    "estimate" BIGINT,
    "length" BIGINT,
    "order_turn" BIGINT NOT NULL,
    "deadline" BIGINT,
    "not_before" BIGINT,
    "missed" TINYINT NOT NULL,
    "height" BIGINT NOT NULL,
    "waits_on" BIGINT NOT NULL,
    "unmet" BIGINT NOT NULL,
    "dependents" BIGINT NOT NULL,
    "requires" LONGTEXT NOT NULL,
    "region" LONGTEXT,
    "agent_type" LONGTEXT,
    "tags" LONGTEXT NOT NULL,
    "guarded" TINYINT NOT NULL,
    "capped" TINYINT NOT NULL,
    "checked" TINYINT NOT NULL,
    "brief_number" BIGINT NOT NULL,
    "models" LONGTEXT NOT NULL,
    "fallback_models" LONGTEXT NOT NULL,
    "metered" TINYINT NOT NULL,
    "agent" VARCHAR(255),
    "session" VARCHAR(255),
    "claimed_at" BIGINT,
    "lease" BIGINT,
    "lease_until" BIGINT,
    "renewals" BIGINT NOT NULL,
    "presented_at" BIGINT,
    "claim_epoch" LONGTEXT,
    "late_submit_open" TINYINT NOT NULL,
    "wanted" LONGTEXT,
    "percent" BIGINT,
    "step" LONGTEXT,
    "progress_at" BIGINT,
    "done_by" BIGINT,
    "warned_at" BIGINT,
    "funded" TINYINT NOT NULL,
    "reserved" TINYINT NOT NULL,
    "unseen_since" BIGINT,
    "max_duration" BIGINT,
    "artifacts" BIGINT NOT NULL,
    "offer_to" VARCHAR(255),
    "offer_until" BIGINT,
    "offer_term" BIGINT,
    "set_aside_for" VARCHAR(255),
    "price" BIGINT,
    "work_product" LONGTEXT,
    "created_by" LONGTEXT NOT NULL,
    "trace_id" LONGTEXT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "ready_at" BIGINT,
    "started_at" BIGINT,
    "completed_at" BIGINT,
    "failed_at" BIGINT,
    "dead_lettered_at" BIGINT,
    "archived_at" BIGINT,
    "version" BIGINT NOT NULL,
    "lane" LONGTEXT,
    "band" BIGINT NOT NULL,
    "rank" BIGINT NOT NULL,
    "due_at" BIGINT,
    "plain" TINYINT NOT NULL,
    "lane_hash" BINARY(32) AS (UNHEX(SHA2("lane", 256))) STORED,
    "sealed" TINYINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY task_agent ("tenant", "project", "agent", "id"),
    KEY task_created ("tenant", "project", "created_at", "id"),
    KEY task_dag ("tenant", "project", "dag", "id"),
    KEY task_due ("tenant", "project", "due_at", "id"),
    UNIQUE KEY task_idempotency ("tenant", "project", "idempotency_key"),
    KEY task_key ("tenant", "project", "key", "id"),
    KEY task_offer ("tenant", "project", "offer_to", "id"),
    KEY task_parent ("tenant", "project", "parent", "id"),
    KEY task_ready ("tenant", "project", "lane_hash", "band", "rank", "sequence", "id", "plain"),
    UNIQUE KEY task_ref ("tenant", "project", "ref"),
    KEY task_session ("tenant", "project", "session", "id"),
    KEY task_set_aside ("tenant", "project", "set_aside_for", "id"),
    UNIQUE KEY task_spawned ("tenant", "project", "parent", "parent_run", "local_name"),
    KEY task_state ("tenant", "project", "state", "id"),
    KEY task_unaffordable ("tenant", "project", "set_aside_for", "band", "boost", "rank", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "brief" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(128) NOT NULL,
    "title" LONGTEXT NOT NULL,
    "description" LONGTEXT NOT NULL,
    "seen" LONGTEXT,
    "metadata" LONGTEXT NOT NULL,
    "spec" LONGTEXT NOT NULL,
    "constraints" LONGTEXT NOT NULL,
    "output" LONGTEXT NOT NULL,
    "retry" LONGTEXT NOT NULL,
    "touches" LONGTEXT NOT NULL,
    "on_lost" LONGTEXT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "claim" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(192) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "generation" BIGINT NOT NULL,
    "run" BIGINT NOT NULL,
    "attempt" BIGINT NOT NULL,
    "nonce" LONGBLOB NOT NULL,
    "epoch" LONGTEXT NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "session" VARCHAR(255) NOT NULL,
    "user" LONGTEXT,
    "acquired_at" BIGINT NOT NULL,
    "lease" BIGINT NOT NULL,
    "state" VARCHAR(32) NOT NULL,
    "reason" LONGTEXT,
    "released_at" BIGINT,
    "renewals" BIGINT NOT NULL,
    "counted" TINYINT NOT NULL,
    "continues" TINYINT NOT NULL,
    "result_accepted" TINYINT,
    "work_product" LONGTEXT,
    "error_class" LONGTEXT,
    "error" LONGTEXT,
    "model" LONGTEXT,
    "refused" BIGINT NOT NULL,
    "invalid" BIGINT NOT NULL,
    "metadata" LONGTEXT NOT NULL,
    "process" VARCHAR(255),
    "funds" LONGTEXT,
    "request_id" VARCHAR(255),
    "request_hash" LONGTEXT,
    "requests" LONGTEXT NOT NULL,
    "key" VARCHAR(440),
    "term" BIGINT,
    "lease_why" LONGTEXT,
    PRIMARY KEY ("tenant", "project", "id"),
    UNIQUE KEY claim_generation ("tenant", "project", "task", "generation"),
    KEY claim_process ("tenant", "project", "process"),
    KEY claim_request ("tenant", "project", "request_id"),
    KEY claim_session ("tenant", "project", "session", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

-- `accepted_run` is missing where the result was not accepted: one accepted result for each task and run.
CREATE TABLE IF NOT EXISTS "result" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(128) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "run" BIGINT NOT NULL,
    "generation" BIGINT NOT NULL,
    "session" VARCHAR(255) NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "user" LONGTEXT,
    "submitted_at" BIGINT NOT NULL,
    "accepted" TINYINT NOT NULL,
    "reason" LONGTEXT NOT NULL,
    "data" LONGTEXT,
    "summary" LONGTEXT NOT NULL,
    "size" BIGINT NOT NULL,
    "digest" LONGTEXT NOT NULL,
    "processing" BIGINT,
    "work_product" LONGTEXT,
    "work_lost" TINYINT NOT NULL,
    "late" TINYINT NOT NULL,
    "request_id" VARCHAR(255),
    "artifacts" LONGTEXT NOT NULL,
    "accepted_run" BIGINT AS (IF("accepted", "run", NULL)) STORED,
    PRIMARY KEY ("tenant", "project", "id"),
    UNIQUE KEY result_accepted ("tenant", "project", "task", "accepted_run"),
    KEY result_task ("tenant", "project", "task", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "validation" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(128) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "claimed" BIGINT NOT NULL,
    "run" BIGINT NOT NULL,
    "result" LONGTEXT NOT NULL,
    "validator" LONGTEXT NOT NULL,
    "state" VARCHAR(32) NOT NULL,
    "generation" BIGINT NOT NULL,
    "nonce" LONGBLOB NOT NULL,
    "epoch" LONGTEXT NOT NULL,
    "holder" LONGTEXT,
    "agent" VARCHAR(255),
    "taken_at" BIGINT,
    "lease" BIGINT NOT NULL,
    "until" BIGINT NOT NULL,
    "tries" BIGINT NOT NULL,
    "retry_at" BIGINT,
    "note" LONGTEXT,
    "held_back" LONGTEXT,
    "reasons" LONGTEXT NOT NULL,
    "details" LONGTEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "decided_at" BIGINT,
    "decided_by" LONGTEXT,
    "request_id" VARCHAR(255),
    PRIMARY KEY ("tenant", "project", "id"),
    KEY validation_open ("tenant", "project", "state", "created_at", "id"),
    KEY validation_task ("tenant", "project", "task", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "checkpoint" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(128) NOT NULL,
    "data" LONGTEXT NOT NULL,
    "generation" BIGINT NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "session" VARCHAR(255) NOT NULL,
    "at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "usage" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "generation" BIGINT NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "session" VARCHAR(255) NOT NULL,
    "model" LONGTEXT NOT NULL,
    "late" TINYINT NOT NULL,
    "fresh" BIGINT NOT NULL,
    "cached" BIGINT NOT NULL,
    "written" BIGINT NOT NULL,
    "output" BIGINT NOT NULL,
    "cost" BIGINT,
    "computed" TINYINT NOT NULL,
    "duration" BIGINT NOT NULL,
    "at" BIGINT NOT NULL,
    "pairs" BIGINT NOT NULL,
    "operation" LONGTEXT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY usage_late ("tenant", "project", "late"),
    KEY usage_task ("tenant", "project", "task", "generation")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "budget" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "scope" LONGTEXT NOT NULL,
    "currency" LONGTEXT NOT NULL,
    "allocated" BIGINT NOT NULL,
    "default_estimate" BIGINT NOT NULL,
    "task" VARCHAR(128),
    "period" LONGTEXT,
    "zone" LONGTEXT NOT NULL,
    "begins_at" BIGINT,
    "ends_at" BIGINT,
    "throttle" TINYINT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "created_by" LONGTEXT NOT NULL,
    "priced_at" BIGINT NOT NULL,
    "consumed" BIGINT NOT NULL,
    "reserved" BIGINT NOT NULL,
    "earlier" BIGINT NOT NULL,
    "since" BIGINT NOT NULL,
    "until" BIGINT,
    "alerts" LONGTEXT NOT NULL,
    "burn" LONGTEXT NOT NULL,
    "next_claim_at" BIGINT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "landing" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "generation" BIGINT NOT NULL,
    "run" BIGINT NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "branch" LONGTEXT NOT NULL,
    "old" LONGTEXT NOT NULL,
    "new" LONGTEXT NOT NULL,
    "at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY landing_task ("tenant", "project", "task", "generation")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "artifact" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "generation" BIGINT NOT NULL,
    "run" BIGINT NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "name" LONGTEXT NOT NULL,
    "type" LONGTEXT NOT NULL,
    "digest" LONGTEXT NOT NULL,
    "size" BIGINT NOT NULL,
    "at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY artifact_task ("tenant", "project", "task", "generation")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "content" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "size" BIGINT NOT NULL,
    "uses" BIGINT NOT NULL,
    "idle_at" BIGINT,
    "dropped_at" BIGINT,
    "gone" TINYINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY content_idle ("tenant", "project", "idle_at")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "body" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "content" LONGBLOB NOT NULL,
    "uses" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "edge" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(300) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "needs" VARCHAR(128) NOT NULL,
    "on_failure" LONGTEXT NOT NULL,
    "subtask" TINYINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY edge_needs ("tenant", "project", "needs", "id"),
    KEY edge_task ("tenant", "project", "task", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "dag" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "title" LONGTEXT NOT NULL,
    "plan" LONGTEXT,
    "run" BIGINT NOT NULL,
    "status" LONGTEXT NOT NULL,
    "total" BIGINT NOT NULL,
    "live" BIGINT NOT NULL,
    "blocked" BIGINT NOT NULL,
    "completed" BIGINT NOT NULL,
    "cancelled" BIGINT NOT NULL,
    "dead" BIGINT NOT NULL,
    "fired" LONGTEXT NOT NULL,
    "created_by" LONGTEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "ended_at" BIGINT,
    "on_end" LONGTEXT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "dead_letter" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "run" BIGINT NOT NULL,
    "dag" VARCHAR(255) NOT NULL,
    "error_class" LONGTEXT NOT NULL,
    "error" LONGTEXT NOT NULL,
    "history" LONGTEXT NOT NULL,
    "poison_pill" TINYINT NOT NULL,
    "dead_lettered_at" BIGINT NOT NULL,
    "reviewed_by" LONGTEXT,
    "reviewed_at" BIGINT,
    "resolution" LONGTEXT,
    "note" LONGTEXT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "track" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "name" LONGTEXT NOT NULL,
    "purpose" LONGTEXT NOT NULL,
    "last_sequence" BIGINT NOT NULL,
    "completed" BIGINT NOT NULL,
    "cancelled" BIGINT NOT NULL,
    "pruned" BIGINT NOT NULL,
    "gone" LONGTEXT NOT NULL,
    "max_agents" BIGINT NOT NULL,
    "assigned" LONGTEXT NOT NULL,
    "pinned" LONGTEXT NOT NULL,
    "idle_since" LONGTEXT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "project" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "default_track" LONGTEXT NOT NULL,
    "boost" BIGINT NOT NULL,
    "agents_may_operate" TINYINT NOT NULL,
    "stopped" LONGTEXT NOT NULL,
    "limits" LONGTEXT NOT NULL,
    "watch" LONGTEXT,
    "created_at" BIGINT NOT NULL,
    "routing" TINYINT NOT NULL,
    "router" TINYINT NOT NULL,
    "ordering" LONGTEXT NOT NULL,
    "order_turn" BIGINT NOT NULL,
    "lead" LONGTEXT NOT NULL,
    "limited" LONGTEXT NOT NULL,
    "typical" LONGTEXT NOT NULL,
    "funded" LONGTEXT NOT NULL,
    "set_aside" LONGTEXT NOT NULL,
    "signs" TINYINT NOT NULL,
    "sealed" TINYINT NOT NULL,
    "audited_at" BIGINT NOT NULL,
    "compliance" LONGTEXT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "agent" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "type" LONGTEXT NOT NULL,
    "capabilities" LONGTEXT NOT NULL,
    "models" LONGTEXT NOT NULL,
    "region" LONGTEXT,
    "tracks" LONGTEXT NOT NULL,
    "max_concurrent_tasks" BIGINT,
    "draining" TINYINT NOT NULL,
    "terminated_at" BIGINT,
    "terminated_for" LONGTEXT,
    "left_at" BIGINT,
    "health" LONGTEXT NOT NULL,
    "host" LONGTEXT,
    "boot" LONGTEXT,
    "pid" BIGINT,
    "pid_start" BIGINT,
    "heartbeat" BIGINT NOT NULL,
    "stale_after" BIGINT NOT NULL,
    "registered_at" BIGINT NOT NULL,
    "last_seen" BIGINT NOT NULL,
    "stale" TINYINT NOT NULL,
    "memory_mb" BIGINT,
    "cpu_percent" BIGINT,
    "step" LONGTEXT,
    "troubles" BIGINT NOT NULL,
    "cool_until" BIGINT,
    "managed" TINYINT NOT NULL,
    "task" VARCHAR(128),
    "percent" BIGINT,
    "metadata" LONGTEXT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "health_minute" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "at" BIGINT NOT NULL,
    "health" LONGTEXT NOT NULL,
    "memory_mb" BIGINT,
    "cpu_percent" BIGINT,
    "percent" BIGINT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "session" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(255) NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "user" LONGTEXT,
    "created_at" BIGINT NOT NULL,
    "last_activity" BIGINT NOT NULL,
    "ended_at" BIGINT,
    "public_key" LONGTEXT,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY session_open ("tenant", "project", "agent", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "model" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "troubles" BIGINT NOT NULL,
    "cool_until" BIGINT,
    "tried_by" LONGTEXT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "like_tasks" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "type" LONGTEXT NOT NULL,
    "size" LONGTEXT NOT NULL,
    "finished" LONGTEXT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "message" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "message" LONGTEXT NOT NULL,
    "sender" LONGTEXT NOT NULL,
    "recipient" VARCHAR(255) NOT NULL,
    "address" LONGTEXT NOT NULL,
    "type" LONGTEXT NOT NULL,
    "text" LONGTEXT NOT NULL,
    "action" LONGTEXT,
    "expires_at" BIGINT,
    "reply_to" LONGTEXT,
    "sent_at" BIGINT NOT NULL,
    "read_at" BIGINT,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY message_recipient ("tenant", "project", "recipient", "read_at")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "reservation" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "pattern" LONGTEXT NOT NULL,
    "mode" LONGTEXT NOT NULL,
    "task" VARCHAR(128),
    "generation" BIGINT NOT NULL,
    "nonce" LONGBLOB NOT NULL,
    "epoch" LONGTEXT NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "session" VARCHAR(255) NOT NULL,
    "created_at" BIGINT NOT NULL,
    "lease" BIGINT,
    "until" BIGINT,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY reservation_pattern ("tenant", "project", "pattern"(255)),
    KEY reservation_task ("tenant", "project", "task")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "leader" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "holder" LONGTEXT NOT NULL,
    "term" BIGINT NOT NULL,
    "elected_at" BIGINT NOT NULL,
    "lease" BIGINT NOT NULL,
    "until" BIGINT NOT NULL,
    "process" VARCHAR(255),
    "is_auto" TINYINT NOT NULL,
    "is_lost" TINYINT NOT NULL,
    "duties_begun" LONGTEXT NOT NULL,
    "cycles" LONGTEXT NOT NULL,
    "store_term" BIGINT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "request" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "digest" LONGTEXT NOT NULL,
    "outcome" LONGTEXT NOT NULL,
    "at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "archived" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(128) NOT NULL,
    "key" VARCHAR(440) NOT NULL,
    "ref" VARCHAR(512) NOT NULL,
    "track" LONGTEXT NOT NULL,
    "type" LONGTEXT NOT NULL,
    "dag" VARCHAR(255),
    "parent" VARCHAR(128),
    "root" LONGTEXT,
    "idempotency_key" VARCHAR(255),
    "state" VARCHAR(32) NOT NULL,
    "priority" BIGINT NOT NULL,
    "tags" LONGTEXT NOT NULL,
    "deadline" BIGINT,
    "created_at" BIGINT NOT NULL,
    "updated_at" BIGINT NOT NULL,
    "completed_at" BIGINT,
    "archived_at" BIGINT NOT NULL,
    "out" TINYINT NOT NULL,
    "events" BIGINT NOT NULL,
    "size" BIGINT NOT NULL,
    "document" LONGBLOB NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY archived_created ("tenant", "project", "created_at", "id"),
    KEY archived_dag ("tenant", "project", "dag", "id"),
    KEY archived_idempotency ("tenant", "project", "idempotency_key"),
    KEY archived_key ("tenant", "project", "key", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "api_key" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "name" LONGTEXT NOT NULL,
    "role" LONGTEXT NOT NULL,
    "user" LONGTEXT,
    "agent" VARCHAR(255),
    "projects" LONGTEXT NOT NULL,
    "digest" LONGBLOB NOT NULL,
    "previous" LONGBLOB NOT NULL,
    "previous_until" BIGINT,
    "created_at" BIGINT NOT NULL,
    "created_by" LONGTEXT NOT NULL,
    "rotated_at" BIGINT,
    "expires_at" BIGINT,
    "revoked_at" BIGINT,
    "request_id" VARCHAR(255),
    "request_hash" LONGTEXT,
    "capabilities" LONGTEXT NOT NULL,
    "used_at" BIGINT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "web_session" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "key" VARCHAR(440) NOT NULL,
    "key_digest" LONGBLOB NOT NULL,
    "created_at" BIGINT NOT NULL,
    "expires_at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY web_session_expires ("tenant", "project", "expires_at")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "schedule" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(255) NOT NULL,
    "cron" LONGTEXT NOT NULL,
    "zone" LONGTEXT NOT NULL,
    "misfire" LONGTEXT NOT NULL,
    "template" LONGTEXT NOT NULL,
    "enabled" TINYINT NOT NULL,
    "reason" LONGTEXT,
    "next_at" BIGINT,
    "last_at" BIGINT,
    "last_made" LONGTEXT,
    "last_error" LONGTEXT,
    "fired" BIGINT NOT NULL,
    "missed" BIGINT NOT NULL,
    "failed" BIGINT NOT NULL,
    "created_by" LONGTEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "changed_at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY schedule_next ("tenant", "next_at", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "trigger" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "kind" LONGTEXT NOT NULL,
    "filter" LONGTEXT NOT NULL,
    "template" LONGTEXT NOT NULL,
    "enabled" TINYINT NOT NULL,
    "behind" BIGINT NOT NULL,
    "most" BIGINT NOT NULL,
    "hour_at" BIGINT,
    "hour" BIGINT NOT NULL,
    "fired" BIGINT NOT NULL,
    "failed" BIGINT NOT NULL,
    "held_back" BIGINT NOT NULL,
    "reported_at" BIGINT,
    "last_at" BIGINT,
    "last_made" LONGTEXT,
    "last_error" LONGTEXT,
    "signature" LONGTEXT,
    "secret" LONGBLOB NOT NULL,
    "previous" LONGBLOB NOT NULL,
    "previous_until" BIGINT,
    "request_id" VARCHAR(255),
    "request_hash" LONGTEXT,
    "created_by" LONGTEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "changed_at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "log_cursor" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "sequence" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "sink" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "sequence" BIGINT NOT NULL,
    "url" LONGTEXT NOT NULL,
    "projects" LONGTEXT NOT NULL,
    "max_lag" BIGINT NOT NULL,
    "identity" LONGTEXT,
    "paused_at" BIGINT,
    "paused_by" LONGTEXT,
    "cut_off_at" BIGINT,
    "sent" BIGINT NOT NULL,
    "sent_at" BIGINT,
    "error" LONGTEXT,
    "error_at" BIGINT,
    "created_at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "webhook" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "url" LONGTEXT NOT NULL,
    "kinds" LONGTEXT NOT NULL,
    "filter" LONGTEXT NOT NULL,
    "enabled" TINYINT NOT NULL,
    "disabled_for" LONGTEXT,
    "disabled_at" BIGINT,
    "secret" LONGBLOB NOT NULL,
    "previous" LONGBLOB NOT NULL,
    "previous_until" BIGINT,
    "request_id" VARCHAR(255),
    "request_hash" LONGTEXT,
    "since" BIGINT NOT NULL,
    "sequence" BIGINT,
    "parked" BIGINT NOT NULL,
    "delivered" BIGINT NOT NULL,
    "failed" BIGINT NOT NULL,
    "tries" BIGINT NOT NULL,
    "failing_since" BIGINT,
    "down_since" BIGINT,
    "up_at" BIGINT,
    "wait_until" BIGINT,
    "success_at" BIGINT,
    "failure_at" BIGINT,
    "status" BIGINT,
    "error" LONGTEXT,
    "created_by" LONGTEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "changed_at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "delivery" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(400) NOT NULL,
    "webhook" VARCHAR(128) NOT NULL,
    "message" LONGTEXT NOT NULL,
    "event" LONGTEXT NOT NULL,
    "sequence" BIGINT NOT NULL,
    "task" VARCHAR(128),
    "kind" LONGTEXT NOT NULL,
    "state" VARCHAR(32) NOT NULL,
    "at" BIGINT NOT NULL,
    "parked_at" BIGINT,
    "tries" BIGINT NOT NULL,
    "first_at" BIGINT,
    "tried_at" BIGINT,
    "next_at" BIGINT,
    "status" BIGINT,
    "error" LONGTEXT,
    "duration" BIGINT,
    "body" LONGBLOB NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY delivery_of_webhook ("tenant", "project", "webhook", "state", "sequence", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "data_key" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "wrapped" LONGBLOB NOT NULL,
    "created_at" BIGINT NOT NULL,
    "retired_at" BIGINT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "pool" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "program" LONGTEXT NOT NULL,
    "spawner" LONGTEXT NOT NULL,
    "size" BIGINT NOT NULL,
    "idle" BIGINT NOT NULL,
    "capabilities" LONGTEXT NOT NULL,
    "types" LONGTEXT NOT NULL,
    "tracks" LONGTEXT NOT NULL,
    "models" LONGTEXT NOT NULL,
    "enabled" TINYINT NOT NULL,
    "disabled_for" LONGTEXT,
    "created_by" LONGTEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "changed_at" BIGINT NOT NULL,
    "spawned" BIGINT NOT NULL,
    "failures" BIGINT NOT NULL,
    "wait_until" BIGINT,
    "error" LONGTEXT,
    "error_at" BIGINT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "spawn" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(128) NOT NULL,
    "pool" LONGTEXT NOT NULL,
    "place" BIGINT NOT NULL,
    "agent" VARCHAR(255) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "task_key" LONGTEXT NOT NULL,
    "spawner" LONGTEXT NOT NULL,
    "home" LONGTEXT NOT NULL,
    "state" VARCHAR(32) NOT NULL,
    "handle" LONGTEXT,
    "remote_session" LONGTEXT,
    "session" VARCHAR(255),
    "term" BIGINT NOT NULL,
    "started_at" BIGINT NOT NULL,
    "offer_until" BIGINT NOT NULL,
    "running_at" BIGINT,
    "claimed_at" BIGINT,
    "idle_at" BIGINT,
    "ended_at" BIGINT,
    "why" LONGTEXT,
    "api_key" LONGTEXT,
    "funds" LONGTEXT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY spawn_state ("tenant", "state", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "tenant" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "tier" LONGTEXT NOT NULL,
    "limits" LONGTEXT NOT NULL,
    "created_by" LONGTEXT NOT NULL,
    "created_at" BIGINT NOT NULL,
    "changed_at" BIGINT NOT NULL,
    "closed_at" BIGINT,
    "closed_for" LONGTEXT,
    "isolation" LONGTEXT NOT NULL,
    "store" LONGBLOB NOT NULL,
    "schema" LONGTEXT,
    "region" LONGTEXT,
    "moves" BIGINT NOT NULL,
    "moving" LONGTEXT NOT NULL,
    "other_isolation" LONGTEXT NOT NULL,
    "other_store" LONGBLOB NOT NULL,
    "other_region" LONGTEXT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "member" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "role" LONGTEXT NOT NULL,
    "projects" LONGTEXT NOT NULL,
    "invited_by" LONGTEXT NOT NULL,
    "invited_at" BIGINT NOT NULL,
    "changed_at" BIGINT NOT NULL,
    "joined_at" BIGINT,
    "left_at" BIGINT,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "claim_share" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "granted" BIGINT NOT NULL,
    "whole" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "signature" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "task" VARCHAR(128) NOT NULL,
    "generation" BIGINT NOT NULL,
    "session" VARCHAR(255) NOT NULL,
    "public_key" LONGTEXT NOT NULL,
    "value" LONGTEXT NOT NULL,
    "request_id" VARCHAR(255),
    "at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id"),
    KEY signature_task ("tenant", "project", "task", "generation")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "seal" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "number" BIGINT NOT NULL,
    "first" BIGINT NOT NULL,
    "last" BIGINT NOT NULL,
    "count" BIGINT NOT NULL,
    "leaves" LONGBLOB NOT NULL,
    "sequences" LONGBLOB NOT NULL,
    "previous" LONGBLOB NOT NULL,
    "head" LONGBLOB NOT NULL,
    "sealed_at" BIGINT NOT NULL,
    "form" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "pruned_leaves" (
    "tenant" VARCHAR(64) NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "id" VARCHAR(512) NOT NULL,
    "leaves" LONGBLOB NOT NULL,
    "at" BIGINT NOT NULL,
    PRIMARY KEY ("tenant", "project", "id")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;

CREATE TABLE IF NOT EXISTS "event" (
    "tenant" VARCHAR(64) NOT NULL,
    "sequence" BIGINT NOT NULL,
    "id" VARCHAR(128) NOT NULL,
    "time" BIGINT NOT NULL,
    "kind" LONGTEXT NOT NULL,
    "level" LONGTEXT NOT NULL,
    "project" VARCHAR(128) NOT NULL,
    "task" VARCHAR(128),
    "key" VARCHAR(440),
    "version" BIGINT,
    "track" LONGTEXT,
    "generation" BIGINT,
    "agent" VARCHAR(255),
    "session" VARCHAR(255),
    "user" LONGTEXT,
    "address" LONGTEXT,
    "previous_state" LONGTEXT,
    "new_state" LONGTEXT,
    "message" LONGTEXT NOT NULL,
    "details" LONGTEXT NOT NULL,
    "patch" LONGTEXT NOT NULL,
    "trace_id" LONGTEXT,
    "causation_id" VARCHAR(128),
    PRIMARY KEY ("tenant", "sequence"),
    KEY event_project ("tenant", "project", "sequence"),
    KEY event_causation ("tenant", "causation_id", "sequence"),
    KEY event_session ("tenant", "project", "session", "sequence"),
    UNIQUE KEY event_version ("tenant", "project", "task", "version")
) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin ROW_FORMAT=DYNAMIC;
