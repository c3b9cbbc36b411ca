"""Compile SKILL.md files into skills, and check them against the flow and the manifest (PX-5)."""

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.dialogue.specification import Mode
from orchestrator.domain.compile.problems import Place, Problems, SourceFile
from orchestrator.domain.guarding import Language, read_guarded_inputs
from orchestrator.domain.model import COMPONENT_NAMES, SkillSpec, ToolSpec
from orchestrator.domain.portable import find_refused
from orchestrator.domain.schema import FlowEntry, SkillEntry
from orchestrator.types import Dact, JsonObject, ToolId

MOST_TOOLS = 3
"""Maximum number of tools that a skill can use."""


@dataclass(frozen=True, slots=True)
class SkillSource:
    """The content of a SKILL.md file: the front matter as data, the rest as text."""

    file: SourceFile
    text: str


def compile_skills(
    sources: Mapping[str, SkillSource],
    flows: Mapping[str, FlowEntry],
    tools: Mapping[ToolId, ToolSpec],
    problems: Problems,
) -> dict[Dact, SkillSpec]:
    skills: dict[Dact, SkillSpec] = {}
    for dact, source in sources.items():
        place = Place(problems, source.file)
        if not place.check_known(dact, flows, "flow") or source.file.body is None:
            continue
        entry = problems.read(SkillEntry, source.file, source.file.body)
        skill = _specify(dact, entry, source.text, flows[dact])
        _check(skill, entry, flows[dact], place)
        _check_code(skill, tools, place)
        _check_portable(skill, tools, place)
        skills[skill.dact] = skill
    return skills


def _specify(dact: str, entry: SkillEntry, text: str, flow: FlowEntry) -> SkillSpec:
    of_flow = tuple(use.tool_id for use in flow.tools if use.tool_id)
    return entry.fill(
        SkillSpec,
        dact=Dact(dact),
        instructions=text.strip(),
        tools=tuple(ToolId(name) for name in (of_flow if entry.tools is None else entry.tools)),
        reflect=flow.reflect if entry.reflect is None else entry.reflect,
    )


def _check(skill: SkillSpec, entry: SkillEntry, flow: FlowEntry, place: Place) -> None:
    for key in ("name", "description"):
        if not getattr(entry, key):
            place.add("is missing from the front matter", key)
    if entry.name and entry.name.replace("-", "_") != skill.dact:
        place.add(f"should be the name of its folder and flow, {skill.dact}", "name")
    if not skill.instructions:
        place.add("has no instructions below its front matter")
    if skill.reflect and not skill.criteria:
        place.add("is missing: `reflect` needs criteria to review the result", "criteria")
    of_flow = [use.tool_id for use in flow.tools if use.tool_id]
    for index, name in enumerate(entry.tools or ()):
        place.check_known(name, of_flow, "flow tool", "tools", index)
    for index, name in enumerate(entry.components):
        place.check_known(name, COMPONENT_NAMES, "component", "components", index)
    if flow.mode is not Mode.DIRECT and not 1 <= len(skill.tools) <= MOST_TOOLS:
        count = len(skill.tools)
        place.add(f"a skill must use 1 to {MOST_TOOLS} of its flow's tools; this one uses {count}", "tools")


def _check_code(skill: SkillSpec, tools: Mapping[ToolId, ToolSpec], place: Place) -> None:
    if skill.result is not None:
        place.at("result").check_schema(skill.result)
    if skill.stream is not None:
        shapes: JsonObject = (skill.result or {}).get("properties") or {}
        texts = [name for name, shape in shapes.items() if shape.get("type") == "string"]
        place.check_known(skill.stream, texts, "text output", "stream")
    taken: set[Language] = {
        one.language
        for name in skill.tools
        if name in tools
        for one in read_guarded_inputs(tools[name].input_schema)
    }
    if taken and skill.language not in taken:
        place.add(f"should be a language that its tools accept: {', '.join(sorted(taken))}", "language")


def _check_portable(skill: SkillSpec, tools: Mapping[ToolId, ToolSpec], place: Place) -> None:
    """Report schemas that would make a model provider reject the skill's requests."""
    for name in skill.tools:
        for keyword in find_refused(tools[name].input_schema) if name in tools else ():
            place.add(
                f"{name} has {keyword!r} at the top level of its input_schema, which model providers reject: "
                "describe only the inputs, and let the service check the rest",
                "tools",
            )
    for keyword in find_refused(skill.result or {}):
        place.add("is at the top level of the schema, which model providers reject", "result", keyword)
