"""Records as JSON and back: their fields by name, enumerations by value.

What a record means, and how its form is upgraded, is the business of `state` and `upgrade`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter

from orchestrator.types import JsonObject

Record = TypeVar("Record")


@cache
def _adapter(kind: type[Record]) -> TypeAdapter[Record]:
    return TypeAdapter(kind)


def dump(record: Any, *, brief: bool = False, without: Mapping[str, Any] | None = None) -> JsonObject:
    """Write a record as JSON that shares nothing with it. `brief`: what is as by default is left out."""
    adapter: TypeAdapter[Any] = _adapter(record.__class__)
    return adapter.dump_python(record, mode="json", exclude_defaults=brief, exclude=dict(without or {}))


def load(kind: type[Record], body: JsonObject) -> Record:
    """Make a record of its JSON, and share nothing with that; keys that it does not have are left aside."""
    return _adapter(kind).validate_json(orjson.dumps(body))
