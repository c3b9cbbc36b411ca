-- Claim webhook feeds with due deliveries: a few per host, and none of busy hosts (RT-16).
--
-- Arguments: busy_hosts, per_host (feeds per host), limit, hold_s (seconds), secrets (number of secrets to return)
-- Returns:   up to `limit` rows, one per feed that is now held under a new token: the webhook (webhook_id, tenant_id, url,
--            session_id, events, created_at, closed_at), then session_id, delivered, attempts, token, and the tenant's
--            newest secrets.
WITH candidate AS (
    SELECT webhook_id, feed.session_id, host, due_at
    FROM webhook_feeds AS feed JOIN webhooks USING (webhook_id)
    WHERE feed.due_at <= now()
      AND (feed.held_until IS NULL OR feed.held_until < now())
      AND webhooks.host <> ALL(%(busy_hosts)s::text[])
    ORDER BY feed.due_at
    LIMIT 500
), ranked AS (
    SELECT webhook_id, session_id, row_number() OVER (PARTITION BY host ORDER BY due_at) AS place FROM candidate
), due AS (
    SELECT feed.webhook_id, feed.session_id
    FROM webhook_feeds AS feed JOIN ranked USING (webhook_id, session_id)
    WHERE ranked.place <= %(per_host)s
      AND feed.due_at <= now()
      AND (feed.held_until IS NULL OR feed.held_until < now())
    ORDER BY feed.due_at
    LIMIT %(limit)s
    FOR UPDATE OF feed SKIP LOCKED
)
UPDATE webhook_feeds AS feed
SET token = feed.token + 1, held_until = clock_timestamp() + %(hold_s)s * interval '1 second'
FROM due JOIN webhooks USING (webhook_id)
WHERE feed.webhook_id = due.webhook_id AND feed.session_id = due.session_id
RETURNING webhooks.webhook_id, webhooks.tenant_id, webhooks.url, webhooks.session_id, webhooks.events,
          webhooks.created_at, webhooks.closed_at, feed.session_id, feed.delivered, feed.attempts, feed.token,
          ARRAY(SELECT secret FROM webhook_secrets AS kept WHERE kept.tenant_id = webhooks.tenant_id
                ORDER BY kept.created_at DESC LIMIT %(secrets)s) AS secrets
