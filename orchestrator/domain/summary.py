"""A review of a valid domain: each flow's tools with their tags, and declarations that are rarely intended."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import get_args

from jinja2.sandbox import SandboxedEnvironment

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.domain.acts import read_acts
from orchestrator.domain.compile.problems import suggest
from orchestrator.domain.compile.templates import members_of
from orchestrator.domain.model import Domain, ToolSpec
from orchestrator.domain.tool_schema import Tag
from orchestrator.types import Dact, ToolId

TAGS: tuple[str, ...] = get_args(Tag)


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


def summarize(domain: Domain) -> list[FlowSummary]:
    return [_summarize_flow(flow.spec, domain) for flow in domain.flows.values()]


def list_assumed(domain: Domain) -> dict[ToolId, tuple[str, ...]]:
    """Return the tags that Parley assumes for remote tools, by tool."""
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
        f"{name} above {bound:g}" for tool in used for name, bound in tool.approval_above.items()
    )


def list_hints(
    domain: Domain, with_policies: frozenset[str] = frozenset(), worded: Collection[str] = ()
) -> list[str]:
    """Return a sentence for each declaration that is rarely intended.

    `with_policies`: flows whose own policy can return data that no tool declares. `worded`: languages for
    which Parley has its own sentences.
    """
    return [
        *_hours(domain),
        *_cannot_undo(domain),
        *_unknown_data(domain, with_policies),
        *_other_language(domain, worded),
    ]


def _other_language(domain: Domain, worded: Collection[str]) -> Iterator[str]:
    language = domain.config.language.default
    if worded and language not in worded:
        yield (
            f"domain.yaml: language.default: Parley has templates in {', '.join(sorted(worded))}; in {language!r} it "
            "uses the English ones unless templates/ overrides them."
        )


def _hours(domain: Domain) -> Iterator[str]:
    for dact, flow in domain.flows.items():
        for slot in flow.spec.slots.values():
            if slot.type == "time" and slot.part_of_day is None:
                yield (
                    f"ontology.yaml: flows.{dact}.slots.{slot.name}: “at 9” can be morning or evening; "
                    "set `part_of_day`."
                )


def _cannot_undo(domain: Domain) -> Iterator[str]:
    undoing = {tool.compensation for tool in domain.tools.values()}
    lasting = [
        tool.tool_id
        for tool in domain.tools.values()
        if tool.has_effect and tool.compensation is None and tool.tool_id not in undoing
    ]
    if lasting:
        yield (
            f"tools.yaml: {', '.join(lasting)}: without a `compensation`, a completed call can't be undone."
        )


def _unknown_data(domain: Domain, with_policies: frozenset[str]) -> Iterator[str]:
    """Yield a hint for each `data` key that a template uses but none of the flow's tools declares."""
    for dact, flow in domain.flows.items():
        text = domain.templates.get(dact)
        if text is None or dact in with_policies or dact in domain.skills:
            continue
        schemas = [domain.tools[use.tool_id].output_schema for use in flow.spec.tools]
        known = {name for schema in schemas for name in schema.get("properties", {})}
        for name, line in members_of(SandboxedEnvironment().parse(text), ("data",)):
            if name not in known and not hasattr(dict, name):
                yield (
                    f"templates/{dact}.md.j2: line {line}: no tool of {dact} declares the output {name!r}"
                    f"{suggest(name, known)}"
                )
