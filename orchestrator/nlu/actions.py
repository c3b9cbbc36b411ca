"""Interpret user actions such as clicks and forms, without a model (NL-6).

By default, the `target` of an interpretation is the payload's flow ID or, without one, its flow name;
otherwise, None.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

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
from orchestrator.types import Dact, Json, JsonObject, is_object

MOST_FIELDS = 64


@dataclass(frozen=True, slots=True)
class Action:
    name: str
    payload: JsonObject


def react(action: Action, context: NluContext, flows: Mapping[Dact, FlowSpec]) -> Understanding:
    """Interpret an action.

    Raises InvalidInput if the name is unknown or the payload is invalid.
    """
    interpret = _REACTIONS.get(action.name)
    if interpret is None:
        known = ", ".join(sorted(_REACTIONS))
        raise InvalidInput(
            f"Unknown action {action.name[:60]!r}; available actions: {known}.", field="action.name"
        )
    return interpret(_Reaction(action, context, flows))


@dataclass(frozen=True, slots=True)
class _Reaction:
    """The interpretation of one action."""

    action: Action
    context: NluContext
    flows: Mapping[Dact, FlowSpec]

    def _say(
        self,
        kind: MessageKind,
        *,
        intent: str | None = None,
        flows: tuple[FlowScore, ...] = (),
        slots: Mapping[str, Mention] | None = None,
        digression: Digression | None = None,
    ) -> Understanding:
        target = self._text("flow_id") or self._text("dact")
        text = self._text("label") or self.action.name
        return Understanding(kind, Source.ACTION, text, intent, flows, slots or {}, target, digression)

    def confirm(self) -> Understanding:
        return self._say(MessageKind.CONFIRMATION, slots=self._one_slot(), intent=self.context.intent)

    def deny(self) -> Understanding:
        return self._say(MessageKind.DENIAL, intent=self.context.intent)

    def resume_flow(self) -> Understanding:
        return self._say(MessageKind.RESUMPTION)

    def digress(self) -> Understanding:
        return self._say(MessageKind.DIGRESSION, digression=Digression(self.action.name))

    def fill_slot(self) -> Understanding:
        slots = self._one_slot()
        if not slots:
            raise InvalidInput("The action needs a slot and its value.", field="action.payload")
        return self._fill(slots)

    def select_option(self) -> Understanding:
        """Choose an option of the open question by `index`, or fill a slot with the payload's `value`.

        Default slot: the slot that the question asks for.
        """
        index, options = self.action.payload.get("index"), self.context.question.options
        if isinstance(index, int) and not isinstance(index, bool):
            if not 0 <= index < len(options):
                raise InvalidInput("No option has this index.", field="action.payload.index")
            option = options[index]
            chosen = Action(option.action_name, option.payload | {"label": str(option.label)})
            return react(chosen, self.context, self.flows)
        value = self.action.payload.get("value")
        slot = self._text("slot") or self.context.question.slot
        if slot is None or value is None:
            raise InvalidInput("No open question matches this option.", field="action.payload")
        return self._fill({slot: Mention(value, str(value))})

    def fill_form(self) -> Understanding:
        """Fill several slots in the flow that the payload's `dact` names. Default: the active flow."""
        slots = self._values("values")
        if not slots:
            raise InvalidInput(
                "The action needs `values`, an object that maps slots to values.",
                field="action.payload.values",
            )
        return self._start(slots) if self._text("dact") else self._fill(slots)

    def _fill(self, slots: Mapping[str, Mention]) -> Understanding:
        values = self.context.values
        changes = any(name in values and values[name] != m.value for name, m in slots.items())
        kind = MessageKind.CORRECTION if changes else MessageKind.SLOT_VALUE
        return self._say(kind, slots=slots, intent=self.context.intent)

    def change_slot(self) -> Understanding:
        """Replace a slot's value. If the payload has no value, empty the slot so that Parley asks for it."""
        slot = self._text("slot")
        if slot is None:
            raise InvalidInput("The action needs the name of a slot.", field="action.payload.slot")
        value = self.action.payload.get("value")
        slots = {slot: Mention(value, "" if value is None else str(value))}
        return self._say(MessageKind.CORRECTION, slots=slots, intent=self.context.intent)

    def choose_flow(self) -> Understanding:
        return self._start(self._values("slots"))

    def _start(self, slots: Mapping[str, Mention]) -> Understanding:
        dact = Dact(self._text("dact") or "")
        if dact not in self.flows:
            raise InvalidInput(f"Unknown flow {dact[:60]!r}.", field="action.payload.dact")
        scores = (FlowScore(dact, 1.0),)
        return self._say(MessageKind.TASK, intent=self.flows[dact].intent, flows=scores, slots=slots)

    def cancel_flow(self) -> Understanding:
        """Cancel a flow, and start the flow that the payload's `then` names, if that flow exists (FS-12)."""
        then = Dact(self._text("then") or "")
        scores = (FlowScore(then, 1.0),) if then in self.flows else ()
        return self._say(MessageKind.CANCELLATION, flows=scores, slots=self._values("slots"))

    def decide_effect(self) -> Understanding:
        """Interpret a decision about earlier side effects. The action's name becomes the `target` (IR-4)."""
        return replace(self._say(MessageKind.CORRECTION), target=self.action.name)

    def change_plan(self) -> Understanding:
        other = self._text("other")
        wanted = PlanAction.BEFORE if other is not None else _PLAN_ACTIONS[self.action.name]
        change = PlanChange(wanted, self._text("step"), other)
        return replace(self._say(MessageKind.PLAN_CHANGE), plan_change=change)

    def _text(self, name: str) -> str | None:
        value = self.action.payload.get(name)
        return value if isinstance(value, str) and value else None

    def _one_slot(self) -> dict[str, Mention]:
        slot, value = self._text("slot"), self.action.payload.get("value")
        if slot is None or value is None:
            return {}
        return {slot: Mention(value, self._text("label") or str(value))}

    def _values(self, name: str) -> dict[str, Mention]:
        """Return the non-null slot values in the payload's object `name`.

        Return an empty dictionary if it isn't an object or has more than `MOST_FIELDS` members.
        """
        fields: Json = self.action.payload.get(name)
        if not is_object(fields) or len(fields) > MOST_FIELDS:
            return {}
        return {slot: Mention(value, str(value)) for slot, value in fields.items() if value is not None}


_PLAN_ACTIONS = {"skip_step": PlanAction.SKIP, "move_step": PlanAction.FIRST}

_REACTIONS: Mapping[str, Callable[[_Reaction], Understanding]] = {
    "skip_step": _Reaction.change_plan,
    "move_step": _Reaction.change_plan,
    "keep_effect": _Reaction.decide_effect,
    "repeat_effect": _Reaction.decide_effect,
    "compensate_effect": _Reaction.decide_effect,
    "confirm": _Reaction.confirm,
    "approve": _Reaction.confirm,
    "deny": _Reaction.deny,
    "fill_slot": _Reaction.fill_slot,
    "select_option": _Reaction.select_option,
    "fill_form": _Reaction.fill_form,
    "change_slot": _Reaction.change_slot,
    "choose_flow": _Reaction.choose_flow,
    "start_flow": _Reaction.choose_flow,
    "cancel_flow": _Reaction.cancel_flow,
    "resume_flow": _Reaction.resume_flow,
    "help": _Reaction.digress,
    "person": _Reaction.digress,
    "status": _Reaction.digress,
}
