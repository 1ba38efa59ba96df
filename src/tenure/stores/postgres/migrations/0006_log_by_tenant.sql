-- breaking: no
-- since: 0.2.0

-- The log in the order of its tenants: no statement reads or orders the events of several.
ALTER TABLE event DROP CONSTRAINT event_pkey, ADD PRIMARY KEY (tenant, sequence);
ALTER TABLE event_block DROP CONSTRAINT event_block_pkey, ADD PRIMARY KEY (tenant, last);
-- Behind the project, so that the planner has no choice between these and the keys.
DROP INDEX event_project;
CREATE INDEX event_project ON event (project, tenant, sequence);
DROP INDEX event_block_project;
CREATE INDEX event_block_project ON event_block (project, tenant, last);
