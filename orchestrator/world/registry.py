"""The data registry: a domain's valid entities, ready to be looked up and shown (AG-3).

Made once per domain; finding entities in a user's words is NLU's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.dialogue.json_values import is_list
from orchestrator.domain.model import Entity, EntityValue
from orchestrator.types import Json


class Registry:
    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._values = {
            name: {value.canonical: value for value in entity.values} for name, entity in entities.items()
        }
        self.tables = {
            value.canonical: tuple(str(column) for column in value.metadata["columns"])
            for entity in entities.values()
            for value in entity.values
            if is_list(value.metadata.get("columns"))
        }
        """Entities with columns: what code may name (PX-10)."""

    def find(self, entity: str, canonical: Json) -> EntityValue | None:
        if not isinstance(canonical, str):
            return None
        return self._values.get(entity, {}).get(canonical)

    def name(self, entity: str | None, canonical: Json) -> str:
        """The name people know a value by; the value itself when it is not in the registry."""
        known = self.find(entity, canonical) if entity else None
        return known.name if known else str(canonical)
