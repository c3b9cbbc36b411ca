-- What is packed does not become smaller: the server does not try.

DO $$
DECLARE
    packed record;
BEGIN
    FOR packed IN
        SELECT attrelid::regclass AS owner, attname
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
          AND atttypid = 'bytea'::regtype AND NOT attisdropped
    LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE EXTERNAL', packed.owner, packed.attname);
    END LOOP;
END
$$;
