-- Sessions: fixed facts, the hot lane row, working state and history.
--
-- Every row names its tenant (RT-22). All times come from the database's clock. Tables whose rows change with each turn
-- keep free space for in-place updates, and none of their indexes includes a column that a turn changes. The columns that a
-- turn changes are adjacent, because the write-ahead log includes everything between the first and the last changed byte.
--
-- JSON that no statement inspects has the type `json`, which keeps the order of keys.
--
-- Deleting a session also deletes its data, through foreign keys to its lane. Each turn locks the lane's row anyway, so the
-- foreign-key check only has to record a lock.

CREATE TABLE sessions (
    session_id text PRIMARY KEY,
    tenant_id  text NOT NULL,
    user_id    text,
    domain     text NOT NULL,
    closed_at  timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- for a fork: its parent, the parent's epoch, and the root of the fork tree; parent and root may have been deleted
    parent       text,
    parent_epoch bigint,
    root         text
);
COMMENT ON TABLE sessions IS 'Fixed facts of sessions.';
CREATE INDEX sessions_root_idx ON sessions (root) WHERE root IS NOT NULL;

-- A new session copies the time zone and locale of the user's last session.
CREATE INDEX sessions_user_id_idx ON sessions (tenant_id, user_id, created_at) WHERE user_id IS NOT NULL;

CREATE TABLE lanes (
    session_id  text PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    tenant_id   text NOT NULL,
    if_busy     text NOT NULL DEFAULT 'understand',
    timezone    text,                           -- from the user's last session or turn that set one
    locale      text,
    closed      boolean NOT NULL DEFAULT false,
    said_seq    bigint,                         -- seq of the last turn sent with `understand` while another was unfinished
    has_webhook boolean NOT NULL DEFAULT false, -- set by a trigger, so that other lanes have no extra cost
    check_at    timestamptz,                    -- next visit of the sweep; null: no visit needed.
                                                -- Cleared lazily, so that updates of a busy lane touch no index
    gap_at      timestamptz,                    -- when the wait for a missing predecessor in `sequence` ends
    epoch       bigint NOT NULL DEFAULT 0,
    done_seq    bigint NOT NULL DEFAULT 0,      -- all turns up to this seq have finished; the search for the next starts here
    lease_owner bigint,
    lease_token bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    next_seq    bigint NOT NULL DEFAULT 1,
    next_event  bigint NOT NULL DEFAULT 1,
    pending     integer NOT NULL DEFAULT 0,
    ready_at    timestamptz,                    -- when the waiting work arrived or was last offered
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON TABLE lanes IS 'One narrow, hot row per session: order, lease, fence and counters.';
CREATE INDEX lanes_check_at_idx ON lanes (check_at) WHERE check_at IS NOT NULL;
-- Includes the session. With a plan made for an empty table, statements that name both columns would otherwise visit all
-- lanes of the tenant.
CREATE INDEX lanes_tenant_id_idx ON lanes (tenant_id, session_id);

CREATE TABLE states (
    session_id   text PRIMARY KEY REFERENCES lanes ON DELETE CASCADE,
    tenant_id    text NOT NULL,
    base_epoch   bigint NOT NULL,            -- epoch of `body`; `state_history` has the later diffs
    body         json NOT NULL,
    -- searched by maintenance across many sessions
    flows        text[] NOT NULL DEFAULT '{}',
    approvals    integer NOT NULL DEFAULT 0,
    unsummarized integer NOT NULL DEFAULT 0, -- turns since the last summary
    epoch        bigint NOT NULL
) WITH (fillfactor = 70);
COMMENT ON TABLE states IS 'The working state: a snapshot at some epoch. `state_history` has the later diffs.';

CREATE TABLE state_history (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    epoch      bigint,
    tenant_id  text NOT NULL,
    diff       json NOT NULL,
    snapshot   json,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, epoch)
);
COMMENT ON TABLE state_history IS 'The changes of each epoch, with a snapshot at the first epoch and at intervals.';

-- Applies a patch of `orchestrator.dialogue.storage.serialization`, for people who read the tables in psql.
CREATE FUNCTION parley_patched(before jsonb, patch jsonb) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path FROM CURRENT AS $$
DECLARE
    after jsonb;
    key text;
    part jsonb;
BEGIN
    IF jsonb_typeof(before) = 'object' THEN
        after := before - ARRAY(SELECT jsonb_array_elements_text(patch -> '-'));
        FOR key, part IN SELECT * FROM jsonb_each(patch -> '~') LOOP
            after := jsonb_set(after, ARRAY[key], parley_patched(before -> key, part));
        END LOOP;
        RETURN after || coalesce(patch -> '=', '{}');
    END IF;
    SELECT coalesce(jsonb_agg(element ORDER BY place), '[]') INTO after
    FROM jsonb_array_elements(before) WITH ORDINALITY AS kept (element, place)
    WHERE place > coalesce((patch ->> '<')::int, 0)
      AND place <= coalesce((patch ->> '|')::int, jsonb_array_length(before));
    FOR part IN SELECT * FROM jsonb_array_elements(patch -> '=') LOOP
        after := jsonb_set(after, ARRAY[part ->> 0], part -> 1);
    END LOOP;
    FOR part IN SELECT * FROM jsonb_array_elements(patch -> '~') LOOP
        after := jsonb_set(after, ARRAY[part ->> 0], parley_patched(after -> (part ->> 0)::int, part -> 1));
    END LOOP;
    RETURN after || coalesce(patch -> '+', '[]');
END
$$;

-- Returns a session's working state, or null if the session has none.
CREATE FUNCTION parley_state(wanted text) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path FROM CURRENT AS $$
DECLARE
    state jsonb;
    later jsonb;
BEGIN
    SELECT body INTO state FROM states WHERE session_id = wanted;
    FOR later IN
        SELECT diff FROM state_history JOIN states USING (session_id)
        WHERE session_id = wanted AND state_history.epoch > base_epoch AND state_history.epoch <= states.epoch
        ORDER BY state_history.epoch
    LOOP
        state := parley_patched(state, later);
    END LOOP;
    RETURN state;
END
$$;

CREATE TABLE utterances (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    epoch      bigint,
    seq        bigint NOT NULL,
    tenant_id  text NOT NULL,
    turn_id    text NOT NULL,
    role       text,          -- author of the input; null, like `form` and `content`, without an input
    form       text,
    content    text,
    reply      text NOT NULL, -- the assistant's answer
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, epoch, seq)
);
COMMENT ON TABLE utterances IS 'Messages of the user and the assistant, one row per turn.';

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
COMMENT ON TABLE flows_archive IS 'Flows that have left the stack.';
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
COMMENT ON TABLE frames IS 'The latest display data of each flow.';

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
COMMENT ON TABLE plans IS 'Plans, as of the last turn that changed them (PL-6).';

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
COMMENT ON TABLE plan_revisions IS 'Decisions of replanning checks, with the resulting steps (PL-6).';
