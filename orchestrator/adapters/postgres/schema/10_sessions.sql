-- Sessions: fixed facts, the hot row of the lane, working state and history.
--
-- Every row carries its tenant (RT-22); every time is the database's own clock. Tables whose rows change with
-- each turn keep room for updates in place, and none of their indexes names a column that a turn changes. Such columns
-- stand side by side: of an update, the server's log has all between the first and the last that it changed.
--
-- JSON that no statement looks into is `json`, which keeps the order of keys; psql shows it like `jsonb`.
--
-- What belongs to a session goes with it: by foreign keys to its lane, whose row each turn has locked anyway, so
-- that the check of them writes no more than the server's note of a lock.

CREATE TABLE sessions (
    session_id text PRIMARY KEY,
    tenant_id  text NOT NULL,
    user_id    text,
    domain     text NOT NULL,
    webhook    text,
    closed_at  timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- of a branch: whose it is, from which epoch on, and where its family begins; any of them may be gone
    parent       text,
    parent_epoch bigint,
    root         text
);
COMMENT ON TABLE sessions IS 'Fixed facts of a session.';
CREATE INDEX sessions_root_idx ON sessions (root) WHERE root IS NOT NULL;

-- A new session takes the time zone and the locale of the user's last one.
CREATE INDEX sessions_user_id_idx ON sessions (tenant_id, user_id, created_at) WHERE user_id IS NOT NULL;

CREATE TABLE lanes (
    session_id  text PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    tenant_id   text NOT NULL,
    if_busy     text NOT NULL DEFAULT 'understand',
    timezone    text,                           -- of the user, as the last session or turn that named one did
    locale      text,
    closed      boolean NOT NULL DEFAULT false,
    said_seq    bigint,                         -- the last turn that was sent by `understand` while another was unfinished
    has_webhook boolean NOT NULL DEFAULT false, -- set by a trigger, so that lanes without one pay nothing
    check_at    timestamptz,                    -- when the sweep visits it next; null: nothing to look for.
                                                -- Cleared lazily, so that updates of a busy lane touch no index
    gap_at      timestamptz,                    -- when the wait for a missing predecessor in `sequence` ends
    epoch       bigint NOT NULL DEFAULT 0,
    done_seq    bigint NOT NULL DEFAULT 0,      -- every turn up to it has finished; the search for the next begins here
    lease_owner bigint,
    lease_token bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    next_seq    bigint NOT NULL DEFAULT 1,
    next_event  bigint NOT NULL DEFAULT 1,
    pending     integer NOT NULL DEFAULT 0,
    ready_at    timestamptz,                    -- since when there has been work
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON TABLE lanes IS 'One narrow, hot row per session: order, lease, fence, counters.';
CREATE INDEX lanes_check_at_idx ON lanes (check_at) WHERE check_at IS NOT NULL;
-- With the session, or a statement that names both would visit all lanes of the tenant: it may have been planned when
-- there were none.
CREATE INDEX lanes_tenant_id_idx ON lanes (tenant_id, session_id);

CREATE TABLE states (
    session_id   text PRIMARY KEY REFERENCES lanes ON DELETE CASCADE,
    tenant_id    text NOT NULL,
    base_epoch   bigint NOT NULL,            -- the epoch that `body` is of; what came after are diffs in `state_history`
    body         json NOT NULL,
    -- what housekeeping looks for in the states of many sessions
    flows        text[] NOT NULL DEFAULT '{}',
    approvals    integer NOT NULL DEFAULT 0,
    unsummarised integer NOT NULL DEFAULT 0, -- turns since the last summary
    epoch        bigint NOT NULL
) WITH (fillfactor = 70);
COMMENT ON TABLE states IS 'The working state: whole at an epoch now and then, since when `state_history` has its diffs.';

CREATE TABLE state_history (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    epoch      bigint,
    tenant_id  text NOT NULL,
    diff       json NOT NULL,
    snapshot   json,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, epoch)
);
COMMENT ON TABLE state_history IS 'What each epoch changed; a full copy at the first epoch and at distances.';

CREATE TABLE utterances (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    epoch      bigint,
    seq        bigint NOT NULL,
    tenant_id  text NOT NULL,
    turn_id    text NOT NULL,
    role       text,          -- whose input it was; null, and so are `form` and `content`: of nobody
    form       text,
    content    text,
    reply      text NOT NULL, -- what the assistant said to it
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, epoch, seq) -- what is answered beside a turn has the epoch before it
);
COMMENT ON TABLE utterances IS 'What the user and the assistant said, a row a turn.';

CREATE TABLE flows_archive (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    flow_id    text,
    tenant_id  text NOT NULL,
    turn_id    text NOT NULL,
    dact       text NOT NULL,
    state      text NOT NULL,
    reason     text,
    body       json NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, flow_id)
);
COMMENT ON TABLE flows_archive IS 'Flows that left the stack.';
CREATE INDEX flows_archive_at_idx ON flows_archive (session_id, at);

CREATE TABLE frames (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    flow_id    text,
    tenant_id  text NOT NULL,
    turn_id    text NOT NULL,
    frame_id   text NOT NULL,
    body       json NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, flow_id)
);
COMMENT ON TABLE frames IS 'The newest data of each flow for display.';

CREATE TABLE plans (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    plan_id    text,
    tenant_id  text NOT NULL,
    turn_id    text NOT NULL,
    dact       text NOT NULL,
    goal       text NOT NULL,
    state      text NOT NULL,
    reason     text,
    revision   integer NOT NULL,
    body       json NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, plan_id)
);
COMMENT ON TABLE plans IS 'Plans after the last turn that worked on them (PL-6).';

CREATE TABLE plan_revisions (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    plan_id    text,
    epoch      bigint,
    number     integer,
    tenant_id  text NOT NULL,
    turn_id    text NOT NULL,
    outcome    text NOT NULL,
    why        text NOT NULL,
    body       json NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, plan_id, epoch, number)
);
COMMENT ON TABLE plan_revisions IS 'What each replanning check decided, and the steps after it (PL-6).';
