-- Insert the approvals that a turn requests, in the turn's transaction (RT-4, PX-17).
--
-- Arguments: session_id, tenant_id, turn_id, approvals (JSON array; expires_at in Unix seconds)
INSERT INTO approvals (approval_id, tenant_id, session_id, turn_id, flow_id, tool_id, fingerprint, status, arguments,
                       question, cause, plan_revision, policy_version, expires_at, operator_only)
SELECT asked.approval_id, %(tenant_id)s, %(session_id)s, %(turn_id)s, asked.flow_id, asked.tool_id,
       asked.fingerprint, 'pending', asked.arguments, asked.question, asked.cause, asked.plan_revision,
       asked.policy_version, to_timestamp(asked.expires_at), asked.operator_only
FROM json_to_recordset(%(approvals)s::json)
     AS asked (approval_id text, flow_id text, tool_id text, fingerprint text, arguments json, question text,
               cause text, plan_revision int, policy_version text, expires_at float8, operator_only bool)
ON CONFLICT (approval_id) DO NOTHING
