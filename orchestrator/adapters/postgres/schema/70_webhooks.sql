-- Webhooks: receivers of events, signing secrets, and the delivery progress of each session (RT-16).

CREATE TABLE webhooks (
    webhook_id text PRIMARY KEY,
    tenant_id  text NOT NULL,
    session_id text REFERENCES sessions ON DELETE CASCADE, -- null: for all sessions of the tenant
    url        text NOT NULL,
    host       text NOT NULL,
    events     text[], -- null: all durable events
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    closed_at  timestamptz
);
COMMENT ON TABLE webhooks IS 'Receivers of events (RT-16).';
CREATE INDEX webhooks_tenant_id_idx ON webhooks (tenant_id, session_id);

CREATE TABLE webhook_secrets (
    tenant_id  text,
    secret_id  text,
    secret     text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant_id, secret_id)
);
COMMENT ON TABLE webhook_secrets IS 'Secrets that sign a tenant''s deliveries. The newest two are in use.';

CREATE TABLE webhook_feeds (
    webhook_id    text,
    session_id    text REFERENCES lanes ON DELETE CASCADE,
    tenant_id     text NOT NULL,
    wanted        bigint NOT NULL, -- number of the session's last event
    delivered     bigint NOT NULL,
    attempts      integer NOT NULL DEFAULT 0,
    due_at        timestamptz,     -- when to deliver next; null: nothing to deliver, or given up
    failing_since timestamptz,
    given_up_at   timestamptz,
    error         text,
    token         bigint NOT NULL DEFAULT 0, -- identifies the current holder
    held_until    timestamptz,               -- when another process may take the feed
    PRIMARY KEY (webhook_id, session_id)
);
COMMENT ON TABLE webhook_feeds IS 'Delivery progress of each session''s events, per webhook.';
CREATE INDEX webhook_feeds_due_at_idx ON webhook_feeds (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_feeds_failing_idx ON webhook_feeds (tenant_id, failing_since)
    WHERE failing_since IS NOT NULL;
CREATE INDEX webhook_feeds_session_id_idx ON webhook_feeds (session_id);

-- Marks a new lane that has a webhook, so that other lanes have no extra cost.
CREATE FUNCTION parley_mark_lane() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    NEW.has_webhook := EXISTS (
        SELECT FROM webhooks
        WHERE webhooks.tenant_id = NEW.tenant_id AND closed_at IS NULL
          AND (webhooks.session_id IS NULL OR webhooks.session_id = NEW.session_id));
    RETURN NEW;
END
$$;
CREATE TRIGGER lanes_mark BEFORE INSERT ON lanes FOR EACH ROW EXECUTE FUNCTION parley_mark_lane();

-- Makes deliveries due. Every durable event takes a number from its lane, so this trigger sees all events.
CREATE FUNCTION parley_feed_webhooks() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    INSERT INTO webhook_feeds AS feed (webhook_id, session_id, tenant_id, wanted, delivered, due_at)
    SELECT webhook_id, NEW.session_id, NEW.tenant_id, NEW.next_event - 1, OLD.next_event - 1, clock_timestamp()
    FROM webhooks
    WHERE webhooks.tenant_id = NEW.tenant_id AND closed_at IS NULL
      AND (webhooks.session_id IS NULL OR webhooks.session_id = NEW.session_id)
    ON CONFLICT (webhook_id, session_id) DO UPDATE
    SET wanted = excluded.wanted,
        due_at = CASE WHEN feed.given_up_at IS NULL THEN coalesce(feed.due_at, excluded.due_at) END;
    RETURN NULL;
END
$$;
CREATE TRIGGER lanes_feed AFTER UPDATE OF next_event ON lanes
    FOR EACH ROW WHEN (NEW.has_webhook) EXECUTE FUNCTION parley_feed_webhooks();
