-- Background work: worker processes, runs of background flows with their items and claims, and the schedule.

CREATE SEQUENCE worker_ids AS integer;
CREATE TABLE workers (
    worker_id  bigint PRIMARY KEY DEFAULT nextval('worker_ids'),
    host       text NOT NULL,
    pid        integer NOT NULL,
    backend_pid   integer NOT NULL, -- server process of the worker's connection
    backend_start timestamptz NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE workers IS 'Worker processes. A row without its connection belongs to a dead worker (RT-11).';

CREATE TABLE internal_runs (
    run_id            text PRIMARY KEY,
    tenant_id         text NOT NULL,
    session_id        text,
    flow              text NOT NULL,
    status            text NOT NULL,
    inputs            json NOT NULL, -- as given, before `before_all` overrides them
    progress          json,
    error             text,
    created_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at        timestamptz,
    finished_at       timestamptz,
    chain_id          text NOT NULL DEFAULT '', -- the first run of the chain
    graph_id          text NOT NULL DEFAULT '', -- shared by the runs that were started together
    number            bigint NOT NULL DEFAULT 0,
    phase             text NOT NULL DEFAULT 'before_all',
    parameters        json NOT NULL DEFAULT '{}',
    options           json NOT NULL DEFAULT '{}',
    final_options   json,          -- set when `before_all` ends
    config            json,
    data              json,
    closing           json,
    reason            text,
    redo_count        integer,
    redo              text NOT NULL DEFAULT 'none',
    flight_key        text,
    open_predecessors integer NOT NULL DEFAULT 0,
    successors        text[] NOT NULL DEFAULT '{}',
    on_failure        text NOT NULL DEFAULT 'block',
    urgency           text NOT NULL DEFAULT 'background',
    attempts          integer NOT NULL DEFAULT 0,
    again             json,          -- graph requested while this run was active; starts when it ends
    turn_id           text,          -- turn that triggered the run, if any
    task_id           text NOT NULL, -- Celery task that ends with this run and its automatic reruns
    token             bigint,        -- claim on `before_all` or `after_all`, or null
    ready_at          timestamptz,
    hint_at           timestamptz    -- when the reconciler sends a message; null: nothing to do, claimed, or reported
);
COMMENT ON TABLE internal_runs IS
    'Executions of background flows, each a node in its trigger''s graph (IF-8, IF-9).';
CREATE INDEX internal_runs_chain_id_idx ON internal_runs (chain_id);
CREATE INDEX internal_runs_created_at_idx ON internal_runs (tenant_id, created_at);
CREATE UNIQUE INDEX internal_runs_flight_key ON internal_runs (tenant_id, flight_key)
    WHERE flight_key IS NOT NULL;
CREATE INDEX internal_runs_finished_at_idx ON internal_runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX internal_runs_graph_id_idx ON internal_runs (graph_id);
CREATE INDEX internal_runs_hint_at_idx ON internal_runs (hint_at) WHERE hint_at IS NOT NULL;
CREATE INDEX internal_runs_session_id_idx ON internal_runs (session_id);

-- Rejects transitions that are not in `RUN_TRANSITIONS`.
CREATE FUNCTION parley_run_transition() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> ALL (CASE OLD.status WHEN 'waiting' THEN '{ready,blocked,cancelled}'
                                          WHEN 'ready' THEN '{running,cancelled}'
                                          WHEN 'running' THEN '{done,skipped,failed,cancelled}'
                                          WHEN 'blocked' THEN '{waiting}'
                                          ELSE '{}' END::text[]) THEN
        RAISE check_violation USING MESSAGE = format('A run that is %s cannot become %s.', OLD.status, NEW.status);
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER parley_run_transition BEFORE UPDATE OF status ON internal_runs
    FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION parley_run_transition();

CREATE TABLE internal_items (
    run_id     text REFERENCES internal_runs ON DELETE CASCADE,
    position   bigint,
    tenant_id  text NOT NULL,
    status     text NOT NULL,
    attempts   integer NOT NULL DEFAULT 0,
    input      json,
    result     json,
    error      text,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    reason     text,
    token      bigint,
    PRIMARY KEY (run_id, position)
);
COMMENT ON TABLE internal_items IS 'Inputs of a run, with their outcomes.';
CREATE INDEX internal_items_unfinished_idx ON internal_items (run_id, position)
    WHERE status IN ('queued', 'running');

CREATE SEQUENCE internal_claim_tokens;
CREATE TABLE internal_claims (
    token       bigint PRIMARY KEY DEFAULT nextval('internal_claim_tokens'),
    tenant_id   text NOT NULL,
    run_id      text NOT NULL,
    owner       bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    task_id     text -- Celery task of a share of items
);
COMMENT ON TABLE internal_claims IS
    'Claims on runs or on some of their items. The fence rejects tokens without a row.';
CREATE INDEX internal_claims_run_id_idx ON internal_claims (run_id);

CREATE TABLE schedule_firings (
    tenant_id text NOT NULL,
    job       text,
    due_at    timestamptz,
    next_due_at timestamptz NOT NULL,
    fired_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, due_at)
);
COMMENT ON TABLE schedule_firings IS 'Scheduled jobs by due time. Only the process that inserts a row runs the job (IF-15).';
