"""The lethal-trifecta gate: private data, untrusted text and a way out never meet without an approval (PX-3).

The three are joined over the tools of a flow and over the labels that the session carries, whichever
turn or tool brought them in. Asking for the approval is in `approve`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.dialogue.labels import Label, LabelSource, add_source
from orchestrator.dialogue.state import DialogueState
from orchestrator.domain.model import ToolSpec
from orchestrator.pex.toolbox import Tool
from orchestrator.types import FlowId, ToolId


def tools_to_approve(tools: Iterable[Tool], carried: Iterable[LabelSource] = ()) -> dict[ToolId, str]:
    """The tools of a flow whose calls need an approval, and why, in words for the user.

    Args:
        tools: all tools that the flow may use.
        carried: the labels of what the session has taken in before.
    """
    specs = [tool.spec for tool in tools]
    sources = [*carried, *(source for spec in specs for source in _labels_of_tool(spec, 0, None))]
    cause = _tell_cause(sources)
    found: dict[ToolId, str] = {}
    for spec in specs:
        if spec.communicates_externally and cause:
            found[spec.tool_id] = cause
        elif spec.requires_approval:
            found[spec.tool_id] = ""
    return found


def find_bound_exceeded(spec: ToolSpec, known: Mapping[str, object]) -> str | None:
    """Why this call needs an approval although the tool as such does not: a value above its bound."""
    for name, bound in spec.approval_above.items():
        value = known.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value > bound:
            return f"the {name.replace('_', ' ')} is {value:g}, and above {bound:g} an approval is needed"
    return None


def carry_labels(state: DialogueState, spec: ToolSpec, flow_id: FlowId | None) -> None:
    """Note on the session what a tool that has answered brought in."""
    for source in _labels_of_tool(spec, state.turn, flow_id):
        add_source(state.labels, source)


def join_labels(state: DialogueState, labels: Iterable[str], source: str) -> None:
    """Note on the session the labels of something kept outside of it: a memory, a summary, a scratchpad entry."""
    for label in labels:
        add_source(state.labels, LabelSource(Label(label), source, state.turn))


def _labels_of_tool(spec: ToolSpec, turn: int, flow_id: FlowId | None) -> list[LabelSource]:
    tagged = (
        (spec.accesses_private_data, Label.PRIVATE),
        (spec.receives_untrusted_input, Label.UNTRUSTED),
    )
    return [LabelSource(label, spec.name, turn, flow_id) for has, label in tagged if has]


def _tell_cause(sources: Iterable[LabelSource]) -> str:
    """Empty unless both kinds of data are there."""
    found: dict[Label, list[str]] = {Label.PRIVATE: [], Label.UNTRUSTED: []}
    for source in sources:
        if source.source not in found[source.label]:
            found[source.label].append(source.source)
    if not all(found.values()):
        return ""
    private, untrusted = (", ".join(names) for names in found.values())
    return (
        f"it sends something outside, after private data were read ({private}) "
        f"and text from outside came in ({untrusted})"
    )
