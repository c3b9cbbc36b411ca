-- Access: API keys, and row-level security by tenant (RT-22).
--
-- The search path of a function is the schema in which it was created, then pg_temp. pg_temp comes last, so that a temporary
-- table cannot replace one of these tables.

SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

CREATE TABLE api_keys (
    key_id     text PRIMARY KEY,
    tenant_id  text NOT NULL,
    name       text NOT NULL,
    scopes     text[] NOT NULL,
    user_id    text,          -- restricts a key without the operator scope to this user's sessions
    digest     text NOT NULL, -- SHA-256 of the secret part, which is long and random
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at timestamptz,
    revoked_at timestamptz
);
COMMENT ON TABLE api_keys IS 'API keys. Only digests of their secrets are stored (RT-22).';
CREATE INDEX api_keys_tenant_id_idx ON api_keys (tenant_id);

CREATE TABLE tenant_readers (
    role      text PRIMARY KEY,
    tenant_id text NOT NULL
);
COMMENT ON TABLE tenant_readers IS 'Login roles of SQL users, each bound to one tenant (RT-22).';

CREATE TABLE guarded_tables (
    name    text PRIMARY KEY,
    runtime text NOT NULL,
    gateway text NOT NULL,
    reader  text NOT NULL,
    flows   text NOT NULL
);
COMMENT ON TABLE guarded_tables IS 'Privileges of each role on each table, applied by parley_guard.';

-- Returns a valid key by its ID. The gateway calls this function before it knows the tenant.
CREATE FUNCTION parley_find_key(wanted text) RETURNS SETOF api_keys
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT * FROM api_keys
    WHERE key_id = wanted AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
$$;
REVOKE ALL ON FUNCTION parley_find_key(text) FROM PUBLIC;

-- Returns the tenant of a connection. SQL users have the tenant that their login role is bound to, and the gateway sets the
-- tenant of each request. For other users, the result is null.
CREATE FUNCTION parley_tenant() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT coalesce(
        (SELECT tenant_id FROM tenant_readers WHERE role = session_user::text),
        CASE WHEN to_regrole('parley_gateway') IS NOT NULL
                  AND pg_has_role(session_user, to_regrole('parley_gateway')::oid, 'member')
             THEN current_setting('parley.tenant', true) END)
$$;

-- Applies the row-level policies to a table, and grants privileges to the roles that exist.
CREATE FUNCTION parley_guard(
    target regclass,
    runtime text DEFAULT 'SELECT, INSERT, UPDATE, DELETE',
    gateway text DEFAULT 'SELECT, INSERT, UPDATE, DELETE',
    reader text DEFAULT 'SELECT',
    flows text DEFAULT ''
) RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT SET client_min_messages = warning AS $$
DECLARE
    relation text := (SELECT relname FROM pg_class WHERE oid = target);
    owned boolean := EXISTS (SELECT FROM pg_attribute
                             WHERE attrelid = target AND attname = 'tenant_id' AND NOT attisdropped);
    allowed record;
BEGIN
    INSERT INTO guarded_tables (name, runtime, gateway, reader, flows)
    VALUES (relation, runtime, CASE WHEN owned THEN gateway ELSE '' END, CASE WHEN owned THEN reader ELSE '' END, flows)
    ON CONFLICT (name) DO UPDATE
    SET runtime = excluded.runtime, gateway = excluded.gateway, reader = excluded.reader, flows = excluded.flows;
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', target);
    EXECUTE format('DROP POLICY IF EXISTS parley_tenant ON %s', target);
    EXECUTE format('DROP POLICY IF EXISTS parley_runtime ON %s', target);
    EXECUTE format('DROP POLICY IF EXISTS parley_session_flows ON %s', target);
    IF owned THEN
        EXECUTE format('CREATE POLICY parley_tenant ON %s USING (tenant_id = (SELECT parley_tenant()))'
                       ' WITH CHECK (tenant_id = (SELECT parley_tenant()))', target);
    END IF;
    IF to_regrole('parley_runtime') IS NOT NULL THEN
        EXECUTE format('CREATE POLICY parley_runtime ON %s TO parley_runtime USING (true) WITH CHECK (true)',
                       target);
    END IF;
    IF to_regrole('parley_session_flows') IS NOT NULL AND flows <> '' THEN
        EXECUTE format('CREATE POLICY parley_session_flows ON %s TO parley_session_flows USING (true)'
                       ' WITH CHECK (true)', target);
    END IF;
    FOR allowed IN
        SELECT role, privileges
        FROM guarded_tables AS kept
        CROSS JOIN LATERAL (VALUES ('parley_runtime', kept.runtime), ('parley_gateway', kept.gateway),
                                   ('parley_reader', kept.reader),
                                   ('parley_session_flows', kept.flows)) AS granted (role, privileges)
        WHERE kept.name = relation AND to_regrole(role) IS NOT NULL
    LOOP
        EXECUTE format('REVOKE ALL ON %s FROM %I', target, allowed.role);
        IF allowed.privileges <> '' THEN
            EXECUTE format('GRANT %s ON %s TO %I', allowed.privileges, target, allowed.role);
        END IF;
    END LOOP;
END
$$;

-- Guards every table, with its earlier privileges or the defaults. Runs when roles are created and after each migration,
-- so that every new table is guarded.
CREATE FUNCTION parley_guard_all() RETURNS void
LANGUAGE plpgsql SET search_path FROM CURRENT SET client_min_messages = warning AS $$
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
            PERFORM parley_guard(target.relation, target.runtime, target.gateway, target.reader, target.flows);
        END IF;
    END LOOP;
    FOREACH known IN ARRAY ARRAY['parley_runtime', 'parley_gateway'] LOOP
        IF to_regrole(known) IS NOT NULL THEN
            EXECUTE format('GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %I TO %I', current_schema(), known);
        END IF;
    END LOOP;
    IF to_regrole('parley_gateway') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION parley_find_key(text), parley_status(), parley_unfinished_turns()
            TO parley_gateway;
    END IF;
    IF to_regrole('parley_runtime') IS NOT NULL THEN
        GRANT EXECUTE ON FUNCTION parley_unfinished_turns() TO parley_runtime;
    END IF;
END
$$;
