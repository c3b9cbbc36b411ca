-- Privileges that differ from the defaults of parley_guard (RT-22).

SELECT parley_guard('api_keys', runtime => '', gateway => '', reader => '');
SELECT parley_guard('tenant_readers', runtime => '', gateway => '', reader => '');
-- Only workers sign deliveries, so only they can read secrets. The gateway creates secrets but cannot read them.
SELECT parley_guard('webhook_secrets', runtime => 'SELECT',
                    gateway => 'SELECT (tenant_id, secret_id, created_at), INSERT, DELETE', reader => '');
-- Session flows can change scratchpads and memory that outlives a session, but no session data (IF-17).
SELECT parley_guard(name, flows => 'SELECT, INSERT, UPDATE, DELETE')
FROM unnest('{scratchpad_entries,preferences,documents,document_chunks}'::regclass[]) AS name;
SELECT parley_guard('forgotten_preferences', flows => 'INSERT');
SELECT parley_guard('records', flows => 'SELECT');
SELECT parley_guard_all();
