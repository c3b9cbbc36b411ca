"""Small domain folders on disk, complete or with mistakes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

ONTOLOGY = """\
entities:
  airport: {values: {OSL: [Oslo], MAD: [Madrid]}}
flows:
  search_flights:
    dax: "001"
    intent: Read
    outputs: [flight_id]
  book_flight:
    dax: "02B"
    intent: Transform
    description: Book a flight the user has chosen
    examples: ["book a flight from {origin} to {destination}", "I want to fly to {destination} on {date}"]
    edge_flows: [search_flights]
    inputs: [flight_id]
    outputs: [booking_ref]
    slots:
      origin:      {type: source, entity: airport, priority: required, prompt: "Where would you like to fly from?"}
      destination: {type: target, entity: airport, priority: required, prompt: "Where would you like to fly to?"}
      date:        {type: date, priority: required, prompt: "What day?"}
      cabin:       {type: category, values: [economy, business], priority: optional, default: economy}
    tools:
      - {tool_id: flight_book, slot_mapping: {from: origin, to: destination, day: date, cabin: cabin}}
    confirm: true            # a candidate summary is confirmed before a non-idempotent tool runs
    mode: auto               # direct | skill | auto
    reflect: false
"""
"""The example of the interface description, unchanged, with the entities that it uses."""

TOOLS = """\
tools:
  flight_book:
    service: Flights.book
    input_schema:
      type: object
      required: [from, to, day]
      properties: {from: {type: string}, to: {type: string}, day: {type: string}, cabin: {type: string}}
    output_schema: {type: object}
"""

SERVICES = """\
from orchestrator.domain.services import Service


class Flights(Service):
    async def book(self, **inputs):
        return inputs
"""


def write_domain(folder: Path, files: Mapping[str, str | bytes] | None = None) -> Path:
    """Write a working domain and return its folder. `files` are added, or replace files with the same name."""
    whole: dict[str, str | bytes] = {"ontology.yaml": ONTOLOGY, "tools.yaml": TOOLS, "services.py": SERVICES}
    for name, content in (whole | dict(files or {})).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def edit(text: str, *changes: tuple[str, str]) -> str:
    """Replace the first part of each pair, which must be in the text, with the second."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text
