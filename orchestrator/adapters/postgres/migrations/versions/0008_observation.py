"""What turns signalled, which turn made an Internal flow due, and how the system stands (CO-6, RT-24)."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision: str | None = "0007"
branch_labels = None
depends_on = None

# Counts and ages over all tenants, and nothing else of them: the gateway may ask for these.
_STANDING = """
CREATE FUNCTION parley_standing() RETURNS TABLE (
    unfinished_turns bigint, held_lanes bigint, waiting_lanes bigint, oldest_turn_s float8,
    quarantined_turns bigint, workers bigint, pending_approvals bigint, outbox json, runs json,
    webhooks_failing bigint, webhooks_given_up bigint
) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
WITH busy AS (
    SELECT session_id, pending, done_seq, lease_until > clock_timestamp() AS held
    FROM lanes
    WHERE check_at IS NOT NULL AND pending > 0
), oldest AS (
    SELECT max(extract(epoch FROM clock_timestamp() - first.accepted_at)) AS age
    FROM (SELECT session_id, done_seq FROM lanes
          WHERE check_at IS NOT NULL AND pending > 0 ORDER BY check_at LIMIT 1000) AS due
    CROSS JOIN LATERAL (SELECT accepted_at FROM turns
                        WHERE turns.session_id = due.session_id AND seq > due.done_seq AND finished_at IS NULL
                        ORDER BY seq LIMIT 1) AS first
), sending AS (
    SELECT kind, count(*) AS waiting, max(extract(epoch FROM clock_timestamp() - created_at)) AS age
    FROM outbox
    WHERE acknowledged_at IS NULL
    GROUP BY kind
), owed AS (
    SELECT urgency, count(*) AS waiting, max(extract(epoch FROM clock_timestamp() - ready_at)) AS age
    FROM internal_runs
    WHERE hint_at IS NOT NULL AND ready_at <= clock_timestamp()
      AND NOT EXISTS (SELECT FROM internal_claims WHERE internal_claims.run_id = internal_runs.run_id)
    GROUP BY urgency
), telling AS (
    SELECT count(*) FILTER (WHERE given_up_at IS NULL) AS failing,
           count(*) FILTER (WHERE given_up_at IS NOT NULL) AS given_up
    FROM webhook_feeds
    WHERE failing_since IS NOT NULL
)
SELECT (SELECT coalesce(sum(pending), 0) FROM busy)::bigint AS unfinished_turns,
       (SELECT count(*) FROM busy WHERE held) AS held_lanes,
       (SELECT count(*) FROM busy WHERE held IS NOT TRUE) AS waiting_lanes,
       coalesce((SELECT age FROM oldest), 0)::float8 AS oldest_turn_s,
       (SELECT count(*) FROM turns WHERE quarantined_at IS NOT NULL) AS quarantined_turns,
       (SELECT count(*) FROM workers) AS workers,
       (SELECT count(*) FROM approvals WHERE status = 'pending') AS pending_approvals,
       coalesce((SELECT json_object_agg(kind, json_build_array(waiting, age)) FROM sending), '{}') AS outbox,
       coalesce((SELECT json_object_agg(urgency, json_build_array(waiting, age)) FROM owed), '{}') AS runs,
       (SELECT failing FROM telling) AS webhooks_failing,
       (SELECT given_up FROM telling) AS webhooks_given_up
$$
"""


def upgrade() -> None:
    op.add_column("turns", sa.Column("signals", sa.JSON(), nullable=True))
    op.add_column("internal_runs", sa.Column("turn_id", sa.Text(), nullable=True))
    schema = op.get_bind().execute(sa.text("SELECT quote_ident(current_schema())")).scalar_one()
    op.get_bind().exec_driver_sql(_STANDING.replace("{schema}", schema))
    op.execute("REVOKE ALL ON FUNCTION parley_standing() FROM PUBLIC")  # the guard grants it anew


def downgrade() -> None:
    op.execute("DROP FUNCTION parley_standing()")
    op.drop_column("internal_runs", "turn_id")
    op.drop_column("turns", "signals")
