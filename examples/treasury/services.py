"""A treasury that writes down what it was told to do, once for each call."""

from parley import JsonObject, Service, ToolCall


class Treasury(Service):
    async def pay(self, *, supplier: str, call: ToolCall) -> JsonObject:
        """Pay a supplier."""
        await self.records.create("orders", call.idempotency_key, {"pay": supplier})
        return {"paid": supplier}

    async def close(self, *, branch: str, call: ToolCall) -> JsonObject:
        """Close the account of a branch."""
        await self.records.create("orders", call.idempotency_key, {"close": branch})
        return {"closed": branch}
