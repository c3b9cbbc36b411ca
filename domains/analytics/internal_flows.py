from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel

from domains.analytics.schedules import SCHEDULES, last_due
from internal_flows.stages import InternalFlow, Options, RunContext, before_all_response
from parley import Json, NotFound, SessionClosed, SessionId, TenantId

DOMAIN = "analytics"
PAGE = 500


class Due(BaseModel):
    """A report to send. `key`: the record key of the schedule. `at`: the due time, in Unix seconds."""

    tenant_id: TenantId
    key: str
    session_id: SessionId
    table: str
    at: float


class SendReports(InternalFlow):
    """A background flow that submits a turn for each due report.

    If several reports of a schedule are due, only the latest is sent.
    """

    name: ClassVar[str] = "send_reports"
    trigger: ClassVar[str] = "send_reports"
    tools: ClassVar[tuple[str, ...]] = ("collections", "lanes")
    input_type: ClassVar[Any] = Due
    options: ClassVar[Options] = Options(concurrency=4)

    async def before_all(self, run: RunContext) -> Any:
        now, due = run.now, list[Json]()
        after = (TenantId(""), "")
        while page := await run.tools["collections"].everywhere(
            DOMAIN, SCHEDULES, {"status": "active"}, after=after, limit=PAGE
        ):
            for tenant_id, key, order in page:
                at = last_due(order, now)
                if at > order.get("sent_for", order["made_at"]):
                    due.append(
                        {
                            **{name: order[name] for name in ("session_id", "table")},
                            "tenant_id": tenant_id,
                            "key": key,
                            "at": at,
                        }
                    )
            after = page[-1][:2]
        return before_all_response(inputs=due)

    async def work(self, run: RunContext, item: Due, data: Json) -> str:
        """Submit the report's turn, or cancel the schedule if the session is closed or deleted."""
        orders = run.tools["collections"].of(item.tenant_id, DOMAIN)
        report: dict[str, Json] = {"dact": "report", "slots": {"table": item.table}}
        key = f"{SCHEDULES}:{item.key}:{item.at:.0f}"
        try:
            await run.tools["lanes"].submit(item.tenant_id, item.session_id, "start_flow", report, key=key)
        except (SessionClosed, NotFound):
            await orders.update(SCHEDULES, item.key, {"status": "cancelled"})
            return "cancelled"
        await orders.update(SCHEDULES, item.key, {"sent_for": item.at})
        return "sent"

    async def after_all(self, run: RunContext, outputs: list[Json]) -> Json:
        return {"sent": outputs.count("sent"), "cancelled": outputs.count("cancelled")}
