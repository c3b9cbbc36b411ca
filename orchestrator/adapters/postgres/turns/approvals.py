"""Approvals in PostgreSQL. A conditional update records at most one decision for each approval (PX-17)."""

from datetime import UTC, datetime

from sqlalchemy import desc, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from orchestrator.adapters.postgres.pool import Database
from orchestrator.adapters.postgres.tables import NOW, approvals, record_of, required
from orchestrator.errors import NotFound, Refused
from orchestrator.turns.approval import ApprovalRecord, ApprovalStatus, Decision, explain_refusal, from_unix
from orchestrator.types import SessionId, TenantId


class PostgresApprovals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(
        self,
        tenant_id: TenantId,
        *,
        session_id: SessionId | None = None,
        status: ApprovalStatus | None = None,
        limit: int = 100,
    ) -> list[ApprovalRecord]:
        query = select(approvals).where(approvals.c.tenant_id == tenant_id)
        if session_id is not None:
            query = query.where(approvals.c.session_id == session_id)
        pending = approvals.c.status == ApprovalStatus.PENDING.value
        match status:
            case None:
                pass
            case ApprovalStatus.PENDING:
                query = query.where(pending, approvals.c.expires_at > NOW)
            case ApprovalStatus.EXPIRED:
                query = query.where(
                    (approvals.c.status == status.value) | (pending & (approvals.c.expires_at <= NOW))
                )
            case _:
                query = query.where(approvals.c.status == status.value)
        rows = await self._database.read_all(query.order_by(desc(approvals.c.created_at)).limit(limit))
        return [record_of(ApprovalRecord, row) for row in rows]

    async def get(self, tenant_id: TenantId, approval_id: str) -> ApprovalRecord:
        query = select(approvals).where(
            approvals.c.approval_id == approval_id, approvals.c.tenant_id == tenant_id
        )
        return record_of(
            ApprovalRecord, required(await self._database.read_one(query), "approval", approval_id)
        )

    async def decide(self, tenant_id: TenantId, approval_id: str, decision: Decision) -> ApprovalRecord:
        async with self._database.transaction() as connection:
            record = await decide_approval(connection, tenant_id, approval_id, decision)
        if record is None:
            raise NotFound("approval", approval_id)
        if record.status is not decision.status:
            now = datetime.now(UTC) if decision.now is None else from_unix(decision.now)
            raise Refused(explain_refusal(record, now))
        return record


async def decide_approval(
    connection: AsyncConnection, tenant_id: TenantId, approval_id: str, decision: Decision
) -> ApprovalRecord | None:
    """Record a decision, unless the approval is decided or expired, or only an operator can decide it.

    Return the approval even if it is unchanged, or None if it doesn't exist.
    """
    mine = (approvals.c.approval_id == approval_id, approvals.c.tenant_id == tenant_id)
    now = NOW if decision.now is None else from_unix(decision.now)
    may = () if decision.suffices(operator_only=True) else (approvals.c.operator_only.is_(False),)
    deciding = (
        update(approvals)
        .where(*mine, *may, approvals.c.status == ApprovalStatus.PENDING.value, approvals.c.expires_at > now)
        .values(
            status=decision.status.value,
            decided_by=decision.decided_by,
            reason=decision.reason,
            decided_at=NOW,
        )
        .returning(approvals)
    )
    row = (await connection.execute(deciding)).one_or_none()
    if row is None:
        row = (await connection.execute(select(approvals).where(*mine))).one_or_none()
    return None if row is None else record_of(ApprovalRecord, row)
