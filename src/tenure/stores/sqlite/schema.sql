-- 0001_initial da6b7d4e25e56e458c05ec4d915c6dd267e16121ca78d06c4057097a23196ee5 since 0.1.0
-- 0002_fence 53b32e8c60c724f8ff6e5d5954d56260e57ca2c8082d45841a9561c241a3bf1d since 0.2.0
-- 0003_names 7050d35236a3e8a7c19daba27fd4978661a941494fbc35bc7785c474b7735d63 since 0.2.0
-- 0004_messaging 973f8f0887a5fa7d8ee21994390e61ce1dd59afbf3c9cf06b1e67b0a0cc01c58 since 0.2.0
-- 0005_fleet b1a95bb6f4934306016100a43e2c10d31a45a188ae6b874b734e2c5c7a272863 since 0.2.0
-- 0006_usage_operation f4c2b08f8e3386118714df194f6c9777f6c02ef3e2793453297f1476258fd424 since 0.2.0
-- 0007_tenants 7aff83468c14c2fc3ed6fe26f36b55b7d52c00c2a2900f922214088010ec4312 since 0.2.0
-- 0008_signatures 5fd9fceb2382b804e6fbd25fee4bf70704822558fde54db9a28e804de1b84cc4 since 0.2.0
-- 0009_seals d3b6a052536c1c9c429a2e301cbf7ec6d57adc44de16d1c15316c864ca593fb8 since 0.2.0
-- 0010_task_secrets cfb5a775d91c2921d75589c95b5b6321afcece6fbda1efb44d32cfc2546d394d since 0.2.0
-- 0011_tenant_places 6746c21cf1d6a66078aa0b5dc59be45e8ad664f7572dffad74b7214825688cc6 since 0.2.0
-- 0012_losses 021765cbfc1517c8a9be64f3c8ade2544b34c33a5fd56c88cc734e51fdf62ee6 since 0.2.0
-- 0013_review_other_person b084ec2d8ad352ea84feb0cfc529f61e16394b99acb89fb261daf4443ab74104 since 0.2.0
-- 0014_doubtful_usage 2219750a14e77153a5d0fc7ea06d6d5f75454de0beaaa29f795dfc6b9874d204 since 0.2.0
-- 0015_landing_phase 89d21dadf267de1dd46f0c7e687372da6e1c80268e9187c9eefac62f83078edc since 0.2.0

-- table agent of agent
CREATE TABLE agent (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    capabilities TEXT NOT NULL,
    models TEXT NOT NULL,
    region TEXT,
    tracks TEXT NOT NULL,
    max_concurrent_tasks INTEGER,
    draining INTEGER NOT NULL,
    left_at INTEGER,
    health TEXT NOT NULL,
    host TEXT,
    boot TEXT,
    pid INTEGER,
    pid_start INTEGER,
    heartbeat INTEGER NOT NULL,
    stale_after INTEGER NOT NULL,
    registered_at INTEGER NOT NULL,
    last_seen INTEGER NOT NULL,
    stale INTEGER NOT NULL,
    memory_mb INTEGER,
    cpu_percent INTEGER,
    step TEXT,
    troubles INTEGER NOT NULL,
    cool_until INTEGER, terminated_at INTEGER, terminated_for TEXT, managed INTEGER NOT NULL DEFAULT 0, task TEXT, percent INTEGER, metadata TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table api_key of api_key
CREATE TABLE api_key (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    user TEXT,
    agent TEXT,
    projects TEXT NOT NULL,
    digest BLOB NOT NULL,
    previous BLOB NOT NULL,
    previous_until INTEGER,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    rotated_at INTEGER,
    expires_at INTEGER,
    revoked_at INTEGER,
    request_id TEXT,
    request_hash TEXT, capabilities TEXT NOT NULL DEFAULT '[]', used_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table archived of archived
CREATE TABLE archived (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    ref TEXT NOT NULL,
    track TEXT NOT NULL,
    type TEXT NOT NULL,
    dag TEXT,
    parent TEXT,
    root TEXT,
    idempotency_key TEXT,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    tags TEXT NOT NULL,
    deadline INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    completed_at INTEGER,
    archived_at INTEGER NOT NULL,
    out INTEGER NOT NULL,
    events INTEGER NOT NULL,
    size INTEGER NOT NULL,
    document BLOB NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index archived_created of archived
CREATE INDEX archived_created ON archived (tenant, project, created_at, id);

-- index archived_dag of archived
CREATE INDEX archived_dag ON archived (tenant, project, dag, id) WHERE dag IS NOT NULL;

-- index archived_idempotency of archived
CREATE INDEX archived_idempotency ON archived (tenant, project, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- index archived_key of archived
CREATE INDEX archived_key ON archived (tenant, project, key, id);

-- index sqlite_autoindex_archived_1 of archived

-- table artifact of artifact
CREATE TABLE artifact (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    generation INTEGER NOT NULL,
    run INTEGER NOT NULL,
    agent TEXT NOT NULL,
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    digest TEXT NOT NULL,
    size INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index artifact_task of artifact
CREATE INDEX artifact_task ON artifact (tenant, project, task, generation);

-- index sqlite_autoindex_artifact_1 of artifact

-- table body of body
CREATE TABLE body (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    content BLOB NOT NULL,
    uses INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_body_1 of body

-- table brief of brief
CREATE TABLE brief (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    description TEXT NOT NULL,
    metadata TEXT NOT NULL,
    spec TEXT NOT NULL,
    constraints TEXT NOT NULL,
    output TEXT NOT NULL,
    retry TEXT NOT NULL,
    touches TEXT NOT NULL,
    on_lost TEXT NOT NULL, seen TEXT,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_brief_1 of brief

-- table budget of budget
CREATE TABLE budget (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    scope TEXT NOT NULL,
    currency TEXT NOT NULL,
    allocated INTEGER NOT NULL,
    default_estimate INTEGER NOT NULL,
    task TEXT,
    period TEXT,
    zone TEXT NOT NULL,
    begins_at INTEGER,
    ends_at INTEGER,
    throttle INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    priced_at INTEGER NOT NULL,
    consumed INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    earlier INTEGER NOT NULL,
    since INTEGER NOT NULL,
    until INTEGER,
    alerts TEXT NOT NULL,
    burn TEXT NOT NULL,
    next_claim_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table checkpoint of checkpoint
CREATE TABLE checkpoint (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    data TEXT NOT NULL,
    generation INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_checkpoint_1 of checkpoint

-- table claim of claim
CREATE TABLE claim (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    generation INTEGER NOT NULL,
    run INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    nonce BLOB NOT NULL,
    epoch TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    user TEXT,
    acquired_at INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    released_at INTEGER,
    renewals INTEGER NOT NULL,
    counted INTEGER NOT NULL,
    continues INTEGER NOT NULL,
    result_accepted INTEGER,
    work_product TEXT,
    error_class TEXT,
    error TEXT,
    model TEXT,
    refused INTEGER NOT NULL,
    invalid INTEGER NOT NULL,
    process TEXT,
    funds TEXT,
    request_id TEXT,
    request_hash TEXT, metadata TEXT NOT NULL DEFAULT '{}', requests TEXT NOT NULL DEFAULT '[]', key TEXT, term INTEGER, lease_why TEXT,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- index claim_generation of claim
CREATE UNIQUE INDEX claim_generation ON claim (tenant, project, task, generation);

-- index claim_process of claim
CREATE INDEX claim_process ON claim (tenant, project, process) WHERE process IS NOT NULL;

-- index claim_request of claim
CREATE INDEX claim_request ON claim (tenant, project, request_id) WHERE request_id IS NOT NULL;

-- index claim_session of claim
CREATE INDEX claim_session ON claim (tenant, project, session, id);

-- table claim_share of claim_share
CREATE TABLE claim_share (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    granted INTEGER NOT NULL,
    whole INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_claim_share_1 of claim_share

-- table content of content
CREATE TABLE content (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    size INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    idle_at INTEGER,
    dropped_at INTEGER,
    gone INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- index content_idle of content
CREATE INDEX content_idle ON content (tenant, project, idle_at) WHERE idle_at IS NOT NULL;

-- table dag of dag
CREATE TABLE dag (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    title TEXT NOT NULL,
    plan TEXT,
    run INTEGER NOT NULL,
    status TEXT NOT NULL,
    total INTEGER NOT NULL,
    live INTEGER NOT NULL,
    blocked INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    fired TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    on_end TEXT NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table data_key of data_key
CREATE TABLE data_key (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    wrapped BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    retired_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_data_key_1 of data_key

-- table dead_letter of dead_letter
CREATE TABLE dead_letter (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    run INTEGER NOT NULL,
    dag TEXT NOT NULL,
    error_class TEXT NOT NULL,
    error TEXT NOT NULL,
    history TEXT NOT NULL,
    poison_pill INTEGER NOT NULL,
    dead_lettered_at INTEGER NOT NULL,
    reviewed_by TEXT,
    reviewed_at INTEGER,
    resolution TEXT,
    note TEXT,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_dead_letter_1 of dead_letter

-- table delivery of delivery
CREATE TABLE delivery (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    webhook TEXT NOT NULL,
    message TEXT NOT NULL,
    event TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    task TEXT,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL,
    parked_at INTEGER,
    tries INTEGER NOT NULL,
    first_at INTEGER,
    tried_at INTEGER,
    next_at INTEGER,
    status INTEGER,
    error TEXT,
    duration INTEGER,
    body BLOB NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index delivery_of_webhook of delivery
CREATE INDEX delivery_of_webhook ON delivery (tenant, project, webhook, state, sequence, id);

-- index sqlite_autoindex_delivery_1 of delivery

-- table edge of edge
CREATE TABLE edge (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    needs TEXT NOT NULL,
    on_failure TEXT NOT NULL,
    subtask INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- index edge_needs of edge
CREATE INDEX edge_needs ON edge (tenant, project, needs, id);

-- index edge_task of edge
CREATE INDEX edge_task ON edge (tenant, project, task, id);

-- table event of event
CREATE TABLE event (
    sequence INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    level TEXT NOT NULL,
    project TEXT NOT NULL,
    task TEXT,
    key TEXT,
    version INTEGER,
    track TEXT,
    generation INTEGER,
    agent TEXT,
    session TEXT,
    user TEXT,
    address TEXT,
    previous_state TEXT,
    new_state TEXT,
    message TEXT NOT NULL,
    details TEXT NOT NULL,
    patch TEXT NOT NULL,
    trace_id TEXT,
    causation_id TEXT
) STRICT;

-- index event_causation of event
CREATE INDEX event_causation ON event (tenant, causation_id) WHERE causation_id IS NOT NULL;

-- index event_session of event
CREATE INDEX event_session ON event (tenant, project, session) WHERE session IS NOT NULL;

-- index event_version of event
CREATE UNIQUE INDEX event_version ON event (tenant, project, task, version) WHERE task IS NOT NULL;

-- table health_minute of health_minute
CREATE TABLE health_minute (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    at INTEGER NOT NULL,
    health TEXT NOT NULL,
    memory_mb INTEGER,
    cpu_percent INTEGER,
    percent INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table landing of landing
CREATE TABLE landing (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    generation INTEGER NOT NULL,
    run INTEGER NOT NULL,
    agent TEXT NOT NULL,
    branch TEXT NOT NULL,
    old TEXT NOT NULL,
    new TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- index landing_task of landing
CREATE INDEX landing_task ON landing (tenant, project, task, generation);

-- table leader of leader
CREATE TABLE leader (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    holder TEXT NOT NULL,
    term INTEGER NOT NULL,
    elected_at INTEGER NOT NULL,
    lease INTEGER NOT NULL,
    until INTEGER NOT NULL,
    duties_begun TEXT NOT NULL,
    cycles TEXT NOT NULL, process TEXT, is_auto INTEGER NOT NULL DEFAULT 0, is_lost INTEGER NOT NULL DEFAULT 0, store_term INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table like_tasks of like_tasks
CREATE TABLE like_tasks (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    size TEXT NOT NULL,
    finished TEXT NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_like_tasks_1 of like_tasks

-- table log_cursor of log_cursor
CREATE TABLE log_cursor (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table member of member
CREATE TABLE member (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    role TEXT NOT NULL,
    projects TEXT NOT NULL,
    invited_by TEXT NOT NULL,
    invited_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    joined_at INTEGER,
    left_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_member_1 of member

-- table message of message
CREATE TABLE message (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    message TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    address TEXT NOT NULL,
    type TEXT NOT NULL,
    text TEXT NOT NULL,
    reply_to TEXT,
    sent_at INTEGER NOT NULL,
    read_at INTEGER, action TEXT, expires_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index message_recipient of message
CREATE INDEX message_recipient ON message (tenant, project, recipient, read_at);

-- index sqlite_autoindex_message_1 of message

-- table meta of meta
CREATE TABLE meta (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch TEXT NOT NULL,
    schema INTEGER NOT NULL,
    place TEXT NOT NULL
, boot TEXT NOT NULL DEFAULT '', clock_offset INTEGER NOT NULL DEFAULT 0, ahead_at INTEGER, ahead_uptime INTEGER) STRICT;

-- table migration of migration
CREATE TABLE migration (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    since TEXT NOT NULL,
    breaking INTEGER NOT NULL,
    applied_at INTEGER NOT NULL
) STRICT;

-- table model of model
CREATE TABLE model (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    troubles INTEGER NOT NULL,
    cool_until INTEGER,
    tried_by TEXT,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table pool of pool
CREATE TABLE pool (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    program TEXT NOT NULL,
    spawner TEXT NOT NULL,
    size INTEGER NOT NULL,
    idle INTEGER NOT NULL,
    capabilities TEXT NOT NULL,
    types TEXT NOT NULL,
    tracks TEXT NOT NULL,
    models TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    disabled_for TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    spawned INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    wait_until INTEGER,
    error TEXT,
    error_at INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_pool_1 of pool

-- table project of project
CREATE TABLE project (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    default_track TEXT NOT NULL,
    boost INTEGER NOT NULL,
    agents_may_operate INTEGER NOT NULL,
    stopped TEXT NOT NULL,
    limits TEXT NOT NULL,
    watch TEXT,
    created_at INTEGER NOT NULL,
    routing INTEGER NOT NULL,
    limited TEXT NOT NULL,
    typical TEXT NOT NULL,
    funded TEXT NOT NULL,
    set_aside TEXT NOT NULL, router INTEGER NOT NULL DEFAULT 0, ordering TEXT NOT NULL DEFAULT 'priority', order_turn INTEGER NOT NULL DEFAULT 0, lead TEXT NOT NULL DEFAULT 'default', signs INTEGER NOT NULL DEFAULT 0, audited_at INTEGER NOT NULL DEFAULT 0, compliance TEXT NOT NULL DEFAULT '', sealed INTEGER NOT NULL DEFAULT 0, review_other_person INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table pruned_leaves of pruned_leaves
CREATE TABLE pruned_leaves (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    leaves BLOB NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_pruned_leaves_1 of pruned_leaves

-- table request of request
CREATE TABLE request (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    digest TEXT NOT NULL,
    outcome TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_request_1 of request

-- table reservation of reservation
CREATE TABLE reservation (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    pattern TEXT NOT NULL,
    mode TEXT NOT NULL,
    task TEXT,
    generation INTEGER NOT NULL,
    nonce BLOB NOT NULL,
    epoch TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    lease INTEGER,
    until INTEGER,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- index reservation_pattern of reservation
CREATE INDEX reservation_pattern ON reservation (tenant, project, pattern);

-- index reservation_task of reservation
CREATE INDEX reservation_task ON reservation (tenant, project, task) WHERE task IS NOT NULL;

-- table result of result
CREATE TABLE result (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    run INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    session TEXT NOT NULL,
    agent TEXT NOT NULL,
    user TEXT,
    submitted_at INTEGER NOT NULL,
    accepted INTEGER NOT NULL,
    reason TEXT NOT NULL,
    data TEXT,
    summary TEXT NOT NULL,
    size INTEGER NOT NULL,
    digest TEXT NOT NULL,
    processing INTEGER,
    work_product TEXT,
    work_lost INTEGER NOT NULL,
    late INTEGER NOT NULL,
    request_id TEXT,
    artifacts TEXT NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index result_accepted of result
CREATE UNIQUE INDEX result_accepted ON result (tenant, project, task, run) WHERE accepted = 1;

-- index result_task of result
CREATE INDEX result_task ON result (tenant, project, task, id);

-- index sqlite_autoindex_result_1 of result

-- table schedule of schedule
CREATE TABLE schedule (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    cron TEXT NOT NULL,
    zone TEXT NOT NULL,
    misfire TEXT NOT NULL,
    template TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    reason TEXT,
    next_at INTEGER,
    last_at INTEGER,
    last_made TEXT,
    last_error TEXT,
    fired INTEGER NOT NULL,
    missed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index schedule_next of schedule
CREATE INDEX schedule_next ON schedule (tenant, next_at, id) WHERE next_at IS NOT NULL;

-- index sqlite_autoindex_schedule_1 of schedule

-- table seal of seal
CREATE TABLE seal (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    number INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    leaves BLOB NOT NULL,
    sequences BLOB NOT NULL,
    previous BLOB NOT NULL,
    head BLOB NOT NULL,
    sealed_at INTEGER NOT NULL,
    form INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_seal_1 of seal

-- table session of session
CREATE TABLE session (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    user TEXT,
    created_at INTEGER NOT NULL,
    last_activity INTEGER NOT NULL,
    ended_at INTEGER, public_key TEXT,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- index session_open of session
CREATE INDEX session_open ON session (tenant, project, agent, id) WHERE ended_at IS NULL;

-- table signature of signature
CREATE TABLE signature (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    generation INTEGER NOT NULL,
    session TEXT NOT NULL,
    public_key TEXT NOT NULL,
    value TEXT NOT NULL,
    request_id TEXT,
    at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index signature_task of signature
CREATE INDEX signature_task ON signature (tenant, project, task, generation);

-- index sqlite_autoindex_signature_1 of signature

-- table sink of sink
CREATE TABLE sink (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    url TEXT NOT NULL,
    projects TEXT NOT NULL,
    max_lag INTEGER NOT NULL,
    identity TEXT,
    paused_at INTEGER,
    paused_by TEXT,
    cut_off_at INTEGER,
    sent INTEGER NOT NULL,
    sent_at INTEGER,
    error TEXT,
    error_at INTEGER,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_sink_1 of sink

-- table spawn of spawn
CREATE TABLE spawn (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    pool TEXT NOT NULL,
    place INTEGER NOT NULL,
    agent TEXT NOT NULL,
    task TEXT NOT NULL,
    task_key TEXT NOT NULL,
    spawner TEXT NOT NULL,
    home TEXT NOT NULL,
    state TEXT NOT NULL,
    handle TEXT,
    remote_session TEXT,
    session TEXT,
    term INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    offer_until INTEGER NOT NULL,
    running_at INTEGER,
    claimed_at INTEGER,
    idle_at INTEGER,
    ended_at INTEGER,
    why TEXT,
    api_key TEXT,
    funds TEXT NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index spawn_state of spawn
CREATE INDEX spawn_state ON spawn (tenant, state, project, id);

-- index sqlite_autoindex_spawn_1 of spawn

-- table sqlite_stat1 of sqlite_stat1
CREATE TABLE sqlite_stat1(tbl,idx,stat);

-- table sqlite_stat4 of sqlite_stat4
CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample);

-- table task of task
CREATE TABLE task (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    ref TEXT NOT NULL,
    track TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    type TEXT NOT NULL,
    dag TEXT NOT NULL,
    parent TEXT,
    local_name TEXT,
    parent_run INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    root TEXT,
    lineage INTEGER NOT NULL,
    children INTEGER NOT NULL,
    idempotency_key TEXT,
    state TEXT NOT NULL,
    state_before TEXT,
    answers TEXT NOT NULL,
    run INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    given_back INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    retry_at INTEGER,
    last_error TEXT,
    troubled TEXT NOT NULL,
    cool_offs TEXT NOT NULL,
    priority INTEGER NOT NULL,
    boost INTEGER NOT NULL,
    deadline INTEGER,
    not_before INTEGER,
    missed INTEGER NOT NULL,
    height INTEGER NOT NULL,
    waits_on INTEGER NOT NULL,
    unmet INTEGER NOT NULL,
    dependents INTEGER NOT NULL,
    requires TEXT NOT NULL,
    region TEXT,
    tags TEXT NOT NULL,
    guarded INTEGER NOT NULL,
    capped INTEGER NOT NULL,
    checked INTEGER NOT NULL,
    models TEXT NOT NULL,
    fallback_models TEXT NOT NULL,
    metered INTEGER NOT NULL,
    agent TEXT,
    session TEXT,
    claimed_at INTEGER,
    lease INTEGER,
    lease_until INTEGER,
    renewals INTEGER NOT NULL,
    presented_at INTEGER,
    claim_epoch TEXT,
    late_submit_open INTEGER NOT NULL,
    wanted TEXT,
    percent INTEGER,
    step TEXT,
    progress_at INTEGER,
    done_by INTEGER,
    warned_at INTEGER,
    funded INTEGER NOT NULL,
    max_duration INTEGER,
    artifacts INTEGER NOT NULL,
    offer_to TEXT,
    offer_until INTEGER,
    set_aside_for TEXT,
    price INTEGER,
    work_product TEXT,
    created_by TEXT NOT NULL,
    trace_id TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ready_at INTEGER,
    started_at INTEGER,
    completed_at INTEGER,
    failed_at INTEGER,
    dead_lettered_at INTEGER,
    archived_at INTEGER,
    version INTEGER NOT NULL,
    lane TEXT,
    band INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    due_at INTEGER,
    plain INTEGER NOT NULL, pauses TEXT NOT NULL DEFAULT '[]', cancelled TEXT, failures TEXT NOT NULL DEFAULT '[]', brief_number INTEGER NOT NULL DEFAULT 1, reserved INTEGER NOT NULL DEFAULT 0, unseen_since INTEGER, agent_type TEXT, estimate INTEGER, length INTEGER, order_turn INTEGER NOT NULL DEFAULT 0, offer_term INTEGER, sealed INTEGER NOT NULL DEFAULT 0, losses INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_task_1 of task

-- index task_agent of task
CREATE INDEX task_agent ON task (tenant, project, agent, id) WHERE agent IS NOT NULL;

-- index task_created of task
CREATE INDEX task_created ON task (tenant, project, created_at, id);

-- index task_dag of task
CREATE INDEX task_dag ON task (tenant, project, dag, id);

-- index task_due of task
CREATE INDEX task_due ON task (tenant, project, due_at, id) WHERE due_at IS NOT NULL;

-- index task_idempotency of task
CREATE UNIQUE INDEX task_idempotency ON task (tenant, project, idempotency_key) WHERE idempotency_key IS NOT NULL;

-- index task_key of task
CREATE INDEX task_key ON task (tenant, project, key, id);

-- index task_offer of task
CREATE INDEX task_offer ON task (tenant, project, offer_to, id) WHERE offer_to IS NOT NULL;

-- index task_parent of task
CREATE INDEX task_parent ON task (tenant, project, parent, id) WHERE parent IS NOT NULL;

-- index task_ready of task
CREATE INDEX task_ready ON task (tenant, project, lane, band, rank, sequence, id, plain) WHERE lane IS NOT NULL;

-- index task_ref of task
CREATE UNIQUE INDEX task_ref ON task (tenant, project, ref);

-- index task_session of task
CREATE INDEX task_session ON task (tenant, project, session, id) WHERE session IS NOT NULL;

-- index task_set_aside of task
CREATE INDEX task_set_aside ON task (tenant, project, set_aside_for, id) WHERE set_aside_for IS NOT NULL;

-- index task_spawned of task
CREATE UNIQUE INDEX task_spawned ON task (tenant, project, parent, parent_run, local_name) WHERE local_name IS NOT NULL;

-- index task_state of task
CREATE INDEX task_state ON task (tenant, project, state, id);

-- index task_tagged of task
CREATE INDEX task_tagged ON task (tenant, project, id, tags) WHERE tags <> '[]';

-- index task_unaffordable of task
CREATE INDEX task_unaffordable ON task (tenant, project, set_aside_for, band, boost, rank, id) WHERE price IS NOT NULL;

-- table tenant of tenant
CREATE TABLE tenant (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    tier TEXT NOT NULL,
    limits TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    closed_at INTEGER,
    closed_for TEXT, isolation TEXT NOT NULL DEFAULT 'logical', store BLOB NOT NULL DEFAULT x'', schema TEXT, region TEXT, moves INTEGER NOT NULL DEFAULT 0, moving TEXT NOT NULL DEFAULT '', other_isolation TEXT NOT NULL DEFAULT '', other_store BLOB NOT NULL DEFAULT x'', other_region TEXT,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_tenant_1 of tenant

-- table track of track
CREATE TABLE track (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    purpose TEXT NOT NULL,
    last_sequence INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    pruned INTEGER NOT NULL,
    gone TEXT NOT NULL, max_agents INTEGER NOT NULL DEFAULT 1, assigned TEXT NOT NULL DEFAULT '{}', pinned TEXT NOT NULL DEFAULT '[]', idle_since TEXT NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- table trigger of trigger
CREATE TABLE trigger (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    filter TEXT NOT NULL,
    template TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    behind INTEGER NOT NULL,
    most INTEGER NOT NULL,
    hour_at INTEGER,
    hour INTEGER NOT NULL,
    fired INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    held_back INTEGER NOT NULL,
    reported_at INTEGER,
    last_at INTEGER,
    last_made TEXT,
    last_error TEXT,
    signature TEXT,
    secret BLOB NOT NULL,
    previous BLOB NOT NULL,
    previous_until INTEGER,
    request_id TEXT,
    request_hash TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_trigger_1 of trigger

-- table usage of usage
CREATE TABLE usage (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    generation INTEGER NOT NULL,
    agent TEXT NOT NULL,
    session TEXT NOT NULL,
    model TEXT NOT NULL,
    late INTEGER NOT NULL,
    fresh INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    written INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost INTEGER,
    computed INTEGER NOT NULL,
    duration INTEGER NOT NULL,
    at INTEGER NOT NULL,
    pairs INTEGER NOT NULL, operation TEXT NOT NULL DEFAULT '', doubtful INTEGER, confirmed INTEGER NOT NULL DEFAULT 0, rejected INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, project, id)
) STRICT, WITHOUT ROWID;

-- index usage_doubtful of usage
CREATE INDEX usage_doubtful ON usage (tenant, project) WHERE doubtful IS NOT NULL;

-- index usage_late of usage
CREATE INDEX usage_late ON usage (tenant, project) WHERE late = 1;

-- index usage_task of usage
CREATE INDEX usage_task ON usage (tenant, project, task, generation);

-- table validation of validation
CREATE TABLE validation (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    claimed INTEGER NOT NULL,
    run INTEGER NOT NULL,
    result TEXT NOT NULL,
    validator TEXT NOT NULL,
    state TEXT NOT NULL,
    generation INTEGER NOT NULL,
    nonce BLOB NOT NULL,
    epoch TEXT NOT NULL,
    holder TEXT,
    agent TEXT,
    taken_at INTEGER,
    lease INTEGER NOT NULL,
    until INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    retry_at INTEGER,
    note TEXT,
    held_back TEXT,
    reasons TEXT NOT NULL,
    details TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    decided_at INTEGER,
    decided_by TEXT,
    request_id TEXT, phase TEXT NOT NULL DEFAULT 'judge', land TEXT,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_validation_1 of validation

-- index validation_open of validation
CREATE INDEX validation_open ON validation (tenant, project, state, created_at, id);

-- index validation_task of validation
CREATE INDEX validation_task ON validation (tenant, project, task, id);

-- table web_session of web_session
CREATE TABLE web_session (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    key_digest BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_web_session_1 of web_session

-- index web_session_expires of web_session
CREATE INDEX web_session_expires ON web_session (tenant, project, expires_at);

-- table webhook of webhook
CREATE TABLE webhook (
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    kinds TEXT NOT NULL,
    filter TEXT NOT NULL,
    enabled INTEGER NOT NULL,
    disabled_for TEXT,
    disabled_at INTEGER,
    secret BLOB NOT NULL,
    previous BLOB NOT NULL,
    previous_until INTEGER,
    request_id TEXT,
    request_hash TEXT,
    since INTEGER NOT NULL,
    sequence INTEGER,
    parked INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    failing_since INTEGER,
    down_since INTEGER,
    up_at INTEGER,
    wait_until INTEGER,
    success_at INTEGER,
    failure_at INTEGER,
    status INTEGER,
    error TEXT,
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, project, id)
) STRICT;

-- index sqlite_autoindex_webhook_1 of webhook

-- statistics of the planner
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('archived', 'archived_created', '1000000 1000000 200000 1 1'),
    ('archived', 'archived_dag', '0 0 0 0 0'),
    ('archived', 'archived_dag', '1000000 1000000 200000 100 1'),
    ('archived', 'archived_idempotency', '0 0 0 0'),
    ('archived', 'archived_idempotency', '1000000 1000000 200000 1'),
    ('archived', 'archived_key', '1000000 1000000 200000 1 1'),
    ('archived', 'sqlite_autoindex_archived_1', '1000000 1000000 200000 1'),
    ('artifact', 'artifact_task', '1000000 1000000 200000 3 2'),
    ('artifact', 'sqlite_autoindex_artifact_1', '1000000 1000000 200000 1'),
    ('claim', 'claim', '2000000 2000000 400000 1'),
    ('claim', 'claim_generation', '2000000 2000000 400000 2 1'),
    ('claim', 'claim_process', '0 0 0 0'),
    ('claim', 'claim_process', '1000 1000 200 2'),
    ('claim', 'claim_request', '0 0 0 0'),
    ('claim', 'claim_request', '2000000 2000000 400000 2'),
    ('claim', 'claim_session', '2000000 2000000 400000 200 1'),
    ('content', 'content', '1000000 1000000 200000 1'),
    ('content', 'content_idle', '0 0 0 0'),
    ('content', 'content_idle', '1000 1000 200 1'),
    ('edge', 'edge', '1000000 1000000 200000 1'),
    ('edge', 'edge_needs', '1000000 1000000 200000 3 1'),
    ('edge', 'edge_task', '1000000 1000000 200000 3 1'),
    ('event', 'event_causation', '0 0 0'),
    ('event', 'event_causation', '10000000 10000000 2'),
    ('event', 'event_session', '0 0 0 0'),
    ('event', 'event_session', '10000000 10000000 2000000 1000'),
    ('event', 'event_version', '0 0 0 0 0'),
    ('event', 'event_version', '10000000 10000000 2000000 10 1'),
    ('landing', 'landing', '1000000 1000000 200000 1'),
    ('landing', 'landing_task', '1000000 1000000 200000 1 1'),
    ('message', 'message_recipient', '100000 100000 20000 1000 10'),
    ('message', 'sqlite_autoindex_message_1', '100000 100000 20000 1'),
    ('reservation', 'reservation', '10000 10000 2000 1'),
    ('reservation', 'reservation_pattern', '10000 10000 2000 2'),
    ('reservation', 'reservation_task', '0 0 0 0'),
    ('reservation', 'reservation_task', '10000 10000 2000 5'),
    ('result', 'result_accepted', '0 0 0 0 0'),
    ('result', 'result_accepted', '1000000 1000000 200000 1 1'),
    ('result', 'result_task', '1000000 1000000 200000 2 1'),
    ('result', 'sqlite_autoindex_result_1', '1000000 1000000 200000 1'),
    ('schedule', 'schedule_next', '0 0 0 0'),
    ('session', 'session', '100000 100000 20000 1'),
    ('session', 'session_open', '0 0 0 0 0'),
    ('session', 'session_open', '1000 1000 200 5 1'),
    ('task', 'sqlite_autoindex_task_1', '1000000 1000000 200000 1'),
    ('task', 'task_agent', '0 0 0 0 0'),
    ('task', 'task_agent', '10000 10000 2000 10 1'),
    ('task', 'task_created', '1000000 1000000 200000 1 1'),
    ('task', 'task_dag', '1000000 1000000 200000 100 1'),
    ('task', 'task_due', '0 0 0 0 0'),
    ('task', 'task_due', '10000 10000 2000 1 1'),
    ('task', 'task_idempotency', '0 0 0 0'),
    ('task', 'task_idempotency', '1000000 1000000 200000 1'),
    ('task', 'task_key', '1000000 1000000 200000 1 1'),
    ('task', 'task_offer', '0 0 0 0 0'),
    ('task', 'task_offer', '1000 1000 200 2 1'),
    ('task', 'task_parent', '0 0 0 0 0'),
    ('task', 'task_parent', '100000 100000 20000 10 1'),
    ('task', 'task_ready', '0 0 0 0 0 0 0 0 0'),
    ('task', 'task_ready', '100000 100000 20000 2000 500 2 1 1 1'),
    ('task', 'task_ref', '1000000 1000000 200000 1'),
    ('task', 'task_session', '0 0 0 0 0'),
    ('task', 'task_session', '10000 10000 2000 5 1'),
    ('task', 'task_set_aside', '1000 1000 200 2 1'),
    ('task', 'task_spawned', '0 0 0 0 0 0'),
    ('task', 'task_spawned', '100000 100000 20000 10 10 1'),
    ('task', 'task_state', '1000000 1000000 200000 20000 1'),
    ('task', 'task_tagged', '0 0 0 0 0'),
    ('task', 'task_tagged', '200000 200000 40000 1 1'),
    ('task', 'task_unaffordable', '100000 100000 20000 5000 3000 2000 1 1'),
    ('usage', 'usage', '2000000 2000000 400000 1'),
    ('usage', 'usage_late', '0 0 0'),
    ('usage', 'usage_late', '10000 10000 2000'),
    ('usage', 'usage_task', '2000000 2000000 400000 3 2'),
    ('validation', 'sqlite_autoindex_validation_1', '1000000 1000000 200000 1'),
    ('validation', 'validation_open', '1000000 1000000 200000 100 1 1'),
    ('validation', 'validation_task', '1000000 1000000 200000 2 1');
