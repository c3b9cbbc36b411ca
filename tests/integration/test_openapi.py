"""The OpenAPI document matches the gateway: every answer is described, none is a server error.

Schemathesis creates requests from the document and runs all of its checks against real stores.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gateway.app import create_app
from gateway.wiring import open_dependencies
from orchestrator.ports.runs.records import NewRun
from orchestrator.settings import Settings
from orchestrator.turns.lease import FrameRecord
from orchestrator.types import DEFAULT_TENANT
from tests.integration.gateway import House, open_house
from tests.integration.openapi_hooks import KNOWN_NAME

ROOT = Path(__file__).resolve().parents[2]

# A new session has no plan and no earlier state, as the document says.
NOT_THERE_YET = """
[[operations]]
include-operation-id = "{name}"
checks.ensure_resource_availability.enabled = false
"""
SHORT = ("--phases", "examples,fuzzing", "-n", "1")
LONG = ("-n", "8")
AT_LEAST, AT_LEAST_LONG = 60, 2_000  # requests that are made
MADE_WITHIN_S = 60
"""Timeout for the document on a busy machine. The default is ten seconds."""


@cache
def operations() -> list[dict[str, Any]]:
    document = create_app(lambda: open_dependencies(Settings())).openapi()
    return [operation for methods in document["paths"].values() for operation in methods.values()]


def test_operations_have_stable_names_and_are_described() -> None:
    named = operations()
    names = [operation["operationId"] for operation in named]

    assert len(names) == len(set(names))
    for operation in named:
        assert operation["operationId"].isidentifier()
        assert operation.get("description"), operation["operationId"]
        assert operation["tags"], operation["operationId"]


def test_every_answer_has_a_shape_and_every_error_is_a_problem() -> None:
    """RT-23"""
    for operation in operations():
        for status, response in operation["responses"].items():
            if status == "204":
                continue
            (media_type,) = response["content"]
            if status >= "400":
                assert media_type == "application/problem+json", operation["operationId"]
            else:
                schema = response["content"][media_type]["schema"]
                assert schema != {}, operation["operationId"]
                is_file = media_type in {"text/event-stream", "application/octet-stream"}
                assert "$ref" in str(schema) or is_file, operation["operationId"]


def named_as_perhaps_missing() -> list[str]:
    """Return the operations that, according to the document, need more than an existing session."""
    return [
        operation["operationId"]
        for operation in operations()
        if "no such session, or" in operation["responses"].get("404", {}).get("description", "")
    ]


@pytest.mark.parametrize(
    ("options", "at_least"),
    [
        (SHORT, AT_LEAST),
        pytest.param(LONG, AT_LEAST_LONG, marks=[pytest.mark.slow, pytest.mark.timeout(1200)]),
    ],
)
async def test_requests_of_all_kinds_are_answered_as_described(
    database_url: str, redis_url: str, tmp_path: Path, options: tuple[str, ...], at_least: int
) -> None:
    assert await _examine(database_url, redis_url, tmp_path, options) >= at_least


async def _examine(database_url: str, redis_url: str, folder: Path, options: tuple[str, ...]) -> int:
    """Return the number of Schemathesis cases. Fail with its report if it found problems."""
    settings = folder / "schemathesis.toml"
    settings.write_text("\n".join(NOT_THERE_YET.format(name=name) for name in named_as_perhaps_missing()))
    async with open_house(database_url, redis_url, longest_response_s=0.2) as house:
        known = json.dumps(await _make_things(house))
        document = folder / "openapi.json"
        document.write_bytes((await house.http.get("/openapi.json", timeout=MADE_WITHIN_S)).content)
        hooks = {
            "SCHEMATHESIS_HOOKS": "tests.integration.openapi_hooks",
            "PYTHONPATH": str(ROOT),
            KNOWN_NAME: known,
        }
        command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings), "run"]
        process = await asyncio.create_subprocess_exec(
            *(*command, str(document), "--url", house.url, *options),
            *("--generation-deterministic", "--request-timeout", "20", "--no-color"),
            env={**os.environ, **hooks},
            cwd=folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
    report = output.decode()
    assert process.returncode == 0, report[-8000:]
    generated = re.search(r"(\d+) generated", report)
    assert generated is not None, report[-8000:]
    return int(generated[1])


async def _make_things(house: House) -> dict[str, str]:
    """Create a session with an answered turn, a frame with rows, and a run. Return identifiers by parameter."""
    session = await house.session()
    turn_id = await house.submit(session)
    frame = {
        "frame_id": "frame_1",
        "flow_id": "flow_1",
        "data": [{"city": "Oslo"}, {"city": "Madrid"}],
        "display_type": "table",
        "display_name": "Cities",
        "source": [],
        "table_id": None,
        "rows": 2,
    }
    await house.answer(session, frames=(FrameRecord("frame_1", "flow_1", frame),))
    started = await house.ports.stores.runs.start(
        (NewRun(flow="summarize_session", tenant_id=DEFAULT_TENANT, session_id=session),)
    )
    return {
        "session_id": session,
        "turn_id": turn_id,
        "frame_id": "frame_1",
        "number": "1",
        "run_id": started.runs["summarize_session"],
    }
