"""The data registry: the valid entities of a domain and a session, for lookup and display (AG-3).

The session's entities come from its flows' outputs. NLU, not this module, finds entities in messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.domain.model import Entity, EntityValue, columns_of
from orchestrator.types import Json, JsonObject, is_object

MOST_OF_SESSION = 200
"""Maximum number of values per entity and session."""

SessionEntities = dict[str, dict[str, JsonObject]]
"""Metadata by entity and canonical value."""


class Registry:
    """Entity values of a domain and a session. `own`: the session's values, which `learn` replaces."""

    def __init__(self, entities: Mapping[str, Entity], own: SessionEntities | None = None) -> None:
        self._values = {name: entity.by_canonical for name, entity in entities.items()}
        self._sources = {
            name: entity.learned_from for name, entity in entities.items() if entity.learned_from
        }
        self._tables = {name: columns for one in entities.values() for name, columns in one.tables.items()}
        self.own = {} if own is None else own

    def for_session(self, own: SessionEntities) -> Registry:
        """Return a registry with the same domain values and a session's values."""
        registry = copy(self)
        registry.own = own
        return registry

    def learn(self, flow: BaseFlow) -> None:
        """Replace the session's entity values with those in a completed flow's outputs.

        Remove these outputs from the flow, so that the values are stored only once.
        """
        for output in dict.fromkeys(self._sources.values()):
            told = flow.take_back(output)
            if not is_object(told):
                continue
            for entity, source in self._sources.items():
                values = told.get(entity)
                if source == output and is_object(values):
                    named = list(values.items())[:MOST_OF_SESSION]
                    self.own[entity] = {name: body if is_object(body) else {} for name, body in named}

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """Return the columns by table name, for all tables that model-written code can use (PX-10)."""
        found = dict(self._tables)
        for values in self.own.values():
            for name, metadata in values.items():
                if (columns := columns_of(metadata)) is not None:
                    found[name] = columns
        return found

    def find(self, entity: str, canonical: Json) -> EntityValue | None:
        if not isinstance(canonical, str):
            return None
        own = self.own.get(entity, {}).get(canonical)
        known = self._values.get(entity, {}).get(canonical)
        return known if own is None or known is not None else EntityValue(canonical, canonical, (), own)

    def name(self, entity: str | None, canonical: Json) -> str:
        """Return a value's display name, or the value itself if the registry lacks it."""
        known = self.find(entity, canonical) if entity else None
        return known.name if known else str(canonical)
