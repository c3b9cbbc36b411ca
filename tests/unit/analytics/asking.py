"""Requests of a list, understood by NLU as in a session that has just done something."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from domains.analytics.catalogue import VALUES, tables_with
from domains.analytics.statements.conditions import parse_condition
from domains.analytics.store.workspace import Sheet, Workspace
from orchestrator.errors import ToolFailure
from orchestrator.nlu.nlu_context import NluContext, PastFlow
from orchestrator.nlu.validate import Validation
from orchestrator.types import Dact
from tests.trained import trained

TODAY = date(2026, 11, 20)
_DEFAULTS = {"direction": "ascending"}
_GUESSED = {"aggregate": {"direction", "function"}, "chart": {"function", "kind"}}


@dataclass(frozen=True)
class Request:
    """`after`: the flow that was carried out before, with its values."""

    say: str
    flow: str
    slots: Mapping[str, Any]
    after: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_requests(name: str) -> list[Request]:
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [Request(**entry) for entry in yaml.load(text, yaml.CSafeLoader)]


def understood(request: Request) -> tuple[str, dict[str, Any]]:
    """The flow (or the kind of message, if it is no task) and the values that a request is taken for."""
    loaded, system1 = trained("analytics")
    specs = {flow.spec.dact: flow.spec for flow in loaded.domain.flows.values()}
    past = tuple(PastFlow(specs[Dact(dact)], values) for dact, values in request.after.items())
    context = NluContext(TODAY, completed=past)
    validation = Validation(system1.flows, loaded.domain.slot_types, system1.extractor)
    found = validation.validate(system1.think(request.say, context).understanding, context)[0]
    flow = found.flows[0].dact if found.kind == "task" else str(found.target or found.kind)
    values = {name: m.value if m.invalid is None else m.text for name, m in found.slots.items()}
    if found.kind == "correction" and past and flow == past[0].spec.dact:
        values = {**past[0].values, **values}
    return flow, values


def faults(request: Request) -> list[str]:
    """What is misread, in words."""
    flow, slots = understood(request)
    wanted, found = _plain(request.flow, request.slots, request), _plain(flow, slots, request)
    if flow != request.flow:
        return [f"flow {flow} {found}, not {request.flow}"]
    names = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
    loose = _GUESSED.get(flow, set()) - wanted.keys()
    return [f"{name} {found.get(name)!r}, not {wanted.get(name)!r}" for name in names if name not in loose]


def _plain(flow: str, slots: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """Slots so that two ways of saying the same are equal; what policies add is added."""
    plain = {n: v for n, v in slots.items() if v is not None and _DEFAULTS.get(n) != v}
    if flow == "aggregate" and "function" not in plain:
        plain["function"] = "average" if "column" in plain else "count"
    plain |= _plain_table(plain, request) if flow not in {"list_tables", "show_history"} else {}
    if isinstance(plain.get("question"), dict):
        asked = {n: v for n, v in plain["question"].items() if n != "table" and v is not None}
        plain["question"] = _plain_condition({**asked, "table": plain.get("table")})
        plain["question"].pop("table")
    if isinstance(plain.get("new_name"), str):
        plain["new_name"] = plain["new_name"].replace("_", " ")
    return {name: str(v) if name == "values" else v for name, v in _plain_condition(plain).items()}


def _plain_table(slots: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """The table that the policies settle for, where none is said."""
    if "table" in slots:
        return {}
    names = [n for k in ("column", "by", "order", "value", "first") if (n := slots.get(k)) is not None]
    fitting = tables_with([str(name) for name in [*names, *(slots.get("columns") or [])]]) if names else []
    last = next((v.get("table") for v in request.after.values()), None)
    table = last if last in fitting or not names else fitting[0] if len(fitting) == 1 else None
    return {"table": table} if table else {}


def _plain_condition(slots: dict[str, Any]) -> dict[str, Any]:
    sheet = _sheet(slots.get("table"))
    said = [str(slots["condition"])] if slots.get("condition") else []
    for value in [slots.get("value")] if slots.get("value") else []:
        place = next((p for p, vs in VALUES.items() if value in vs), None)
        if place is None or sheet is None or not place.startswith(f"{sheet.name}."):
            return slots
        said.append(f"{place.partition('.')[2]} is {value}")
    if not said or sheet is None:
        return slots
    try:
        clauses = [str(parse_condition(one, sheet)).casefold() for one in said]
    except ToolFailure as failure:
        clauses = [str(failure)]
    return {name: v for name, v in slots.items() if name not in {"condition", "value"}} | {"where": clauses}


def _sheet(name: object) -> Sheet | None:
    sheets = Workspace(None, "", []).sheets  # type: ignore[arg-type]
    return sheets.get(str(name))
