-- Rights: what each role may do where it is less than everything with the rows of its tenant (RT-22).
--
-- Tables that are not named here get the defaults of parley_guard.

SELECT parley_guard('api_keys', runtime => '', gateway => '', reader => '');
SELECT parley_guard('tenant_readers', runtime => '', gateway => '', reader => '');
-- Only who signs reads what is signed with: the gateway makes secrets and cannot read them back.
SELECT parley_guard('webhook_secrets', runtime => 'SELECT',
                    gateway => 'SELECT (tenant_id, secret_id, created_at), INSERT, DELETE', reader => '');
SELECT parley_guard_all();
