"""A laboratory that records its calls."""

from __future__ import annotations

from orchestrator.domain.services import Service, ServiceContext
from orchestrator.errors import FailureCategory, ToolFailure
from orchestrator.types import Json, JsonObject

PARTS = [{"name": "bolt", "stock": 7, "price": 2}, {"name": "lens", "stock": 0, "price": 90}]


class Lab(Service):
    def __init__(self, context: ServiceContext) -> None:
        super().__init__(context)
        self.queries: list[str] = []
        self.orders: list[str] = []
        self.mails: list[str] = []

    async def query(self, *, sql: str) -> JsonObject:
        self.queries.append(sql)
        return {"ran": sql, "rows": PARTS}

    async def list_parts(self) -> JsonObject:
        return {"parts": PARTS}

    async def compute(self, *, code: str, numbers: list[Json]) -> JsonObject:
        if self.python is None:
            raise ToolFailure(FailureCategory.SERVER_ERROR, "Nothing here runs Python.")
        return {"value": await self.python.run(code, {"numbers": numbers})}

    async def order(self, *, name: str) -> JsonObject:
        self.orders.append(name)
        return {"order_id": f"O-{name}-{len(self.orders)}"}

    async def send(self, *, text: str) -> JsonObject:
        self.mails.append(text)
        return {"sent": True}
