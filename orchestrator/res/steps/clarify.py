"""Ask the open question, and suggest replies and next tasks (AM-4, RS-7).

A flow with the option `form` asks for all missing slots in one form (RS-5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from orchestrator.context import TurnContext
from orchestrator.dialogue.ambiguity import Ambiguity, AmbiguityHandler, Asked
from orchestrator.dialogue.flow import BaseFlow, PlanFlow
from orchestrator.dialogue.notice import Notice, NoticeKind
from orchestrator.dialogue.questions import (
    AnyQuestion,
    AskSlot,
    CallQuestion,
    ChangeWhat,
    ChooseRow,
    LeftOpen,
    Level,
    Option,
    PendingCall,
    SettleDone,
    StoppedCall,
    Unclear,
    UnknownOutcome,
)
from orchestrator.dialogue.specification import Family, SlotSpec
from orchestrator.res.languages import word
from orchestrator.res.response import Response
from orchestrator.res.steps.generate import list_found, try_template
from orchestrator.res.templates import Templates
from orchestrator.res.wording import (
    label_slot,
    list_arguments,
    list_facts,
    list_unshown,
    name_doing,
    name_purpose,
    name_slot,
    name_slot_of,
    name_task,
    show_slots,
)
from orchestrator.saying import Saying, Told, say
from orchestrator.types import Dact, Json, JsonObject

FEWEST_FIELDS = 2
_REGRETS = frozenset({NoticeKind.NOT_UNDERSTOOD, NoticeKind.ASSUMED})
_INPUTS = {"date": "date", "time": "time", "level": "number", "number": "number", "integer": "number"}
"""Form inputs by slot type. Default: text, or a choice if the slot lists values."""


def make_form(flow: BaseFlow | None, question: Asked) -> JsonObject | None:
    """Return the form for a flow's missing slots, or None if the question doesn't need a form."""
    if flow is None or question.about.level is not Level.SPECIFIC or not flow.spec.options.get("form"):
        return None
    missing = flow.missing()
    if len(missing) < FEWEST_FIELDS or question.about.options:
        return None
    return {
        "kind": "form",
        "level": question.about.level.value,
        "flow_id": flow.flow_id,
        "slot": question.about.slot,
        "fields": [_make_field(flow, slot) for slot in missing],
        "submit": {
            "label": word("send"),
            "name": "fill_form",
            "payload": {"flow_id": flow.flow_id, "values": {}},
        },
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


@dataclass(frozen=True, slots=True)
class Speech:
    """The texts of one question. `flow`: the question's flow, or None."""

    context: TurnContext
    flow: BaseFlow | None
    templates: Templates

    def word(self, about: AnyQuestion) -> str:
        """Return the question's text."""
        if isinstance(about, PendingCall | StoppedCall):
            return self._word_call(about)
        slot = about.slot or "value"
        values: dict[str, Json] = {"options": about.labels, "slot": partial(self._name_slot, slot)}
        match about:
            case AskSlot():
                question = self._find_prompt(slot) or self.templates.render(about.template, **values)
                if not about.options:
                    return question
                return self.templates.render("ask_among", question=question, options=about.labels)
            case ChooseRow():
                return self._render_own("choose", values) or self.templates.render(about.template, **values)
            case ChangeWhat():
                values["options"] = []  # the suggested replies list them
            case Unclear():
                values |= {"doing": self.doing, "told": self.is_explained}
            case LeftOpen():
                values["question"] = about.text
            case SettleDone():
                values |= about.shown
            case UnknownOutcome():
                values |= {
                    "what": about.what,
                    "facts": self._list_facts(about.shown),
                    "arguments": self._list_arguments(about),
                    "done": self._list_done(),
                }
            case _:
                pass
        return self.templates.render(about.template, **values)

    @property
    def doing(self) -> str:
        """Return the flow's activity, such as “booking a flight”, or an empty string if there is no flow."""
        return name_doing(self.flow) if self.flow is not None else ""

    @property
    def is_explained(self) -> bool:
        """Return whether the reply already explains why the message was not understood."""
        said = {part.kind for part in self.context.changes.messages if isinstance(part, Notice)}
        return not said.isdisjoint(_REGRETS)

    def _render_own(self, suffix: str, values: dict[str, Json]) -> str | None:
        """Fill in the domain's template ``<dact>.<suffix>``. Return None if it is missing or fails."""
        if self.flow is None or (own := self.templates.first(f"{self.flow.dact}.{suffix}")) is None:
            return None
        values = {"slots": partial(self._show_slots, self.flow), **values}
        return try_template(self.templates, own, values, self.context, self.flow)

    def _name_slot(self, slot: str) -> str:
        """Return the slot's label, or the noun of its description if a displayed row can fill the slot."""
        listed = self.context.state.shown
        takes_row = listed is not None and listed.key == slot
        if self.flow is None:
            return name_slot(slot)
        return name_slot_of(self.flow, slot) if takes_row else label_slot(self.flow, slot)

    def _find_prompt(self, slot: str) -> str | None:
        """Return the domain's own question for a slot, or None or an empty string if there is none."""
        spec = self.flow.slot(slot) if self.flow is not None else None
        return spec.prompt if spec is not None else None

    def _list_facts(self, shown: JsonObject) -> list[JsonObject]:
        """Return the name and value of each filled slot. Values in `shown` take precedence."""
        if self.flow is None:
            return []
        return list_facts(self.flow, shown, self.context.world.registry, self.context.local_now)

    def _list_done(self) -> list[Told]:
        """Return the flow's committed side effects, unless the reply already reports them."""
        if self.flow is None or self.context.journal.stopped:  # a stopped turn has reported its side effects
            return []
        mine = (one for one in self.context.state.effects if one.flow_id == self.flow.flow_id)
        return [one.summary for one in mine if one.is_done and one.summary]

    def _list_arguments(self, about: CallQuestion) -> list[JsonObject]:
        """Return the name and value of each argument of a call, marking the arguments in `found`."""
        if self.flow is None:
            return []
        registry, now = self.context.world.registry, self.context.local_now
        return list_arguments(self.flow, about.arguments, about.found, registry, now)

    def _word_call(self, about: CallQuestion) -> str:
        """Return a text that describes a pending call with all its arguments and asks for confirmation."""
        flow, shown, arguments = self.flow, about.shown, about.arguments
        if flow is None:
            return self.templates.render("retry")
        values: dict[str, Json] = {
            "shown": shown,
            "doing": partial(name_doing, flow),
            "facts": partial(self._list_facts, shown),
        }
        listed = self._list_arguments(about)
        text = self._render_own("confirm", values)
        if text:
            besides = list_unshown(flow, arguments, listed, text)
            return self.templates.render("confirm_besides", text=text, arguments=besides) if besides else text
        slots, facts = self._show_slots(flow), self._list_facts(shown)
        told = {name: str(one["value"]) for one in facts if (name := str(one["name"]))}
        added = [one for one in listed if one["found"] or told.get(str(one["name"])) != one["value"]]
        known = [str(value) for value in (*flow.values().values(), *slots.values())]
        known += [label_slot(flow, name) for name in arguments]
        others = [one for one in list_found(flow, shown) if not {str(one["value"]), one["name"]} & {*known}]
        values["facts"] = [one for one in facts if all(one["name"] != other["name"] for other in added)]
        return self.templates.render(about.template, slots=slots, found=others, arguments=added, **values)

    def _show_slots(self, flow: BaseFlow) -> JsonObject:
        return show_slots(flow, self.context.world.registry, self.context.local_now)


async def clarify(response: Response) -> None:
    """Add the open question with suggested replies, unless a newer message has stopped the turn.

    If a question was asked too many times, add fallback options (AM-4). Without a question, suggest replies
    to a pending approval request.
    """
    context, answer, templates = response.context, response.answer, response.templates
    handler = context.state.ambiguity
    if context.journal.stopped and context.journal.overtaken:
        return
    entry = handler.current
    limit = context.world.domain.config.ambiguity.escalation_turns
    question = handler.ask(limit=limit, again=context.changes.asks_again)
    if entry is None or question is None:
        _offer_approval(response)
        return
    flow = context.state.stack.get(entry.flow_id) if entry.flow_id is not None else None
    form = make_form(flow, question)
    speech = Speech(context, flow, templates)
    text = speech.word(question.about) if form is None else _ask_form(speech, form)
    entry.put(text)
    _put_labels(handler, entry, templates)
    # If the user did something else in the meantime, add the options without an apology.
    pressing = question.escalate and not context.changes.asks_again and not context.changes.completed
    if pressing:
        # One apology is enough, and `Unclear` asks with an apology.
        if not speech.is_explained and not isinstance(question.about, Unclear):
            answer.add(templates.render(NoticeKind.ESCALATED.value, doing=speech.doing))
        context.log.flags["escalated"] = True
    answer.add(text)
    answer.interaction = form or _describe(question)
    answer.question = question
    options = list(question.about.replies)
    if question.escalate:
        options += ways_out(context, flow, entry)
    if pressing:
        answer.add(templates.render("offer_way_out", doing=speech.doing))
    answer.actions = [write_action(option, templates) for option in options]


def _put_labels(handler: AmbiguityHandler, entry: Ambiguity, templates: Templates) -> None:
    """Store the replies with their rendered labels, so that the user can answer with a label."""
    options = entry.about.options
    if any(isinstance(option.label, Saying) for option in options):
        handler.offer(entry, tuple(replace(one, label=templates.label(one.label)) for one in options))


def _describe(question: Asked) -> JsonObject:
    return {
        "kind": question.kind.value,
        "level": question.about.level.value,
        "slot": question.about.slot,
        "flow_id": question.about.flow_id,
    }


def _offer_approval(response: Response) -> None:
    answer, options = response.answer, _approval_options(response.context)
    answer.actions = [write_action(option, response.templates) for option in options]
    if options:
        answer.interaction = {"kind": "approval", **options[0].payload}


def _approval_options(context: TurnContext) -> list[Option]:
    top = context.state.stack.top
    waiting = [entry for entry in context.state.approvals if top is not None and entry.flow_id == top.flow_id]
    return [
        Option(say(label), name, {"flow_id": entry.flow_id, "approval_id": entry.approval_id})
        for entry in waiting
        for label, name in (("approve", "approve"), ("do_not_approve", "deny"))
        if name == "deny" or not entry.operator_only
    ]


def ways_out(context: TurnContext, flow: BaseFlow | None, entry: Ambiguity) -> list[Option]:
    """Return the fallback options: the slot's values, a simpler task, cancellation, help, an operator (AM-4)."""
    options: list[Option] = []
    if flow is not None:
        slot, flows = flow.slot(entry.slot or ""), context.world.domain.flows
        payload = {"flow_id": flow.flow_id, "slot": entry.slot}
        values = slot.values if slot is not None and not entry.options else ()
        options += [Option(value, "fill_slot", {**payload, "value": value}) for value in values]
        simpler = flow.spec.fallback
        if simpler is not None and simpler in flows:
            options.append(Option(name_task(flows[simpler]), "start_flow", {"dact": simpler}))
        stop = say("stop", doing=name_doing(flow))
        options.append(Option(stop, "cancel_flow", {"flow_id": flow.flow_id}))
    return [*options, Option(say("help"), "help", {}), Option(say("person"), "person", {})]


def write_action(option: Option, templates: Templates) -> JsonObject:
    """Return a suggested reply for clients, with its label and the action to send back."""
    label = option.label
    if isinstance(label, Saying):
        label = templates.labels[label.code] if not label.values else templates.label(label)
    return {"label": label, "name": option.action_name, "payload": option.payload}


def _ask_form(speech: Speech, form: JsonObject) -> str:
    assert speech.flow is not None
    names = [field["label"] for field in form["fields"]]
    return speech.templates.render("ask_form", names=names, purpose=name_purpose(speech.flow))


ABOUT_PLANS = frozenset(
    {NoticeKind.PLANNED, NoticeKind.REPLANNED, NoticeKind.PLAN_STATUS, NoticeKind.NO_SUCH_STEP}
)


async def suggest(response: Response) -> None:
    """Suggest plan steps to skip if the answer is about the plan, or next tasks if no task or question is open."""
    context, answer, templates = response.context, response.answer, response.templates
    most = context.world.domain.config.generation.suggested_replies
    plan = context.state.stack.plan
    if plan is not None and _speaks_of_plans(context):
        answer.actions += [write_action(option, templates) for option in list(_skips(plan))[:most]]
    elif answer.question is None and not answer.actions and context.state.stack.active is None:
        answer.actions = [write_action(option, templates) for option in list(_next_steps(context))[:most]]


def _speaks_of_plans(context: TurnContext) -> bool:
    return any(isinstance(part, Notice) and part.kind in ABOUT_PLANS for part in context.changes.messages)


def _skips(plan: PlanFlow) -> Iterator[Option]:
    for step in plan.unfinished:
        label = say("leave_out", step=step.label)
        yield Option(label, "skip_step", {"flow_id": plan.flow_id, "step": step.name})


def _next_steps(context: TurnContext) -> Iterator[Option]:
    """Yield follow-up tasks for the tasks completed in this turn."""
    seen: set[Dact] = {flow.dact for flow in context.changes.completed}
    for done in reversed(context.changes.completed):
        for dact in done.spec.edge_flows:
            flow = context.world.domain.flows.get(dact)
            if dact not in seen and flow is not None and _can_be_asked_for(flow):
                seen.add(dact)
                yield Option(name_task(flow), "start_flow", {"dact": dact})


def _can_be_asked_for(flow: type[BaseFlow]) -> bool:
    return flow.spec.family is not Family.INTERNAL and bool(flow.spec.examples)
