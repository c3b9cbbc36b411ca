-- Turns: the inbox, the journal and the ledger of effects, approvals, events, the outbox, feedback.

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
    merged_into         text,
    merges              integer NOT NULL DEFAULT 0,
    interjects          boolean,                        -- it was sent by `understand` while another was unfinished
    forget              boolean NOT NULL DEFAULT false, -- leave no trace if it ends cancelled and without effects (`rollback`)
    cancel_requested_at timestamptz,
    accepted_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    quarantined_at      timestamptz,
    crashes             integer NOT NULL DEFAULT 0,     -- how often its worker ended while it was at work
    alone               boolean NOT NULL DEFAULT false, -- it was taken last by a process that has nothing else to do
    status              text NOT NULL DEFAULT 'queued',
    attempts            integer NOT NULL DEFAULT 0,
    started_at          timestamptz,
    deadline_at         timestamptz,
    finished_at         timestamptz,
    token               bigint, -- the lease that ended the turn: a holder whose reply was lost learns that its commit held
    epoch               bigint,
    error               text,
    result              bytea,
    signals             bytea,  -- what was predicted, checked, called and recovered, for evaluation (CO-6)
    UNIQUE (session_id, seq)
) WITH (fillfactor = 50);
COMMENT ON TABLE turns IS 'The inbox: every turn that was ever accepted.';
CREATE UNIQUE INDEX turns_client_sequence_key ON turns (session_id, client_sequence)
    WHERE client_sequence IS NOT NULL;
CREATE UNIQUE INDEX turns_idempotency_key ON turns (session_id, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX turns_merged_into_idx ON turns (merged_into) WHERE merged_into IS NOT NULL;
CREATE INDEX turns_quarantined_at_idx ON turns (tenant_id, quarantined_at) WHERE quarantined_at IS NOT NULL;

CREATE TABLE journal (
    turn_id      text REFERENCES turns ON DELETE CASCADE,
    key          text,
    tenant_id    text NOT NULL,
    session_id   text NOT NULL,
    kind         text NOT NULL,
    status       text NOT NULL,
    request_hash text NOT NULL,
    result       bytea,
    duration_ms  real,   -- of the call; null while it has not ended
    token        bigint NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (turn_id, key)
);
COMMENT ON TABLE journal IS 'Model and tool calls of a turn; replayed when the turn is taken up again (RT-8).';

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
    of_session      text, -- whose effect it is, where a branch has it from there
    PRIMARY KEY (session_id, fingerprint)
);
COMMENT ON TABLE effects IS 'The ledger of what tools did to the world (RT-10, RT-12).';
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
    cause          text NOT NULL, -- why it was asked
    plan_revision  integer NOT NULL,
    policy_version text NOT NULL,
    operator_only  boolean NOT NULL,
    reason         text,          -- what the decider said
    decided_by     text,
    created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at     timestamptz,
    decided_at     timestamptz,
    closed_at      timestamptz    -- when it was used, expired or became void
);
COMMENT ON TABLE approvals IS 'Questions for approval of one call each, and who decided (PX-17).';
CREATE INDEX approvals_session_id_idx ON approvals (session_id);

CREATE TABLE events (
    session_id text REFERENCES lanes ON DELETE CASCADE,
    number     bigint,   -- of the last one in the row
    tenant_id  text NOT NULL,
    turn_id    text,
    body       bytea NOT NULL,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (session_id, number)
);
COMMENT ON TABLE events IS 'The ordered log of a session; numbers have no gaps (RT-15). A row holds what one commit tells.';

CREATE TABLE outbox (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id       text NOT NULL,
    session_id      text NOT NULL REFERENCES lanes ON DELETE CASCADE,
    turn_id         text,
    kind            text NOT NULL,
    payload         bytea NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    sent_at         timestamptz
);
COMMENT ON TABLE outbox IS 'What is sent after the commit, and again until it is acknowledged and so removed (RT-4).';

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
    'What people think of answers, one word per author and turn; anonymous ones share one.';
CREATE INDEX feedback_session_id_idx ON feedback (session_id);
CREATE INDEX feedback_tenant_id_at_idx ON feedback (tenant_id, at);
