"""A service desk with tools that fail in different ways."""

from __future__ import annotations

import asyncio

from orchestrator.domain.services import Service, ServiceContext, ToolCall
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.types import JsonObject

OFFERS = {
    "P1": [{"offer": "T-1", "colour": "black"}, {"offer": "T-2", "colour": "cyan"}],
    "P2": [{"offer": "T-3", "colour": "black"}],
}


class Desk(Service):
    def __init__(self, context: ServiceContext) -> None:
        super().__init__(context)
        self.queue_asked = 0

    def find_toner(self, *, printer: str) -> JsonObject:
        """Find toner. A synchronous method, which runs in a thread."""
        return {"offers": OFFERS.get(printer, [])}

    async def order_toner(self, *, offer: str, call: ToolCall) -> JsonObject:
        order = await self.records.create("orders", call.idempotency_key, {"order_id": f"O-{offer}"})
        return {"order_id": order["order_id"]}

    async def wipe_disk(self, *, printer: str) -> JsonObject:
        return {"wiped": printer}

    async def report_mail(self) -> JsonObject:
        return {"sent": True}

    async def check_queue(self) -> JsonObject:
        """Check the queue. Unavailable for the first four calls."""
        self.queue_asked += 1
        if self.queue_asked <= 4:
            raise ToolFailure(FailureCategory.SERVER_ERROR, "The print server is down.")
        return {"waiting": 3}

    async def check_paper(self) -> JsonObject:
        """Check the paper. Never answers, and ignores cancellation."""
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.sleep(0.1)
                return {"sheets": 1}

    async def check_ink(self) -> JsonObject:
        return {"percent": "plenty"}

    async def read_counter(self, *, printer: str) -> JsonObject:
        return {"pages": 900 if printer == "P1" else 9000, "due": printer != "P1"}
