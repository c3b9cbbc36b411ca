-- Turns: inbox, journal, side-effect ledger, approvals, events, outbox and feedback.

CREATE TABLE turns (
    turn_id             text PRIMARY KEY,
    session_id          text NOT NULL REFERENCES lanes ON DELETE CASCADE,
    tenant_id           text NOT NULL,
    seq                 bigint NOT NULL,
    client_sequence     bigint,
    idempotency_key     text,
    kind                text NOT NULL,
    form                text NOT NULL,
    text                text,
    action              json,
    timezone            text,                           -- the session's time zone at acceptance, the same in every attempt
    locale              text,
    interjects          boolean,                        -- sent with `understand` while another turn was unfinished
    awaited             boolean NOT NULL DEFAULT false, -- a broker task ends with this turn (`awaited_tasks`)
    forget              boolean NOT NULL DEFAULT false, -- delete all traces if it is canceled without side effects (`rollback`)
    cancel_requested_at timestamptz,
    accepted_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    quarantined_at      timestamptz,
    crashes             integer NOT NULL DEFAULT 0,     -- number of workers that died while running the turn
    alone               boolean NOT NULL DEFAULT false, -- the process that last claimed the turn runs no other turn
    status              text NOT NULL DEFAULT 'queued',
    attempts            integer NOT NULL DEFAULT 0,
    started_at          timestamptz,
    deadline_at         timestamptz,
    finished_at         timestamptz,
    token               bigint, -- token of the lease that ended the turn, to find a commit whose response was lost
    epoch               bigint,
    error               text,
    result              json,
    signals             json,  -- predictions, checks, calls and recoveries, for evaluation (CO-6)
    UNIQUE (session_id, seq)
) WITH (fillfactor = 50);
COMMENT ON TABLE turns IS 'The inbox: all accepted turns.';
CREATE UNIQUE INDEX turns_client_sequence_key ON turns (session_id, client_sequence)
    WHERE client_sequence IS NOT NULL;
CREATE UNIQUE INDEX turns_idempotency_key ON turns (idempotency_key, session_id)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX turns_quarantined_at_idx ON turns (tenant_id, quarantined_at) WHERE quarantined_at IS NOT NULL;

CREATE TABLE journal (
    turn_id      text REFERENCES turns ON DELETE CASCADE,
    key          text,
    tenant_id    text NOT NULL,
    session_id   text NOT NULL,
    kind         text NOT NULL,
    status       text NOT NULL,
    request_hash text NOT NULL,
    result       json,
    duration_ms  real,   -- null until the call ends
    token        bigint NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (turn_id, key)
);
COMMENT ON TABLE journal IS 'Model and tool calls of a turn, replayed when the turn is resumed (RT-8).';

CREATE TABLE effects (
    session_id      text REFERENCES lanes ON DELETE CASCADE,
    fingerprint     text,
    tenant_id       text NOT NULL,
    turn_id         text NOT NULL,
    step_key        text NOT NULL,
    idempotency_key text NOT NULL,
    flow_id         text NOT NULL,
    tool_id         text NOT NULL,
    arguments       jsonb NOT NULL,
    slots           jsonb NOT NULL,
    status          text NOT NULL,
    result          json,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    of_session      text, -- in a fork: the session that made the call
    PRIMARY KEY (session_id, fingerprint)
);
COMMENT ON TABLE effects IS 'The side-effect ledger (RT-10, RT-12).';
CREATE INDEX effects_turn_id_idx ON effects (turn_id);

CREATE TABLE approvals (
    approval_id    text PRIMARY KEY,
    tenant_id      text NOT NULL,
    session_id     text NOT NULL REFERENCES lanes ON DELETE CASCADE,
    turn_id        text NOT NULL,
    flow_id        text NOT NULL,
    tool_id        text NOT NULL,
    fingerprint    text NOT NULL,
    status         text NOT NULL,
    arguments      json NOT NULL,
    question       text NOT NULL,
    cause          text NOT NULL, -- why approval was requested
    plan_revision  integer NOT NULL,
    policy_version text NOT NULL,
    operator_only  boolean NOT NULL,
    reason         text,          -- reason for the decision
    decided_by     text,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz,
    decided_at     timestamptz,
    closed_at      timestamptz    -- when it was used, expired or became void
);
COMMENT ON TABLE approvals IS 'Approval requests, one per call, with their decisions (PX-17).';
CREATE INDEX approvals_session_id_idx ON approvals (session_id);

CREATE TABLE events (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    number     bigint,   -- number of the row's last event
    tenant_id  text NOT NULL,
    turn_id    text,
    body       json NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, number)
);
COMMENT ON TABLE events IS 'The event log of a session, numbered without gaps (RT-15). A row holds the events of one commit.';

CREATE TABLE outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id       text NOT NULL,
    session_id      text NOT NULL REFERENCES lanes ON DELETE CASCADE,
    turn_id         text,
    kind            text NOT NULL,
    payload         json NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    sent_at         timestamptz
);
COMMENT ON TABLE outbox IS 'Messages sent after a commit, and repeated until they are acknowledged and removed (RT-4).';

CREATE TABLE scheduled_events (
    event_id   text PRIMARY KEY,
    tenant_id  text NOT NULL,
    session_id text NOT NULL REFERENCES lanes ON DELETE CASCADE,
    key        text NOT NULL,
    name       text NOT NULL,
    payload    json NOT NULL,
    not_before timestamptz NOT NULL,
    status     text NOT NULL DEFAULT 'scheduled',
    revision   integer NOT NULL DEFAULT 0, -- how often it was moved, replaced or answered; each revision is delivered at most once
    turn_id    text,
    set_by     text,                       -- idempotency key of the tool call that scheduled it
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (session_id, key)
);
COMMENT ON TABLE scheduled_events IS 'External events and reminders, delivered as turns of their sessions (RT-31).';
CREATE INDEX scheduled_events_not_before_idx ON scheduled_events (not_before) WHERE status = 'scheduled';
CREATE INDEX scheduled_events_updated_at_idx ON scheduled_events (updated_at) WHERE status <> 'scheduled';

CREATE TABLE awaited_tasks (
    task_id    text PRIMARY KEY,
    tenant_id  text NOT NULL,
    session_id text NOT NULL REFERENCES lanes ON DELETE CASCADE,
    turn_id    text NOT NULL,
    request    json,       -- Celery's request if the task ends with the turn; null once it has ended
    wait_until timestamptz, -- when the task ends even if the turn has not
    expires_at timestamptz, -- when the turn is canceled unless it has ended
    cancels    boolean NOT NULL, -- whether revoking or expiring the task cancels the turn
    stopped    text,        -- `revoked` or `expired`: why the turn was canceled
    noted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    ended_at   timestamptz  -- kept for some time, so that a redelivered message doesn't end the task twice
);
COMMENT ON TABLE awaited_tasks IS 'Broker tasks that end or expire with a turn, with their callbacks, chain and chord.';
CREATE INDEX awaited_tasks_turn_id_idx ON awaited_tasks (turn_id);
CREATE INDEX awaited_tasks_session_id_idx ON awaited_tasks (session_id);
CREATE INDEX awaited_tasks_wait_until_idx ON awaited_tasks (wait_until) WHERE ended_at IS NULL;
CREATE INDEX awaited_tasks_expires_at_idx ON awaited_tasks (expires_at) WHERE ended_at IS NULL;
CREATE INDEX awaited_tasks_ended_at_idx ON awaited_tasks (ended_at) WHERE ended_at IS NOT NULL;

-- Puts the tasks that wait for a turn into the outbox when the turn ends, in the same transaction.
CREATE FUNCTION parley_end_awaited() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    WITH ended AS (
        UPDATE awaited_tasks SET ended_at = clock_timestamp()
        WHERE turn_id = NEW.turn_id AND ended_at IS NULL
        RETURNING *
    )
    INSERT INTO outbox (tenant_id, session_id, turn_id, kind, payload)
    SELECT tenant_id, session_id, turn_id, 'finish_task',
           json_build_object('task_id', task_id)
    FROM ended
    WHERE request IS NOT NULL;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION parley_end_awaited() FROM PUBLIC;
CREATE TRIGGER end_awaited AFTER UPDATE OF finished_at ON turns
    FOR EACH ROW WHEN (NEW.awaited AND NEW.finished_at IS NOT NULL AND OLD.finished_at IS NULL)
    EXECUTE FUNCTION parley_end_awaited();

CREATE TABLE feedback (
    feedback_id text PRIMARY KEY,
    tenant_id   text NOT NULL,
    session_id  text NOT NULL,
    turn_id     text NOT NULL REFERENCES turns ON DELETE CASCADE,
    author      text NOT NULL,
    rating      text,
    comment     text,
    correction  json NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (turn_id, author)
);
COMMENT ON TABLE feedback IS
    'Feedback on answers, one entry per author and turn. Anonymous authors share an entry.';
CREATE INDEX feedback_session_id_idx ON feedback (session_id);
CREATE INDEX feedback_tenant_id_at_idx ON feedback (tenant_id, at);
