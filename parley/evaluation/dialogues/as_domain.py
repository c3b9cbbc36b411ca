"""Any data set of this schema as a domain: a flow and a tool for each intent; what changes something asks first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import yaml

from orchestrator.types import JsonObject
from parley.evaluation.dialogues.compile import compile_slot, dact_of, known_values, part_words, snake
from parley.evaluation.dialogues.dataset import Dialogue, SchemaIntent, Service
from parley.evaluation.dialogues.equivalence import find_equivalents

SERVICE_CLASS = "Results"
FIRST_CODE = 0x101
_SERVICES = '''"""The recorded results of the dialogues that this domain was made from."""

from __future__ import annotations

from pathlib import Path

from orchestrator import JsonObject, Service
from parley.evaluation.dialogues.dataset import read_dialogues, read_schema
from parley.evaluation.dialogues.recorded import Recorded

_FOLDER = Path(__file__).parent
_RECORDED = Recorded(read_schema(_FOLDER / "schema.json"), read_dialogues(_FOLDER / "dialogues.jsonl"))


class {name}(Service):
    """One method for each intent."""
{methods}'''
_METHOD = '''
    async def {tool}(self, **given: str) -> JsonObject:
        """{description}"""
        return _RECORDED.call({service!r}, {intent!r}, given)
'''
Spoken = Mapping[tuple[str, str], Mapping[str, set[str]]]
"""What people say, by service and slot, for each value that the services know."""


def write_domain(services: Mapping[str, Service], dialogues: Sequence[Dialogue], folder: Path) -> Path:
    """Write a domain's files into `folder`, beside copies of schema.json and dialogues.jsonl made by the caller."""
    folder.mkdir(parents=True, exist_ok=True)
    flows: JsonObject = {}
    tools: JsonObject = {}
    entities: JsonObject = {}
    methods: list[str] = []
    spoken = _spoken(dialogues)
    used = Counter(name for service in services.values() for name in service.slots)
    given = {
        dact_of(service.name, intent.name): (service, _outputs(intent))
        for service in services.values()
        for intent in service.intents.values()
    }
    for service in services.values():
        values = known_values(service, dialogues)
        # A name that two services have need not mean the same in both: only what changes something takes it over.
        own = {name for name in service.slots if used[name] == 1}
        for intent in service.intents.values():
            dact = dact_of(service.name, intent.name)
            code = f"{FIRST_CODE + len(flows):03X}"
            flows[dact] = _flow(service, intent, code, values, spoken, entities, own)
            for name, slot in flows[dact]["slots"].items():
                if same := find_equivalents(service, intent, name, given):
                    slot["same_as"] = same
            tools[dact] = _tool(service, intent)
            methods.append(
                _METHOD.format(
                    tool=dact,
                    description=intent.description.replace('"', "'").rstrip(".") + ".",
                    service=service.name,
                    intent=intent.name,
                )
            )
    ontology: JsonObject = {
        "intents": {"Read": "Find", "Transform": "Do"},
        "entities": entities,
        "flows": flows,
    }
    _write_yaml(folder / "ontology.yaml", ontology)
    _write_yaml(folder / "tools.yaml", {"tools": tools})
    _write_yaml(
        folder / "domain.yaml",
        {"description": "Uses " + "; ".join(one.description for one in services.values())},
    )
    source = _SERVICES.format(name=SERVICE_CLASS, methods="".join(methods))
    (folder / "services.py").write_text(source, encoding="utf-8")
    return folder


def _flow(
    service: Service,
    intent: SchemaIntent,
    dax: str,
    values: Mapping[str, Counter[str]],
    spoken: Spoken,
    entities: JsonObject,
    own: Container[str],
) -> JsonObject:
    words = part_words(intent.name).lower()
    return {
        "dax": dax,
        "intent": "Do" if intent.is_transactional else "Find",
        "description": intent.description,
        "examples": [intent.description or words, words],
        "slots": {
            name: _slot(service, intent, name, values[name], spoken, entities) for name in intent.slots
        },
        "inputs": [name for name in intent.slots if intent.is_transactional or name in own],
        "outputs": list(_outputs(intent)),
        "tools": [{"tool_id": str(dact_of(service.name, intent.name))}],
        "confirm": intent.is_transactional,
        "mode": "direct",
        "options": {"doing": f"the request to {words}", "done": f"done what you asked: {words}"},
    }


def _outputs(intent: SchemaIntent) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*intent.slots, *intent.result_slots)))


def _slot(
    service: Service,
    intent: SchemaIntent,
    name: str,
    values: Counter[str],
    spoken: Spoken,
    entities: JsonObject,
) -> JsonObject:
    compiled = compile_slot(service.slots[name], values)
    kind = "number" if compiled.type == "money" else compiled.type
    entry: JsonObject = {
        "type": kind,
        "priority": "required" if name in intent.required_slots else "optional",
        "description": compiled.description or name.replace("_", " "),
    }
    if compiled.values:
        entry["values"] = list(compiled.values)
    elif compiled.synonyms and spoken[service.name, name]:
        entity = f"{snake(service.name)}_{name}"
        known = spoken[service.name, name]
        entities[entity] = {"values": {value: sorted(said) for value, said in sorted(known.items())}}
        entry |= {"entity": entity, "open": True}
    if not compiled.values:
        entry["grounded"] = True
    default = intent.defaults.get(name)
    if default is not None and default != "dontcare":
        entry["default"] = default
    return entry


def _spoken(dialogues: Sequence[Dialogue]) -> Spoken:
    found: defaultdict[tuple[str, str], defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for frame in (frame for one in dialogues for turn in one.turns for frame in turn.frames):
        for act in frame.acts:
            for value, said in zip(act.canonical, act.values, strict=False):
                found[frame.service, act.slot][value] |= {said} - {value}
    return found


def _tool(service: Service, intent: SchemaIntent) -> JsonObject:
    found = [name for name in intent.result_slots if name not in intent.slots]
    chosen = [
        name
        for other in service.intents.values()
        if other.is_transactional and other is not intent
        for name in other.required_slots
        if name in found
    ]
    columns: JsonObject = {name: {"type": "string"} for name in intent.result_slots}
    entry: JsonObject = {
        "name": part_words(intent.name),
        "description": intent.description,
        "service": f"{SERVICE_CLASS}.{dact_of(service.name, intent.name)}",
        "input_schema": {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: {"type": ["string", "number"]} for name in intent.slots},
            "required": list(intent.required_slots),
        },
        "output_schema": {
            "type": "object",
            "properties": {
                "results": {"type": "array", "items": {"type": "object", "properties": columns}},
                "count": {"type": "integer"},
            },
            "required": ["results", "count"],
        },
        "idempotent": not intent.is_transactional,
        "effect": intent.is_transactional,
        "timeout_ms": 5000,
    }
    if not intent.is_transactional and found:
        key = (chosen or found)[0]
        entry["rows"] = {
            "output": "results",
            "key": key,
            "fields": {name: {} for name in intent.result_slots if name != key},
        }
    return entry


def _write_yaml(path: Path, content: JsonObject) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110), encoding="utf-8")
