"""The tools by which a domain lets users say what is to be remembered of them. Public to domains.

A domain imports `Memory` in its services.py and names its methods in its manifest.
"""

from __future__ import annotations

from orchestrator.domain.services import FailureCategory, Service, ToolCall, ToolFailure
from orchestrator.domain.services import UserMemory as Port
from orchestrator.types import JsonObject

EVERYTHING = "everything"


class Memory(Service):
    """Remembers, tells and forgets on the user's request."""

    async def remember(self, *, preference: str, call: ToolCall) -> JsonObject:
        return await self._port.remember(call, preference)

    async def recall(self, *, call: ToolCall, about: str = "") -> JsonObject:
        return {"known": await self._port.recall(call, about)}

    async def forget(self, *, call: ToolCall, about: str = "", scope: str = "") -> JsonObject:
        forgotten = await self._port.forget(call, about, everything=scope == EVERYTHING)
        return {"forgotten": forgotten}

    @property
    def _port(self) -> Port:
        if self.memory is None:
            raise ToolFailure(FailureCategory.SERVER_ERROR, "Nothing can be remembered here.")
        return self.memory
