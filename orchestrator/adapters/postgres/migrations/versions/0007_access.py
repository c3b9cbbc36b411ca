"""Keys, roles, row-level security by tenant, webhooks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision: str | None = "0006"
branch_labels = None
depends_on = None

_NOW = sa.text("clock_timestamp()")

# Who a connection works for. A person's login role is tied to its tenant for good; the gateway's names
# the tenant of each request; for everybody else there is none.
_TENANT = """
CREATE FUNCTION parley_tenant() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT coalesce(
        (SELECT tenant_id FROM tenant_readers WHERE role = session_user::text),
        CASE WHEN to_regrole('parley_gateway') IS NOT NULL
                  AND pg_has_role(session_user, to_regrole('parley_gateway')::oid, 'member')
             THEN current_setting('parley.tenant', true) END)
$$
"""

# Puts a table under the policies and gives the roles, where they exist, what they may do with it.
_GUARD = """
CREATE FUNCTION parley_guard(
    target regclass,
    runtime text DEFAULT 'SELECT, INSERT, UPDATE, DELETE',
    gateway text DEFAULT 'SELECT, INSERT, UPDATE, DELETE',
    reader text DEFAULT 'SELECT'
) RETURNS void LANGUAGE plpgsql SET search_path = {schema}, pg_temp SET client_min_messages = warning AS $$
DECLARE
    relation text := (SELECT relname FROM pg_class WHERE oid = target);
    owned boolean := EXISTS (SELECT FROM pg_attribute
                             WHERE attrelid = target AND attname = 'tenant_id' AND NOT attisdropped);
    allowed record;
BEGIN
    INSERT INTO guarded_tables (name, runtime, gateway, reader)
    VALUES (relation, runtime, CASE WHEN owned THEN gateway ELSE '' END, CASE WHEN owned THEN reader ELSE '' END)
    ON CONFLICT (name) DO UPDATE
    SET runtime = excluded.runtime, gateway = excluded.gateway, reader = excluded.reader;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('DROP POLICY IF EXISTS parley_tenant ON %s', target);
    EXECUTE format('DROP POLICY IF EXISTS parley_runtime ON %s', target);
    IF owned THEN
        EXECUTE format('CREATE POLICY parley_tenant ON %s USING (tenant_id = (SELECT parley_tenant()))'
                       ' WITH CHECK (tenant_id = (SELECT parley_tenant()))', target);
    END IF;
    IF to_regrole('parley_runtime') IS NOT NULL THEN
        EXECUTE format('CREATE POLICY parley_runtime ON %s TO parley_runtime USING (true) WITH CHECK (true)',
                       target);
    END IF;
    FOR allowed IN
        SELECT role, privileges
        FROM guarded_tables AS kept
        CROSS JOIN LATERAL (VALUES ('parley_runtime', kept.runtime), ('parley_gateway', kept.gateway),
                                   ('parley_reader', kept.reader)) AS granted (role, privileges)
        WHERE kept.name = relation AND to_regrole(role) IS NOT NULL
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %I', target, allowed.role);
        IF allowed.privileges <> '' THEN
            EXECUTE format('GRANT %s ON %s TO %I', allowed.privileges, target, allowed.role);
        END IF;
    END LOOP;
END
$$
"""

# Guards every table: as it was told before, or by the default. Run after each migration, so that no new
# table is forgotten, and when the roles are made.
_GUARD_ALL = """
CREATE FUNCTION parley_guard_all() RETURNS void
LANGUAGE plpgsql SET search_path = {schema}, pg_temp SET client_min_messages = warning AS $$
DECLARE
    target record;
    known text;
BEGIN
    FOR target IN
        SELECT pg_class.oid::regclass AS relation, kept.*
        FROM pg_class LEFT JOIN guarded_tables AS kept ON kept.name = relname
        WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
          AND relname NOT IN ('alembic_version', 'guarded_tables')
        ORDER BY relname
    LOOP
        IF target.name IS NULL THEN
            PERFORM parley_guard(target.relation);
        ELSE
            PERFORM parley_guard(target.relation, target.runtime, target.gateway, target.reader);
        END IF;
    END LOOP;
    FOREACH known IN ARRAY ARRAY['parley_runtime', 'parley_gateway'] LOOP
        IF to_regrole(known) IS NOT NULL THEN
            EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO %I', current_schema(), known);
        END IF;
    END LOOP;
    IF to_regrole('parley_gateway') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION parley_find_key(text), parley_unfinished_turns() TO parley_gateway;
    END IF;
    IF to_regrole('parley_runtime') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION parley_unfinished_turns() TO parley_runtime;
    END IF;
    IF to_regrole('parley_gateway') IS NOT NULL AND to_regprocedure('parley_standing()') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION parley_standing() TO parley_gateway;
    END IF;
END
$$
"""

# The gateway looks a key up before it knows the tenant: one key, by its identifier.
_FIND_KEY = """
CREATE FUNCTION parley_find_key(wanted text) RETURNS SETOF api_keys
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT * FROM api_keys
    WHERE key_id = wanted AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
$$
"""

# The bound of the whole inbox counts the turns of all tenants, and tells nothing else of them.
_UNFINISHED = """
CREATE FUNCTION parley_unfinished_turns() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
    SELECT coalesce(sum(pending), 0) FROM lanes WHERE check_at IS NOT NULL
$$
"""

# Whether a webhook listens is noted on the lane, so that others pay nothing for it.
_HOOK_LANE = """
CREATE FUNCTION parley_hook_lane() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
BEGIN
    NEW.hooked := EXISTS (SELECT FROM webhooks
                          WHERE webhooks.tenant_id = NEW.tenant_id AND closed_at IS NULL
                            AND (webhooks.session_id IS NULL OR webhooks.session_id = NEW.session_id));
    RETURN NEW;
END
$$
"""

# Every durable event takes a number from its lane, whoever writes it.
_FEED = """
CREATE FUNCTION parley_feed_webhooks() RETURNS trigger LANGUAGE plpgsql SET search_path = {schema}, pg_temp AS $$
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
$$
"""


def upgrade() -> None:
    _add_access()
    _add_webhooks()
    op.add_column(
        "approvals",
        sa.Column("operator_only", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    _add_functions()


def _add_access() -> None:
    op.create_table(
        "api_keys",
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=True),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("key_id", name=op.f("api_keys_pkey")),
        comment="Keys of callers; their text is stored nowhere (RT-22).",
    )
    op.create_index("api_keys_tenant_id_idx", "api_keys", ["tenant_id"], unique=False)
    op.create_table(
        "tenant_readers",
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("role", name=op.f("tenant_readers_pkey")),
        comment="Login roles of people, each tied to one tenant for good (RT-22).",
    )
    op.create_table(
        "guarded_tables",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("runtime", sa.Text(), nullable=False),
        sa.Column("gateway", sa.Text(), nullable=False),
        sa.Column("reader", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("guarded_tables_pkey")),
        comment="What each role may do with each table; applied by parley_guard.",
    )


def _add_webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("events", postgresql.ARRAY(sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("webhooks_pkey")),
        comment="Where events are told outside (RT-16).",
    )
    op.create_index("webhooks_tenant_id_idx", "webhooks", ["tenant_id", "session_id"], unique=False)
    op.create_table(
        "webhook_secrets",
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("secret_id", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=_NOW, nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "secret_id", name=op.f("webhook_secrets_pkey")),
        comment="What deliveries of a tenant are signed with; the newest two are used.",
    )
    op.create_table(
        "webhook_feeds",
        sa.Column("webhook_id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("wanted", sa.BigInteger(), nullable=False),
        sa.Column("delivered", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("given_up_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("token", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("webhook_id", "session_id", name=op.f("webhook_feeds_pkey")),
        comment="How far each session's events were told to each webhook, in order.",
    )
    op.create_index("webhook_feeds_session_id_idx", "webhook_feeds", ["session_id"], unique=False)
    op.create_index(
        "webhook_feeds_due_at_idx",
        "webhook_feeds",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index(
        "webhook_feeds_failing_idx",
        "webhook_feeds",
        ["tenant_id", "failing_since"],
        unique=False,
        postgresql_where=sa.text("failing_since IS NOT NULL"),
    )
    op.add_column("lanes", sa.Column("hooked", sa.Boolean(), server_default=sa.text("false"), nullable=False))


def _add_functions() -> None:
    # A temporary table must not stand in for one of ours, so the search path names pg_temp, and last.
    schema = op.get_bind().exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for function in (_TENANT, _GUARD, _FIND_KEY, _UNFINISHED, _GUARD_ALL, _HOOK_LANE, _FEED):
        op.execute(sa.text(function.replace("{schema}", schema).replace(":", "\\:")))
    op.execute("REVOKE ALL ON FUNCTION parley_find_key(text), parley_unfinished_turns() FROM PUBLIC")
    op.execute(
        "CREATE TRIGGER lanes_hook BEFORE INSERT ON lanes FOR EACH ROW EXECUTE FUNCTION parley_hook_lane()"
    )
    op.execute(
        "CREATE TRIGGER lanes_feed AFTER UPDATE OF next_event ON lanes FOR EACH ROW"
        " WHEN (NEW.hooked) EXECUTE FUNCTION parley_feed_webhooks()"
    )
    op.execute("SELECT parley_guard('api_keys', '', '', '')")
    op.execute("SELECT parley_guard('tenant_readers', '', '', '')")
    op.execute("SELECT parley_guard('webhook_secrets', 'SELECT', 'SELECT, INSERT, DELETE', '')")
    op.execute("SELECT parley_guard_all()")
