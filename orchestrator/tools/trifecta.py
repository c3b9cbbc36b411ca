"""The lethal trifecta: private data, untrusted text and external communication.

A call that would combine all three needs an approval (PX-3). The check runs right before each call. It
considers the flow's tools and the session's labels from all turns (PX-19). `pex/calls/consent.py` requests
the approval.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from orchestrator.dialogue.flow import BaseFlow
from orchestrator.dialogue.records import Label, LabelSource, add_source, labels_of
from orchestrator.dialogue.slots import SlotSource, SlotValue
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import ToolSpec
from orchestrator.saying import Saying, say
from orchestrator.tools.toolbox import Tool
from orchestrator.types import FlowId, JsonObject

TRIFECTA_GATE = "trifecta_gate"  # name of the check (PX-2)


@dataclass(frozen=True, slots=True)
class Cause:
    """The reason why a call needs an approval.

    `told`: the message for the user, or None if the manifest alone requires the approval. `of_gate`: True if
    the lethal trifecta is the reason.
    """

    told: Saying | None = None
    of_gate: bool = False


def find_cause(
    spec: ToolSpec, tools: Iterable[Tool], carried: Iterable[LabelSource], known: Mapping[str, object]
) -> Cause | None:
    """Return why a call needs approval, or None if it doesn't.

    Args:
        spec: the tool to call.
        tools: all of the flow's tools.
        carried: the session's current labels.
        known: values to compare with the tool's approval limits.
    """
    if spec.communicates_externally:
        specs = [spec, *(tool.spec for tool in tools)]
        told = _name_cause([*carried, *(source for one in specs for source in _labels_of_tool(one, 0, None))])
        if told is not None:
            return Cause(told, of_gate=True)
    if spec.requires_approval:
        return Cause()
    exceeded = _find_bound_exceeded(spec, known)
    return None if exceeded is None else Cause(exceeded)


def _find_bound_exceeded(spec: ToolSpec, known: Mapping[str, object]) -> Saying | None:
    """Return a message about the first value that is unknown or above its limit, or None if all are within limits."""
    for name, bound in spec.approval_above.items():
        value, called = known.get(name), name.replace("_", " ")
        if not isinstance(value, int | float) or isinstance(value, bool) or math.isnan(value):
            return say("value_unknown", name=called, limit=f"{bound:g}").with_detail(
                f"the {called} is unknown, and values above {bound:g} need approval"
            )
        if value > bound:
            return say("value_above", name=called, value=f"{value:g}", limit=f"{bound:g}").with_detail(
                f"the {called} is {value:g}, above the limit of {bound:g}"
            )
    return None


def carry_labels(
    state: DialogueState, spec: ToolSpec, flow_id: FlowId | None, output: JsonObject | None = None
) -> None:
    """Add the labels implied by a tool's tags, and the `labels` in its output, to the session."""
    for source in _labels_of_tool(spec, state.turn, flow_id):
        add_source(state.intake.labels, source)
    given: object = None if output is None else output.get("labels")
    if isinstance(given, list):
        join_labels(state, [label for label in Label if label in given], spec.name)


def join_labels(state: DialogueState, labels: Iterable[str], source: str) -> None:
    """Add the labels of a stored text, such as a memory, summary or scratchpad entry, to the session."""
    for label in labels:
        add_source(state.intake.labels, LabelSource(Label(label), source, state.turn))


def label_work(
    state: DialogueState, flow: BaseFlow, tools: Iterable[Tool], *, text: str, by_skill: bool
) -> tuple[str, ...]:
    """Return the labels of everything that a flow's results may derive from.

    Skills, plans and values that the user did not say may derive from the whole conversation, so their
    results get all of the session's labels. Other results get the labels of the flow's tools. `text`: the
    user's message. `by_skill`: True if a skill produced the results.
    """
    if not state.intake.labels:
        return ()
    earlier = [line["text"].casefold() for line in state.history.lines if line["role"] == "user"]
    said = [text.casefold(), *earlier]
    if by_skill or flow.plan_id is not None or not all(_was_said(slot, said) for slot in flow.slots.values()):
        return tuple(sorted(labels_of(state.intake.labels)))
    sources = (source for tool in tools for source in _labels_of_tool(tool.spec, state.turn, None))
    return tuple(sorted(labels_of(sources)))


def _was_said(slot: SlotValue, said: Iterable[str]) -> bool:
    if slot.source is SlotSource.DEFAULT:
        return True
    words = slot.text.casefold()
    return slot.source is SlotSource.USER and bool(words) and any(words in line for line in said)


def _labels_of_tool(spec: ToolSpec, turn: int, flow_id: FlowId | None) -> list[LabelSource]:
    tagged = (
        (spec.accesses_private_data, Label.PRIVATE),
        (spec.receives_untrusted_input, Label.UNTRUSTED),
    )
    return [LabelSource(label, spec.name, turn, flow_id) for has, label in tagged if has]


def _name_cause(sources: Iterable[LabelSource]) -> Saying | None:
    """Return where private data and untrusted text came from, or None if either is missing."""
    found: dict[Label, list[str]] = {Label.PRIVATE: [], Label.UNTRUSTED: []}
    for source in sources:
        if source.source not in found[source.label]:
            found[source.label].append(source.source)
    if not all(found.values()):
        return None
    private, untrusted = (", ".join(names) for names in found.values())
    return say("sends_outside", private=private, untrusted=untrusted).with_detail(
        f"it sends data outside after reading private data ({private}) and untrusted text ({untrusted})"
    )
