"""A treasury that records its orders, once per call."""

from parley import JsonObject, Service, ToolCall


class Treasury(Service):
    async def pay(self, *, supplier: str, call: ToolCall) -> JsonObject:
        await self.records.create("orders", call.idempotency_key, {"pay": supplier})
        return {"paid": supplier}

    async def close(self, *, branch: str, call: ToolCall) -> JsonObject:
        await self.records.create("orders", call.idempotency_key, {"close": branch})
        return {"closed": branch}
