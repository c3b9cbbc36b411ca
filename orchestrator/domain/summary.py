"""Summaries of each flow's tools and their tags, for the review of a domain."""

from dataclasses import dataclass

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.domain.acts import read_acts
from orchestrator.domain.model import Domain, ToolSpec
from orchestrator.types import Dact, ToolId

TAGS = ("accesses_private_data", "receives_untrusted_input", "communicates_externally")


@dataclass(frozen=True, slots=True)
class FlowSummary:
    """A flow's capabilities.

    `acts`: the primitive acts of its dax. `changes`: the tools with side effects. `tags`: the tags of all
    tools (PX-3). `approval`: when a call needs an approval, or an empty string.
    """

    dact: Dact
    intent: str
    acts: tuple[str, ...]
    tools: tuple[ToolId, ...]
    changes: tuple[ToolId, ...]
    tags: tuple[str, ...]
    confirms: bool
    approval: str

    def __str__(self) -> str:
        parts = [f"{self.dact} ({self.intent}): {', '.join(self.tools) or 'no tools'}"]
        if self.changes:
            parts.append(
                f"side effects: {', '.join(self.changes)}" + (", after a confirmation" * self.confirms)
            )
        if self.tags:
            parts.append(", ".join(tag.replace("_", " ") for tag in self.tags))
        if self.approval:
            parts.append(f"approval {self.approval}")
        return "; ".join(parts)


def summarize(domain: Domain) -> list[FlowSummary]:
    """Return a summary of each flow, in the ontology's order."""
    return [_summarize_flow(flow.spec, domain) for flow in domain.flows.values()]


def list_assumed(domain: Domain) -> dict[ToolId, tuple[str, ...]]:
    """Return the default tags of remote tools, by tool."""
    return {tool.tool_id: tool.assumed for tool in domain.tools.values() if tool.assumed}


def _summarize_flow(spec: FlowSpec, domain: Domain) -> FlowSummary:
    used = [domain.tools[use.tool_id] for use in spec.tools]
    tags = tuple(tag for tag in TAGS if any(getattr(tool, tag) for tool in used))
    return FlowSummary(
        dact=spec.dact,
        intent=spec.intent,
        acts=tuple(domain.acts[digit] for digit in read_acts(spec.dax)),
        tools=tuple(tool.tool_id for tool in used),
        changes=tuple(tool.tool_id for tool in used if tool.has_effect),
        tags=tags,
        confirms=spec.confirm,
        approval=_say_when_approved(used, tags),
    )


def _say_when_approved(used: list[ToolSpec], tags: tuple[str, ...]) -> str:
    if len(tags) == len(TAGS) or any(tool.requires_approval for tool in used):
        return "needed"
    return " or ".join(
        f"above {bound:g} of {name}" for tool in used for name, bound in tool.approval_above.items()
    )
