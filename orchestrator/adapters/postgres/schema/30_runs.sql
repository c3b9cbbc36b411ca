-- Work in the background: worker processes, runs of Internal flows with their items and claims, the schedule.

CREATE SEQUENCE worker_ids AS integer;
CREATE TABLE workers (
    worker_id  bigint PRIMARY KEY DEFAULT nextval('worker_ids'),
    host       text NOT NULL,
    pid        integer NOT NULL,
    backend_pid   integer NOT NULL, -- the server's process for the worker's connection
    backend_start timestamptz NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE workers IS 'Worker processes; a row whose connection is gone belongs to a dead one (RT-11).';

CREATE TABLE internal_runs (
    run_id            text PRIMARY KEY,
    tenant_id         text NOT NULL,
    session_id        text,
    flow              text NOT NULL,
    status            text NOT NULL,
    inputs            json NOT NULL, -- as given, before any override by `before_all`
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
    final_options   json,          -- of this run, once `before_all` has ended
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
    urgency           text NOT NULL DEFAULT 'housekeeping',
    attempts          integer NOT NULL DEFAULT 0,
    again             json,          -- the graph that was asked for while it was at work, and starts when this run has ended
    turn_id           text,          -- the turn that made it due, if one did
    task_id           text NOT NULL, -- of the Celery task that ends when this run and its automatic reruns have ended
    token             bigint,        -- who holds `before_all` or `after_all`; null: nobody
    ready_at          timestamptz,
    hint_at           timestamptz    -- when the reconciler sends a message for it; null: nothing to do, claimed, or reported
);
COMMENT ON TABLE internal_runs IS
    'One execution of an Internal flow: a node of its trigger''s graph (IF-8, IF-9).';
CREATE INDEX internal_runs_chain_id_idx ON internal_runs (chain_id);
CREATE INDEX internal_runs_created_at_idx ON internal_runs (tenant_id, created_at);
CREATE UNIQUE INDEX internal_runs_flight_key ON internal_runs (tenant_id, flight_key)
    WHERE flight_key IS NOT NULL;
CREATE INDEX internal_runs_finished_at_idx ON internal_runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX internal_runs_graph_id_idx ON internal_runs (graph_id);
CREATE INDEX internal_runs_hint_at_idx ON internal_runs (hint_at) WHERE hint_at IS NOT NULL;
CREATE INDEX internal_runs_session_id_idx ON internal_runs (session_id);

-- What may follow each status of a run, whoever writes it; `RUN_TRANSITIONS` says the same.
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
COMMENT ON TABLE internal_items IS 'The inputs of a run, each with its outcome.';
CREATE INDEX internal_items_unfinished_idx ON internal_items (run_id, position)
    WHERE status IN ('queued', 'running');

CREATE SEQUENCE internal_claim_tokens;
CREATE TABLE internal_claims (
    token       bigint PRIMARY KEY DEFAULT nextval('internal_claim_tokens'),
    tenant_id   text NOT NULL,
    run_id      text NOT NULL,
    owner       bigint NOT NULL,
    lease_until timestamptz NOT NULL,
    task_id     text -- of the Celery task of a share of items
);
COMMENT ON TABLE internal_claims IS
    'Who is at work on a run or on some of its items; a token that is gone is fenced.';
CREATE INDEX internal_claims_run_id_idx ON internal_claims (run_id);

CREATE TABLE schedule_firings (
    tenant_id text NOT NULL,
    job       text,
    due_at    timestamptz,
    next_due_at timestamptz NOT NULL,
    fired_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job, due_at)
);
COMMENT ON TABLE schedule_firings IS 'Scheduled jobs by due time: who inserts the row, fires (IF-15).';
