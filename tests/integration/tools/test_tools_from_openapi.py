"""`parley domain tools-from`: the manifest of a real service is loaded and called."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
import yaml
from fastapi import FastAPI, HTTPException
from fastapi import Path as InPath
from pydantic import BaseModel

from orchestrator.adapters.domains.folder import check_domain, load_domain
from orchestrator.adapters.tools.transports import Transports
from orchestrator.errors import InvalidInput, ToolFailure
from orchestrator.types import ToolId
from parley.main import run
from parley.openapi_tools import make_tools, read_document
from tests.integration.tools.factories import tool_call
from tests.processes.http import serve

service = FastAPI()


class Appointment(BaseModel):
    day: str
    time: str
    treatment: str | None = None


class Booked(Appointment):
    code: str


@service.get("/users/{user_id}/appointments", operation_id="listAppointments")
def list_appointments(user_id: str, limit: int = 10) -> list[Booked]:
    return [Booked(code="D1", day="monday", time=user_id)][:limit]


@service.post(
    "/users/{user_id}/appointments",
    operation_id="appointment_book",
    status_code=201,
    responses={409: {"description": "That time is taken."}},
)
def book(user_id: str, wanted: Appointment) -> Booked:
    """Book a time."""
    if wanted.time == "10:30":
        raise HTTPException(409, "secret detail")
    return Booked(code=f"D-{user_id}", **wanted.model_dump())


@service.delete("/appointments/{appointmentCode}", operation_id="cancel")
def cancel(appointment_code: Annotated[str, InPath(alias="appointmentCode")]) -> dict[str, str]:
    return {"gone": appointment_code}


ONTOLOGY = """
flows:
  book_appointment:
    dax: "02B"
    intent: Transform
    description: Book an appointment
    examples: ["book an appointment"]
    slots:
      day: {type: free_text, priority: required, prompt: "What day?"}
      time: {type: free_text, priority: required, prompt: "What time?"}
    tools: [{tool_id: appointment_book}]
    mode: direct
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve(service) as url:
        yield url


async def test_the_tools_of_a_service_are_loaded_and_called(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "clinic"
    folder.mkdir()
    (folder / "ontology.yaml").write_text(ONTOLOGY)
    (folder / "domain.yaml").write_text("network: {private_networks: [127.0.0.0/8]}\n")
    manifest = folder / "tools.yaml"
    made = await asyncio.to_thread(
        run, ["domain", "tools-from", f"{url}/openapi.json", "--into", str(manifest)]
    )
    assert made == 0
    assert check_domain(folder) == []

    domain = load_domain(folder).domain
    assert set(domain.tools) == {"list_appointments", "appointment_book", "cancel_delete"}
    assert [tool.idempotent for tool in domain.tools.values()] == [True, False, False]
    transports = Transports(domain)

    async def call(tool_id: str, **arguments: object) -> object:
        return await transports.send(domain.tools[ToolId(tool_id)], dict(arguments), tool_call())

    listed = {"code": "D1", "day": "monday", "time": "ada", "treatment": None}
    assert await call("list_appointments") == {"items": [listed]}
    booked = await call("appointment_book", day="monday", time="11:00")
    assert booked == {"code": "D-ada", "day": "monday", "time": "11:00", "treatment": None}
    assert await call("cancel_delete", appointment_code="D1") == {"gone": "D1"}
    with pytest.raises(ToolFailure, match=r"^That time is taken\.$"):
        await call("appointment_book", day="monday", time="10:30")
    await transports.close()


def test_the_caller_is_no_input(url: str) -> None:
    source = f"{url}/openapi.json"
    booking = make_tools(read_document(source), source)["appointment_book"]
    assert list(booking["input_schema"]["properties"]) == ["day", "time", "treatment"]
    assert booking["input_schema"]["required"] == ["day", "time"]
    assert booking["http"]["errors"] == {409: "That time is taken."}
    assert "{user_id}" in booking["http"]["url"]


def test_what_is_not_openapi_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(yaml.safe_dump({"tools": {}}))
    with pytest.raises(InvalidInput, match="`paths` is missing"):
        read_document(str(file))
    file.write_text(yaml.safe_dump({"paths": {}}))
    with pytest.raises(InvalidInput, match="specify a server URL"):
        make_tools(read_document(str(file)), str(file))
