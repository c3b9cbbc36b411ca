-- Cheap storage of the long texts that turns write.
--
-- lz4 is used where the server has it, else the server's own pglz.

DO $$
BEGIN
    IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
        ALTER TABLE states ALTER COLUMN body SET COMPRESSION lz4;
        ALTER TABLE state_history ALTER COLUMN diff SET COMPRESSION lz4,
                                  ALTER COLUMN snapshot SET COMPRESSION lz4;
        ALTER TABLE turns ALTER COLUMN result SET COMPRESSION lz4;
    END IF;
END
$$;
