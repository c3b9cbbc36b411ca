from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from jinja2 import UndefinedError

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.slots import SlotSource
from orchestrator.domain.model import Domain
from orchestrator.domain.registry import Registry
from orchestrator.errors import Problem
from orchestrator.res.languages import load_base_templates
from orchestrator.res.steps.generate import TEMPLATE_FAILURES, list_found
from orchestrator.res.templates import Templates
from orchestrator.res.wording import list_facts, name_doing, show_slots
from orchestrator.types import Dact, Json, JsonObject, is_list, is_object
from parley.samples import list_samples
from parley.simulator import START

_DEEPEST = 6
"""Maximum nesting depth of sample values."""
_TEXTS = ("2026-11-27", "10:30", "EUR", "OSL", "ABC123", "2026-11-27T10:30:00+00:00", "sample")
"""Sample texts. A schema gets the first text that matches its pattern, or else the last. Dates get the first."""


class _Open(dict[str, Json]):
    """A sample of an object without declared properties. It has a value for every key."""

    def __missing__(self, name: str) -> Json:
        return _TEXTS[-1]


@dataclass(frozen=True, slots=True)
class Rendered:
    """The result of rendering templates. `mistakes`: errors in templates that fail. `hints`: undefined names."""

    mistakes: list[Problem]
    hints: list[str]


def render_templates(domain: Domain, with_policies: frozenset[str] = frozenset()) -> Rendered:
    """Render the templates for a domain's flows and their confirmations, using sample values.

    `with_policies`: flows to skip, because their policies can return more data. Plans are also skipped.
    """
    registry = Registry(domain.entities)
    templates = Templates(domain, registry, load_base_templates(domain.config.language.default))
    found = Rendered([], [])
    for name in sorted(domain.templates):
        dact, _, suffix = name.partition(".")
        flow_type = domain.flows.get(Dact(dact))
        is_known = flow_type is not None and dact not in with_policies and not flow_type.spec.recipe
        if flow_type is None or not is_known or suffix not in {"", "confirm"}:
            continue
        flow, data = _fill(flow_type, domain), _sample_data(flow_type, domain)
        values = _values_of(flow, data, domain, registry, is_offer=suffix == "confirm")
        try:
            templates.render(name, **values)
        except UndefinedError as error:
            found.hints.append(
                f"{_place(name, error)}: {error.message}; correct the name or declare the output"
            )
        except TEMPLATE_FAILURES as error:
            fix = "the reply would use the built-in template; test or convert the value"
            found.mistakes.append(Problem(_place(name, error), f"fails with sample values ({error}): {fix}"))
    return found


def _place(name: str, error: Exception) -> str:
    """Return the template's file name, with the line number if the traceback contains it."""
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == "<template>"), None)
    return f"templates/{name}.md.j2" + (f": line {line}" if line else "")


def _fill(flow_type: type[BaseFlow], domain: Domain) -> BaseFlow:
    flow = flow_type(START.timestamp())
    for name, slot in flow.spec.slots.items():
        samples = (one.value for one in list_samples(slot, domain, START.date()) if one.value is not None)
        flow.take(name, next(samples, None), SlotSource.USER)
    return flow


def _sample_data(flow_type: type[BaseFlow], domain: Domain) -> JsonObject:
    tools = [domain.tools[use.tool_id] for use in flow_type.spec.tools if use.tool_id in domain.tools]
    skill = domain.skills.get(flow_type.spec.dact)
    schemas = [tool.output_schema for tool in tools] + ([skill.result] if skill and skill.result else [])
    data: JsonObject = {}
    for schema in schemas:
        sample = sample_of(schema)
        data |= sample if is_object(sample) else {}
    return data


def _values_of(
    flow: BaseFlow, data: JsonObject, domain: Domain, registry: Registry, *, is_offer: bool
) -> dict[str, object]:
    """Return the variables that RES passes to a template. `is_offer`: True for a confirmation's template."""
    now = START.timestamp()
    own = {name: value for name, value in flow.values().items() if value is not None}
    slots = partial(show_slots, flow, registry, now)
    values = {"doing": partial(name_doing, flow), "slots": slots, "persona": domain.config.persona}
    if is_offer:
        shown = {**data, **own}
        return {**values, "shown": shown, "facts": partial(list_facts, flow, shown, registry, now)}
    return {
        **values,
        "flow": {"dact": flow.dact, "title": flow.title, "description": flow.spec.description},
        "values": partial(flow.values),
        "data": {**data, **{name: value for name, value in own.items() if name in data}},
        "outputs": {name: data.get(name, own.get(name)) for name in flow.spec.outputs},
        "facts": partial(list_facts, flow, data, registry, now),
        "found": partial(list_found, flow, data),
        "rows": None,
        "warning": None,
        "display": None,
        "now": now,
    }


def sample_of(schema: Json, depth: int = 0) -> Json:
    """Return a sample value for a JSON Schema. Sample objects have all declared properties."""
    if not is_object(schema) or depth > _DEEPEST:
        return "sample"
    for key in ("enum", "examples"):
        listed = schema.get(key)
        if is_list(listed) and listed:
            return listed[0]
    if "const" in schema:
        return schema["const"]
    for key in ("anyOf", "oneOf", "allOf"):
        listed = schema.get(key)
        if is_list(listed) and listed:
            return sample_of(listed[0], depth + 1)
    kinds = schema.get("type")
    kind = next((one for one in kinds if one != "null"), None) if is_list(kinds) else kinds
    return _sample_of_kind(kind, schema, depth)


def _sample_of_kind(kind: Json, schema: Mapping[str, Json], depth: int) -> Json:
    properties = schema.get("properties")
    if is_object(properties):
        return {name: sample_of(one, depth + 1) for name, one in properties.items()}
    if kind == "object":
        more = schema.get("additionalProperties")
        return {"sample": sample_of(more, depth + 1)} if is_object(more) else _Open()
    if kind == "array":
        return [sample_of(schema.get("items"), depth + 1)]
    if kind in {"integer", "number"}:
        return schema.get("minimum") or 2
    if kind == "boolean":
        return True
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        return next((text for text in _TEXTS if re.search(pattern, text)), _TEXTS[-1])
    return _TEXTS[0] if schema.get("format") == "date" else _TEXTS[-1]
