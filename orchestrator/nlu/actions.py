"""Interpret user actions such as clicks and forms, without a model (NL-6).

By default, the `target` of an interpretation is the payload's flow ID or, without one, its flow name;
otherwise, None.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.dialogue.understanding import (
    Digression,
    FlowScore,
    Mention,
    MessageKind,
    PlanAction,
    PlanChange,
    Source,
    Understanding,
)
from orchestrator.errors import InvalidInput
from orchestrator.nlu.nlu_context import NluContext
from orchestrator.types import Dact, Json, JsonObject

MOST_FIELDS = 64


@dataclass(frozen=True, slots=True)
class Action:
    name: str
    payload: JsonObject


_Reaction = Callable[[Action, NluContext, Mapping[Dact, FlowSpec]], Understanding]


def react(action: Action, context: NluContext, flows: Mapping[Dact, FlowSpec]) -> Understanding:
    """Interpret an action.

    Raises InvalidInput if the name is unknown or the payload is invalid.
    """
    reaction = _REACTIONS.get(action.name)
    if reaction is None:
        known = ", ".join(sorted(_REACTIONS))
        raise InvalidInput(
            f"Unknown action {action.name[:60]!r}; available actions: {known}.", field="action.name"
        )
    return reaction(action, context, flows)


def _say(
    kind: MessageKind,
    action: Action,
    *,
    intent: str | None = None,
    flows: tuple[FlowScore, ...] = (),
    slots: Mapping[str, Mention] | None = None,
    digression: Digression | None = None,
) -> Understanding:
    target = _text(action, "flow_id") or _text(action, "dact")
    text = _text(action, "label") or action.name
    return Understanding(kind, Source.ACTION, text, intent, flows, slots or {}, target, digression)


def _confirm(action: Action, context: NluContext, _flows: Mapping[Dact, FlowSpec]) -> Understanding:
    return _say(MessageKind.CONFIRMATION, action, slots=_one_slot(action), intent=context.intent)


def _fill_slot(action: Action, context: NluContext, _flows: Mapping[Dact, FlowSpec]) -> Understanding:
    slots = _one_slot(action)
    if not slots:
        raise InvalidInput("The action needs a slot and its value.", field="action.payload")
    return _fill(slots, action, context)


def _select_option(action: Action, context: NluContext, flows: Mapping[Dact, FlowSpec]) -> Understanding:
    """Choose an option of the open question by `index`, or fill a slot with the payload's `value`.

    Default slot: the slot that the question asks for.
    """
    index = action.payload.get("index")
    if isinstance(index, int) and not isinstance(index, bool):
        if not 0 <= index < len(context.question.options):
            raise InvalidInput("No option has this index.", field="action.payload.index")
        option = context.question.options[index]
        return react(
            Action(option.action_name, option.payload | {"label": str(option.label)}), context, flows
        )
    value = action.payload.get("value")
    slot = _text(action, "slot") or context.question.slot
    if slot is None or value is None:
        raise InvalidInput("No open question matches this option.", field="action.payload")
    return _fill({slot: Mention(value, str(value))}, action, context)


def _fill_form(action: Action, context: NluContext, flows: Mapping[Dact, FlowSpec]) -> Understanding:
    """Fill several slots in the flow that the payload's `dact` names. Default: the active flow."""
    slots = _values(action, "values")
    if not slots:
        raise InvalidInput(
            "The action needs `values`, an object that maps slots to values.", field="action.payload.values"
        )
    if _text(action, "dact"):
        return _choose_flow(action, context, flows, slots)
    return _fill(slots, action, context)


def _fill(slots: Mapping[str, Mention], action: Action, context: NluContext) -> Understanding:
    changes = any(name in context.values and context.values[name] != m.value for name, m in slots.items())
    kind = MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
    return _say(kind, action, slots=slots, intent=context.intent)


def _change_slot(action: Action, context: NluContext, _flows: Mapping[Dact, FlowSpec]) -> Understanding:
    """Replace a slot's value. If the payload has no value, empty the slot so that Parley asks for it."""
    slot = _text(action, "slot")
    if slot is None:
        raise InvalidInput("The action needs the name of a slot.", field="action.payload.slot")
    value = action.payload.get("value")
    slots = {slot: Mention(value, "" if value is None else str(value))}
    return _say(MessageKind.CORRECTION, action, slots=slots, intent=context.intent)


def _choose_flow(
    action: Action,
    _context: NluContext,
    flows: Mapping[Dact, FlowSpec],
    slots: Mapping[str, Mention] | None = None,
) -> Understanding:
    dact = Dact(_text(action, "dact") or "")
    if dact not in flows:
        raise InvalidInput(f"Unknown flow {dact[:60]!r}.", field="action.payload.dact")
    given = slots or _values(action, "slots")
    scores = (FlowScore(dact, 1.0),)
    return _say(MessageKind.TASK, action, intent=flows[dact].intent, flows=scores, slots=given)


def _cancel_flow(action: Action, _context: NluContext, flows: Mapping[Dact, FlowSpec]) -> Understanding:
    """Cancel a flow, and start the flow that the payload's `then` names, if that flow exists (FS-12)."""
    then = Dact(_text(action, "then") or "")
    scores = (FlowScore(then, 1.0),) if then in flows else ()
    return _say(MessageKind.CANCELLATION, action, flows=scores, slots=_values(action, "slots"))


def _decide_effect(action: Action, _context: NluContext, _flows: Mapping[Dact, FlowSpec]) -> Understanding:
    """Interpret a decision about earlier side effects. The action's name becomes the `target` (IR-4)."""
    return replace(_say(MessageKind.CORRECTION, action), target=action.name)


def _change_plan(action: Action, _context: NluContext, _flows: Mapping[Dact, FlowSpec]) -> Understanding:
    other = _text(action, "other")
    wanted = PlanAction.BEFORE if other is not None else _PLAN_ACTIONS[action.name]
    change = PlanChange(wanted, _text(action, "step"), other)
    return replace(_say(MessageKind.PLAN_CHANGE, action), plan_change=change)


_PLAN_ACTIONS = {"skip_step": PlanAction.SKIP, "move_step": PlanAction.FIRST}

_REACTIONS: Mapping[str, _Reaction] = {
    "skip_step": _change_plan,
    "move_step": _change_plan,
    "keep_effect": _decide_effect,
    "repeat_effect": _decide_effect,
    "compensate_effect": _decide_effect,
    "confirm": _confirm,
    "approve": _confirm,
    "deny": lambda action, context, _flows: _say(MessageKind.DENIAL, action, intent=context.intent),
    "fill_slot": _fill_slot,
    "select_option": _select_option,
    "fill_form": _fill_form,
    "change_slot": _change_slot,
    "choose_flow": _choose_flow,
    "start_flow": _choose_flow,
    "cancel_flow": _cancel_flow,
    "resume_flow": lambda action, _context, _flows: _say(MessageKind.RESUMPTION, action),
    "help": lambda action, _context, _flows: _say(MessageKind.DIGRESSION, action, digression=Digression.HELP),
    "person": lambda action, _context, _flows: _say(
        MessageKind.DIGRESSION, action, digression=Digression.PERSON
    ),
    "status": lambda action, _context, _flows: _say(
        MessageKind.DIGRESSION, action, digression=Digression.STATUS
    ),
}


def _text(action: Action, name: str) -> str | None:
    value = action.payload.get(name)
    return value if isinstance(value, str) and value else None


def _one_slot(action: Action) -> dict[str, Mention]:
    slot, value = _text(action, "slot"), action.payload.get("value")
    if slot is None or value is None:
        return {}
    return {slot: Mention(value, _text(action, "label") or str(value))}


def _values(action: Action, name: str) -> dict[str, Mention]:
    """Return the non-null slot values in the payload's object `name`.

    Return an empty dictionary if it isn't an object or has more than `MOST_FIELDS` members.
    """
    values: Json = action.payload.get(name)
    if not isinstance(values, dict):
        return {}
    fields = cast("JsonObject", values)
    if len(fields) > MOST_FIELDS:
        return {}
    return {slot: Mention(value, str(value)) for slot, value in fields.items() if value is not None}
