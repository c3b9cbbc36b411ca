"""Add text for results, messages and limitations to the answer (RS-3, RS-5)."""

from collections.abc import Mapping
from functools import partial

from jinja2 import TemplateError

from orchestrator.context import TurnContext
from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.notice import Notice, NoticeKind
from orchestrator.dialogue.records import Frame
from orchestrator.domain.model import Domain
from orchestrator.res.response import Response
from orchestrator.res.steps.display import list_rows
from orchestrator.res.templates import Templates
from orchestrator.res.wording import (
    label_slot,
    list_arguments,
    list_facts,
    name_doing,
    name_slot,
    name_slot_of,
    show_slot,
    show_slots,
    show_truth,
)
from orchestrator.telemetry import SignalType, get_logger
from orchestrator.types import Json, JsonObject, are_rows, is_list

LASTING_BUDGETS = frozenset({"session", "user_day", "tenant_day", "day"})
"""Model budgets that users are informed about, because these budgets also limit later turns."""

LEADING = frozenset(
    {
        NoticeKind.ASSUMED,
        NoticeKind.BACK_TO,
        NoticeKind.CARRIED,
        NoticeKind.CANCELLED,
        NoticeKind.CLEARED,
        NoticeKind.CORRECTED,
        NoticeKind.DECLINED,
        NoticeKind.FAILED,
        NoticeKind.INVALID_VALUE,
        NoticeKind.MADE_ROOM,
        NoticeKind.NOT_UNDERSTOOD,
        NoticeKind.NO_SUCH_STEP,
        NoticeKind.OVER,
        NoticeKind.RESUMED,
        NoticeKind.ROW_CHOSEN,
        NoticeKind.SAY_YES,
        NoticeKind.STAYS,
        NoticeKind.NOT_APPROVED,
        NoticeKind.APPROVAL_OVER,
        NoticeKind.UNDONE,
        NoticeKind.STOPPED,
        NoticeKind.TOO_EARLY,
        NoticeKind.UNKNOWN_OUTCOME,
    }
)
"""Messages that a question can follow in the same paragraph."""

ROWS_AT_HAND = 100
"""Maximum number of a table's rows that a template receives as text."""

TEMPLATE_FAILURES = (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""The errors of a domain's template that doesn't fit its values."""

_log = get_logger(__name__)


async def generate(response: Response) -> None:
    """Add text for results and messages, in order."""
    context, answer, templates = response.context, response.answer, response.templates
    said: set[NoticeKind] = set()
    for part in context.changes.messages:
        if isinstance(part, Notice):
            is_told = part.kind is NoticeKind.NOT_UNDERSTOOD and not part.values.get("words")
            if is_told and NoticeKind.ASSUMED in said:
                continue  # NLU has already explained why it rejected the message
            said.add(part.kind)
            name, text = render_notice(context, part, templates)
            answer.add(text, leads=part.kind in LEADING, fixed=templates.is_fixed(name))
        elif part.flow_id in context.changes.silent:
            continue
        else:
            name, text = render_completed(context, part, templates)
            answer.add(text, fixed=templates.is_fixed(name))
        answer.templates.append(name)
    _add_limits(response)


def _add_limits(response: Response) -> None:
    """Report limitations: the last frame's note, an unavailable model or a used-up budget (RS-5)."""
    context, answer, templates = response.context, response.answer, response.templates
    note = answer.frames[-1]["block"]["note"] if answer.frames else None
    if note:
        warning = templates.render("warning", warning=note)
        if not any(warning in part or part in warning for part in answer.parts):
            answer.add(warning, fixed=True)
    if context.log.flags.get("degraded"):
        _report_degraded(response)


def _report_degraded(response: Response) -> None:
    """Report a used-up budget or, if the domain enables this, an unavailable model.

    Report once per conversation.
    """
    context, answer, templates = response.context, response.answer, response.templates
    scope = context.call.spending.refused_by
    if scope in LASTING_BUDGETS:
        name, text = "budget_used_up", templates.render("budget_used_up", scope=scope)
    elif context.world.domain.config.generation.tell_degraded:
        name, text = "degraded", templates.render("degraded")
    else:
        return
    said = (message.text for message in context.state.history.messages if message.role == "agent")
    if not any(text in earlier for earlier in said):
        answer.add(text, fixed=True)
        answer.templates.append(name)


def context_of(context: TurnContext, flow: BaseFlow) -> JsonObject:
    data = context.changes.findings.get(flow.flow_id, {})
    frame = context.changes.frames.get(flow.flow_id)
    registry, now = context.world.registry, context.local_now
    return {
        "flow": {"dact": flow.dact, "title": flow.title, "description": flow.spec.description},
        "doing": partial(name_doing, flow),
        "slots": partial(show_slots, flow, registry, now),
        "values": partial(flow.values),
        "data": data,
        "outputs": flow.outputs,
        "facts": partial(list_facts, flow, data, registry, now),
        "found": partial(list_found, flow, data),
        "rows": partial(_rows_as_text, frame, data, context),
        "warning": frame.warning if frame is not None else None,
        "display": frame.display_type if frame is not None else None,
        "now": context.local_now,
        "persona": context.world.domain.config.persona,
    }


def render_completed(context: TurnContext, flow: BaseFlow, templates: Templates) -> tuple[str, str]:
    """Return the template's name and the text for a completed flow.

    The flow's template takes precedence over those of its intent and family. If unexpected data from a tool
    makes the flow's or intent's template fail, the base template reports the result.
    """
    values = context_of(context, flow)
    intent = flow.spec.intent.lower()
    own = templates.first(flow.dact, *filter(templates.is_own, [intent]))  # “Ask” isn't the template `ask`
    base = templates.first(flow.spec.family.value.lower(), "completed") or "completed"
    text = try_template(templates, own, values, context, flow) if own is not None else None
    if text is not None and own is not None:
        return own, _warn(text, values["warning"], templates)
    return base, _warn(templates.render(base, **values), values["warning"], templates)


def _warn(text: str, warning: str | None, templates: Templates) -> str:
    """Return the text with the result's warning (RS-5), unless the text already contains it."""
    told = templates.render("warning", warning=warning) if warning else ""
    return text if not told or told in text else f"{text}\n\n{told}"


def render_notice(context: TurnContext, notice: Notice, templates: Templates) -> tuple[str, str]:
    """Return the template's name and the text for a message.

    If the message's values contain a `flow_id`, the task's name and facts are added. If they contain only a `dact`,
    the task's name is added.
    """
    name = notice.kind.value
    values: dict[str, Json] = {
        "persona": context.world.domain.config.persona,
        "doing": "",
        "facts": [],
        **notice.values,
    }
    if context.changes.page is not None and notice.kind is NoticeKind.PAGE:
        table, rows = context.changes.page
        values["lines"] = list_rows(rows, table.source, context)
    flow = _find_flow(context, notice.values.get("flow_id"))
    if flow is not None:
        registry, now = context.world.registry, context.local_now
        values["doing"] = partial(name_doing, flow)
        given: JsonObject = notice.values.get("arguments", {})
        values["facts"] = partial(list_facts, flow, given, registry, now)
        if notice.kind is NoticeKind.APPROVAL:
            listed = list_arguments(flow, given, notice.values.get("found", ()), registry, now)
            names = {one["name"] for one in listed}
            facts = list_facts(flow, given, registry, now)
            values["facts"] = [*(one for one in facts if one["name"] not in names), *listed]
        if "slots" in notice.values:
            values["slots"] = [
                {
                    "key": slot,
                    "name": label_slot(flow, slot),
                    "title": name_slot_of(flow, slot),
                    "value": show_slot(value, flow.spec.slots.get(slot), registry, now),
                }
                for slot, value in notice.values["slots"].items()
            ]
    elif "dact" in notice.values:
        values["doing"] = _doing_of(context.world.domain, notice.values["dact"])
    return name, templates.render(name, **values)


def _doing_of(domain: Domain, dact: str) -> str:
    flow_type = domain.flows.get(dact)  # pyright: ignore[reportArgumentType]
    return name_doing(flow_type) if flow_type is not None else name_slot(dact)


def _find_flow(context: TurnContext, flow_id: str | None) -> BaseFlow | None:
    if flow_id is None:
        return None
    state = context.state
    known = [*state.stack.flows, *context.changes.finished, *state.completed]
    return next((flow for flow in known if flow.flow_id == flow_id), None)


def try_template(
    templates: Templates, name: str, values: Mapping[str, Json], context: TurnContext, flow: BaseFlow
) -> str | None:
    """Render a domain's template. If rendering fails, record why and return None."""
    try:
        text = templates.render(name, **values)
    except TEMPLATE_FAILURES as error:
        _log.warning("A template failed.", template=name, error=error, turn=context.ids.turn_id)
        context.log.signal("res", SignalType.TEMPLATE, flow.flow_id, template=name, ok=False, why=str(error))
        return None
    return text


def list_found(flow: BaseFlow, data: JsonObject) -> list[JsonObject]:
    """Return the name and value of each scalar result that does not belong to a slot."""
    return [
        {"name": name_slot(name), "value": show_truth(value) if isinstance(value, bool) else value}
        for name, value in data.items()
        if name not in flow.spec.slots and isinstance(value, (str, int, float))
    ]


def _rows_as_text(frame: Frame | None, data: JsonObject, context: TurnContext) -> list[str] | None:
    """Return a table's rows as text, an empty list if the tools found no rows, or None for other results."""
    if frame is not None and frame.display_type == "table":
        rows = frame.data[:ROWS_AT_HAND] if is_list(frame.data) else []
        return list_rows(rows, frame.source, context) if are_rows(rows) else [*map(str, rows)]
    lists = [value for value in data.values() if is_list(value)]
    return [] if lists and not any(lists) else None
