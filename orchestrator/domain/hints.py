"""Hints about a valid domain: declarations that are allowed but rarely intended."""

from collections.abc import Collection, Iterator

from jinja2.sandbox import SandboxedEnvironment

from orchestrator.dialogue.specification import FlowSpec
from orchestrator.domain.compile.problems import suggest
from orchestrator.domain.compile.templates import members_of
from orchestrator.domain.model import Domain


def list_hints(
    domain: Domain, with_policies: frozenset[str] = frozenset(), worded: Collection[str] = ()
) -> list[str]:
    """Return one sentence per hint.

    `with_policies`: flows whose policy can return more data. `worded`: languages in which the runtime
    answers.
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
            f"domain.yaml: language.default: Parley has sentences in {', '.join(sorted(worded))}; in {language!r} it "
            "uses English ones unless templates/ replaces them."
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
            f"tools.yaml: {', '.join(lasting)}: without a `compensation`, users who change their mind afterwards "
            "can't undo it."
        )


def _unknown_data(domain: Domain, with_policies: frozenset[str]) -> Iterator[str]:
    """Yield a hint for each key of `data` in a template that no tool of the flow declares."""
    for dact, flow in domain.flows.items():
        text = domain.templates.get(dact)
        if text is None or dact in with_policies or dact in domain.skills:
            continue
        known = _outputs(domain, flow.spec)
        for name, line in members_of(SandboxedEnvironment().parse(text), ("data",)):
            if name not in known and not hasattr(dict, name):
                yield (
                    f"templates/{dact}.md.j2: line {line}: no tool of {dact} declares the output {name!r}"
                    f"{suggest(name, known)}"
                )


def _outputs(domain: Domain, spec: FlowSpec) -> set[str]:
    return {
        name for use in spec.tools for name in domain.tools[use.tool_id].output_schema.get("properties", {})
    }
