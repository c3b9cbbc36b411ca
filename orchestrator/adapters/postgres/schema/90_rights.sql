-- Rights: what each role may do where it is less than everything with the rows of its tenant (RT-22).
--
-- Tables that are not named here get the defaults of parley_guard.

SELECT parley_guard('api_keys', runtime => '', gateway => '', reader => '');
SELECT parley_guard('tenant_readers', runtime => '', gateway => '', reader => '');
-- Only who signs reads what is signed with: the gateway makes secrets and cannot read them back.
SELECT parley_guard('webhook_secrets', runtime => 'SELECT',
                    gateway => 'SELECT (tenant_id, secret_id, created_at), INSERT, DELETE', reader => '');
-- What session flows work on: notes, and what is remembered beyond a session. Nothing of a session itself (IF-17).
SELECT parley_guard(name, flows => 'SELECT, INSERT, UPDATE, DELETE')
FROM unnest('{scratchpad_entries,preferences,documents,document_chunks}'::regclass[]) AS name;
SELECT parley_guard('forgotten_preferences', flows => 'INSERT');
SELECT parley_guard('records', flows => 'SELECT');
SELECT parley_guard_all();
