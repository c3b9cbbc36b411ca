"""Several missing slots asked for at once, where a flow's option `form` says so (RS-5).

The answer comes back as the action `fill_form`; reading it is NLU's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from orchestrator.context import Answer, TurnContext
from orchestrator.dialogue.ambiguity import Ambiguity, Level, Option, Question
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.remark import Remark, RemarkKind
from orchestrator.dialogue.specification import SlotSpec
from orchestrator.res.response import Response
from orchestrator.res.steps.generate import list_found, try_template
from orchestrator.res.templates import Templates
from orchestrator.res.wording import (
    list_facts,
    name_doing,
    name_purpose,
    name_slot,
    name_slot_of,
    name_task,
    show_slot,
    show_slots,
)
from orchestrator.types import Json, JsonObject

FEWEST_FIELDS = 2
_REGRETS = frozenset({RemarkKind.NOT_UNDERSTOOD, RemarkKind.ASSUMED})
_INPUTS = {"date": "date", "time": "time", "level": "number", "number": "number", "integer": "number"}
"""Types of slots that clients have inputs for; others are text, or a choice when they list values."""


def make_form(flow: BaseFlow | None, question: Question) -> JsonObject | None:
    """The form for what a flow still needs; None when its question is better asked alone."""
    if flow is None or question.level is not Level.SPECIFIC or not flow.spec.options.get("form"):
        return None
    missing = flow.missing()
    if len(missing) < FEWEST_FIELDS or question.options:
        return None
    return {
        "kind": "form",
        "level": question.level.value,
        "flow_id": flow.flow_id,
        "slot": question.slot,
        "fields": [_make_field(flow, slot) for slot in missing],
        "submit": {"label": "Send", "name": "fill_form", "payload": {"flow_id": flow.flow_id, "values": {}}},
    }


def _make_field(flow: BaseFlow, slot: SlotSpec) -> JsonObject:
    return {
        "name": slot.name,
        "label": name_slot_of(flow, slot.name),
        "prompt": slot.prompt,
        "type": "choice" if slot.values else _INPUTS.get(slot.type, "text"),
        "values": list(slot.values),
        "minimum": slot.minimum,
        "maximum": slot.maximum,
        "required": True,
    }


class Asking(NamedTuple):
    """What the words of a question depend on; `flow` is None when it belongs to no flow."""

    context: TurnContext
    entry: Ambiguity
    flow: BaseFlow | None
    templates: Templates


async def clarify(response: Response) -> None:
    """Add the open question, last, and the replies that could answer it; not where the next turn is about that already.

    A question that was asked too often is followed by ways out instead of being asked alone (AM-4).
    """
    context, answer, templates = response.context, response.answer, response.templates
    handler = context.changes.state.ambiguity
    if context.journal.stopped and context.journal.overtaken:
        return
    entry = handler.current
    limit = context.world.domain.config.ambiguity.escalation_turns
    question = handler.ask(limit=limit, again=context.changes.asks_again)
    if entry is None or question is None:
        _offer_approval(context, answer)
        return
    flow = context.changes.state.stack.get(entry.flow_id) if entry.flow_id is not None else None
    form = make_form(flow, question)
    asking = Asking(context, entry, flow, templates)
    text = _WORDING[entry.level](asking) if form is None else _ask_form(asking, form)
    entry.put(text)
    # Who has done something else meanwhile has not failed to answer: the ways out are offered without a word.
    pressing = question.escalate and not context.changes.asks_again and not context.changes.completed
    if pressing:
        if not _REGRETS.intersection(answer.templates):  # once is enough
            answer.add(templates.render(RemarkKind.ESCALATED.value, doing=name_doing(flow) if flow else ""))
        context.log.flags["escalated"] = True
    answer.add(text)
    answer.interaction = form or _describe(question)
    answer.question = question
    options = list(question.options)
    if question.escalate:
        options += ways_out(context, flow, entry)
    if pressing:
        answer.add(templates.render("offer_way_out", doing=name_doing(flow) if flow else ""))
    answer.actions = [write_action(option) for option in options]


def _describe(question: Question) -> JsonObject:
    return {
        "kind": question.kind.value,
        "level": question.level.value,
        "slot": question.slot,
        "flow_id": question.flow_id,
    }


def _offer_approval(context: TurnContext, answer: Answer) -> None:
    options = _approval_options(context)
    answer.actions = [write_action(option) for option in options]
    if options:
        answer.interaction = {"kind": "approval", **options[0].payload}


def _approval_options(context: TurnContext) -> list[Option]:
    """Replies for a call that waits for an approval."""
    top = context.changes.state.stack.top
    waiting = [
        entry for entry in context.changes.state.approvals if top is not None and entry.flow_id == top.flow_id
    ]
    return [
        Option(label, name, {"flow_id": entry.flow_id, "approval_id": entry.approval_id})
        for entry in waiting
        for label, name in (("Approve", "approve"), ("Do not approve", "deny"))
        if name == "deny" or not entry.operator_only
    ]


def ways_out(context: TurnContext, flow: BaseFlow | None, entry: Ambiguity) -> list[Option]:
    """Offer other ways: the values to choose among, a simpler task, an end, help, a person (AM-4)."""
    options: list[Option] = []
    if flow is not None:
        slot, flows = flow.slot(entry.slot or ""), context.world.domain.flows
        payload = {"flow_id": flow.flow_id, "slot": entry.slot}
        values = slot.values if slot is not None and not entry.options else ()
        options += [Option(value, "fill_slot", {**payload, "value": value}) for value in values]
        simpler = flow.spec.fallback
        if simpler is not None and simpler in flows:
            options.append(Option(name_task(flows[simpler]), "start_flow", {"dact": simpler}))
        options.append(Option(f"Stop {name_doing(flow)}", "cancel_flow", {"flow_id": flow.flow_id}))
    return [*options, Option("Help", "help", {}), Option("Talk to a person", "person", {})]


def write_action(option: Option) -> JsonObject:
    """A suggested reply as clients see it: what to show, and the action to send back."""
    return {"label": option.label, "name": option.action_name, "payload": option.payload}


def _ask_general(asking: Asking) -> str:
    _, entry, flow, templates = asking
    name = "choose_to_cancel" if entry.metadata.get("about") == "limit" else "unclear"
    said = {part.kind for part in asking.context.changes.messages if isinstance(part, Remark)}
    told = RemarkKind.ASSUMED in said  # a reader has said already why it took nothing
    return templates.render(name, options=_labels(entry), doing=name_doing(flow) if flow else "", told=told)


def _name_asked(asking: Asking) -> str:
    """Name the slot that is asked for; one that takes a displayed row has no name that people know."""
    listed = asking.context.changes.state.shown
    slot, flow = asking.entry.slot or "value", asking.flow
    return (
        name_slot_of(flow, slot)
        if flow is not None and listed is not None and listed.key == slot
        else name_slot(slot)
    )


def _ask_partial(asking: Asking) -> str:
    context, entry, flow, templates = asking
    about = entry.metadata.get("about")
    if about == "task":
        return templates.render("choose_task", options=_labels(entry))
    if about == "limit":
        return templates.render("choose_to_cancel", options=_labels(entry))
    if about == "next":
        return templates.render("choose_next", options=_labels(entry))
    if about == "correction":
        return templates.render("confirm_correction", options=_labels(entry), **entry.metadata["shown"])
    if about == "open":
        return templates.render("open", question=entry.metadata["question"])
    if about == "change":
        valued = [option for option in entry.options if "value" in option.payload]
        return templates.render("choose_change", options=[option.label for option in valued])
    values: dict[str, Json] = {"options": _labels(entry), "slot": _name_asked(asking)}
    if flow is None:
        return templates.render("choose", **values)
    values["slots"] = partial(show_slots, flow, context.world.registry, context.local_now)
    if about == "rows":
        own = templates.first(f"{flow.dact}.choose")
        text = try_template(templates, own, values, context, flow) if own else None
        return text or templates.render("choose", **values)
    return templates.render("choose_value", **values)


def _ask_specific(asking: Asking) -> str:
    _, entry, flow, templates = asking
    slot = flow.slot(entry.slot) if flow is not None and entry.slot is not None else None
    prompt = slot.prompt if slot is not None else None
    question = prompt or templates.render("ask", slot=name_slot(entry.slot or "value"))
    if entry.options:
        return templates.render("ask_among", question=question, options=_labels(entry))
    return question


def _ask_form(asking: Asking, form: JsonObject) -> str:
    _, _, flow, templates = asking
    assert flow is not None
    names = [field["label"] for field in form["fields"]]
    return templates.render("ask_form", names=names, purpose=name_purpose(flow))


def _ask_confirmation(asking: Asking) -> str:
    context, entry, flow, templates = asking
    about = entry.metadata.get("about")
    if flow is None or about == "retry":
        return templates.render("retry")
    if about == "value" and entry.slot is not None:
        spec = flow.slot(entry.slot)
        shown = show_slot(entry.candidates[0], spec, context.world.registry, context.local_now)
        return templates.render("confirm_value", slot=name_slot(entry.slot), value=shown)
    shown: JsonObject = entry.metadata.get("shown", {})
    if about in {"unknown", "elsewhere"}:
        facts = list_facts(flow, shown, context.world.registry, context.local_now)
        # A turn that was stopped has told it.
        effects = [] if context.journal.stopped else context.changes.state.effects
        done = [one.summary for one in effects if one.flow_id == flow.flow_id and one.is_done and one.summary]
        what: JsonObject = {"what": entry.metadata["what"], "elsewhere": about == "elsewhere"}
        return templates.render("confirm_unknown", **what, facts=facts, done=done)
    values: dict[str, Json] = {
        "shown": shown,
        "slots": partial(show_slots, flow, context.world.registry, context.local_now),
        "doing": partial(name_doing, flow),
        "facts": partial(list_facts, flow, shown, context.world.registry, context.local_now),
    }
    own = templates.first(f"{flow.dact}.confirm")
    text = try_template(templates, own, values, context, flow) if own else None
    if text:
        return text
    slots = show_slots(flow, context.world.registry, context.local_now)
    known = [str(value) for value in (*flow.values().values(), *slots.values())]
    found = [one for one in list_found(flow, shown) if str(one["value"]) not in known]
    return templates.render("confirm", **values, found=found)


def _labels(entry: Ambiguity) -> list[str]:
    return [option.label for option in entry.options]


_WORDING: Mapping[Level, Callable[[Asking], str]] = {
    Level.GENERAL: _ask_general,
    Level.PARTIAL: _ask_partial,
    Level.SPECIFIC: _ask_specific,
    Level.CONFIRMATION: _ask_confirmation,
}
