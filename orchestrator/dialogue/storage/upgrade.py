"""From older forms of the stored state to the present one, a version at a time (ST-1).

A step takes the document as that version wrote it and returns the next version's; none is ever
changed once released.
"""

from collections.abc import Callable, Mapping

from orchestrator.dialogue.records import LabelSource, add_source
from orchestrator.dialogue.storage.serialization import dump, load
from orchestrator.errors import SchemaTooNew
from orchestrator.types import Json, JsonObject

SCHEMA_VERSION = 2

_STATUSES_0: Mapping[str, tuple[str, str | None]] = {
    "active": ("Active", None),
    "paused": ("Pending", "interrupted"),
    "completed": ("Completed", None),
    "cancelled": ("Invalid", "cancelled"),
    "abandoned": ("Invalid", "abandoned"),
    "error": ("Invalid", "failed"),
}


def _flow_from_0(body: JsonObject, place: int) -> JsonObject:
    state, reason = _STATUSES_0[body["flow_state"]]
    flow: JsonObject = {
        "flow_id": f"flow_{place}_{body['flow_name']}",
        "dact": body["flow_name"],
        "state": state,
        "started_at": body["started_at"],
        "slots": {
            name: {"value": value, "source": "user"}
            for name, value in body["collected_slots"].items()
            if value is not None
        },
    }
    renamed = {
        "reason": reason,
        "outputs": body.get("outputs"),
        "interrupted_at": body.get("paused_at"),
        "interruption": body.get("context"),
        "completed_at": body.get("completed_at"),
    }
    return flow | {name: value for name, value in renamed.items() if value not in (None, {})}


def _question_from_0(body: JsonObject, flows: list[Json]) -> JsonObject:
    slot = body.get("waiting_for_slot")
    if slot is None or not flows:
        return {"open": [], "counts": {}}
    entry: JsonObject = {"level": "specific", "flow_id": flows[-1]["flow_id"], "slot": slot, "asked": 1}
    return {"open": [entry], "counts": {"specific": 1}}


def upgrade_from_0(body: JsonObject) -> JsonObject:
    """Version 0 had six states, plain slot values, and the awaited slot in place of a question."""
    archived = body.get("metadata", {}).get("completed_flows", [])
    stacked = [_flow_from_0(flow, len(archived) + place) for place, flow in enumerate(body["flow_stack"])]
    return {
        "schema_version": 1,
        "session": body["session_id"],
        "turn": body.get("turn_count", 0),
        "predicted_intent": None,
        "predicted_flow": None,
        "candidates": [],
        "stack": stacked,
        "departed": [],
        "flags": {},
        "ambiguity": _question_from_0(body, stacked),
        "digression": {"depth": body.get("digression_depth", 0), "last": body.get("last_digression_type")},
        "approvals": [],
        "messages": [
            {"role": "agent" if m["role"] == "assistant" else m["role"], "text": m["content"]}
            for m in body.get("messages", [])
        ],
        "trace": body.get("trace", []),
        "completed": [
            _flow_from_0(flow, place)
            for place, flow in enumerate(archived)
            if flow["flow_state"] == "completed"
        ],
        "effects": [],
    }


def upgrade_from_1(body: JsonObject) -> JsonObject:
    """Version 1 knew no labels, no place of an effect in the ledger, no cause of an approval."""
    return body | {"schema_version": 2, "labels": []}


UPGRADES: Mapping[int, Callable[[JsonObject], JsonObject]] = {0: upgrade_from_0, 1: upgrade_from_1}


def upgrade(body: JsonObject) -> JsonObject:
    """The document in the present form. Raises SchemaTooNew for one of a later release."""
    version = body.get("schema_version", 0)
    if version > SCHEMA_VERSION:
        raise SchemaTooNew(version, SCHEMA_VERSION)
    for step in range(version, SCHEMA_VERSION):
        body = UPGRADES[step](body)
    return body


def keep_labels(wanted: JsonObject, present: JsonObject) -> JsonObject:
    """Give an earlier stored state the labels of the present one: what was taken in is still in the scratchpad."""
    labels = [load(LabelSource, source) for source in wanted.get("labels", ())]
    for source in present.get("labels", ()):
        add_source(labels, load(LabelSource, source))
    return {**wanted, "labels": [dump(source) for source in labels]} if labels else wanted
