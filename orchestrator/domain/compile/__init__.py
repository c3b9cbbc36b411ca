"""Compile the contents of a domain's folder into a domain, or report all problems.

`adapters.domains.folder` reads the files and imports the code.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from orchestrator.dialogue.flow import make_flow_class
from orchestrator.dialogue.slots import SLOT_TYPES
from orchestrator.dialogue.specification import Family, FlowSpec
from orchestrator.domain.compile.entities import (
    CompiledTypes,
    compile_answers,
    compile_entities,
    compile_slot_types,
)
from orchestrator.domain.compile.flows import Vocabulary, compile_acts, compile_flows
from orchestrator.domain.compile.problems import Place, Problems, SourceFile
from orchestrator.domain.compile.skills import SkillSource, compile_skills
from orchestrator.domain.compile.templates import check_templates
from orchestrator.domain.compile.tools import compile_tools
from orchestrator.domain.configuration import DomainConfig, merge_sections
from orchestrator.domain.evaluations import EvaluationFile
from orchestrator.domain.model import Domain, ToolSpec
from orchestrator.domain.placeholders import credential_placeholders
from orchestrator.domain.schema import LexiconFile, OntologyFile
from orchestrator.types import Dact, JsonObject, ToolId, is_object

POLICY_FILES: Mapping[str, Family] = {f"{family.value.lower()}_policies.py": family for family in Family}


@dataclass(frozen=True, slots=True)
class PolicyCode:
    file: str
    cls: type


@dataclass(frozen=True, slots=True)
class DomainSources:
    """The contents of a domain's folder.

    `services`: public objects of services.py, by name. `templates`: texts by file name without ``.md.j2``.
    `skills`: sources by folder name.
    """

    name: str
    folder: str
    defaults: JsonObject
    config: SourceFile
    ontology: SourceFile
    tools: SourceFile
    services: Mapping[str, Any] = field(default_factory=dict[str, Any])
    policies: tuple[PolicyCode, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict[str, str])
    skills: Mapping[str, SkillSource] = field(default_factory=dict[str, SkillSource])
    evaluations: tuple[SourceFile, ...] = ()
    lexicons: tuple[SourceFile, ...] = ()


def compile_domain(sources: DomainSources, problems: Problems) -> tuple[Domain, dict[Dact, type]]:
    """Check and assemble a domain. Return the domain, and its own policy classes by flow name.

    The result is usable only if `problems` stays empty.
    """
    config = read_config(sources.defaults, sources.config, problems)
    manifest, place = Place(problems, sources.tools), Place(problems, sources.ontology)
    tools = compile_tools(manifest, sources.services, config.resilience)
    ontology = problems.read(OntologyFile, sources.ontology, sources.ontology.body)
    intents = _name_intents(ontology, place.at("intents"))
    types = compile_slot_types(ontology.slot_types, ontology.flows, sources.services, place.at("slot_types"))
    type_names = [*SLOT_TYPES, *ontology.slot_types]
    language = config.language.default
    acts = compile_acts(ontology.acts, place.at("acts"))
    vocabulary = Vocabulary(intents, ontology.entities, type_names, tools, sources.skills, acts, language)
    specs = compile_flows(ontology.flows, vocabulary, place.at("flows"))
    policies = _assign_policies(ontology, specs, sources.policies, place)
    entities = compile_entities(ontology.entities, sources.services, place.at("entities"))
    answers = compile_answers(ontology.answers, place.at("answers"))
    _check_commands(config, ontology, Place(problems, sources.config, ("commands",)))
    _check_credentials(config, tools, manifest.at("tools"))
    check_templates(sources.templates, ontology.flows, problems)
    for file in sources.evaluations:
        _check_evaluation(ontology, Place(problems, file))
    skills = compile_skills(sources.skills, ontology.flows, tools, problems)
    domain = Domain(
        name=sources.name,
        folder=sources.folder,
        config=config,
        acts={digit: act.name for digit, act in acts.items()},
        flows=_make_classes(specs, types, problems),
        entities=entities,
        tools=tools,
        answers=answers,
        templates=sources.templates,
        skills=skills,
        slot_types=types.types,
        slot_patterns=types.patterns,
        lexicons=_read_lexicons(sources.lexicons, problems),
    )
    return domain, policies


def _read_lexicons(files: Iterable[SourceFile], problems: Problems) -> dict[str, tuple[LexiconFile, ...]]:
    """Parse the lexicons, and group them by language code, which is the file name."""
    lexicons: dict[str, tuple[LexiconFile, ...]] = {}
    for file in files:
        code = PurePath(file.name).stem
        read = problems.read(LexiconFile, file, file.body)
        lexicons[code] = (*lexicons.get(code, ()), read)
    return lexicons


def _make_classes(
    specs: Mapping[Dact, FlowSpec], types: CompiledTypes, problems: Problems
) -> dict[Dact, Any]:
    if problems.found:
        return {}
    return {dact: make_flow_class(spec, types.types) for dact, spec in specs.items()}


def read_config(defaults: JsonObject, file: SourceFile, problems: Problems) -> DomainConfig:
    """Merge the valid parts of domain.yaml over the defaults, and report the invalid parts."""
    body = file.body if is_object(file.body) else None
    if body is None and file.body is not None:
        problems.add(file, (), "should have sections, such as persona:")
    merged = merge_sections(defaults, body or {})
    return problems.read(DomainConfig, file, merged, fallback=defaults)


def _name_intents(ontology: OntologyFile, place: Place) -> dict[str, Family]:
    """Map each accepted intent name to its family. A domain can add its own names for four families."""
    intents = {family.value: family for family in Family}
    for family, name in ontology.intents.items():
        if not name.strip():
            place.add("is empty", family)
        elif intents.setdefault(name, Family(family)) is not Family(family):
            place.add(f"{name!r} already names {intents[name].value}", family)
    return intents


def _assign_policies(
    ontology: OntologyFile, specs: Mapping[Dact, FlowSpec], policies: Collection[PolicyCode], place: Place
) -> dict[Dact, type]:
    """Return the policy classes by flow name. A policy's `dact` names its flow, or a flow names its policy."""
    by_name = {code.cls.__name__: code for code in policies}

    def place_of(code: PolicyCode) -> Place:
        return Place(place.problems, SourceFile(f"policies/{code.file}"), (code.cls.__name__,))

    assigned: dict[Dact, PolicyCode] = {}
    for code in policies:
        dact = getattr(code.cls, "dact", None)
        if dact in specs:
            assigned[Dact(str(dact))] = code
        elif dact:
            place_of(code).check_known(str(dact), specs, "flow", "dact")
    for dact, entry in ontology.flows.items():
        if entry.policy in by_name:
            assigned[Dact(dact)] = by_name[entry.policy]
        elif entry.policy is not None:
            place.check_known(entry.policy, by_name, "policy", "flows", dact, "policy")
    for dact, code in assigned.items():
        if (family := POLICY_FILES.get(code.file)) not in (None, specs[dact].family):
            message = f"{dact} is a {specs[dact].family.value} flow; this file is for {family} flows"
            place_of(code).add(message)
    return {dact: code.cls for dact, code in assigned.items()}


def _check_commands(config: DomainConfig, ontology: OntologyFile, commands: Place) -> None:
    for index, command in enumerate(config.commands):
        place = commands.at(index)
        if (command.flow is None) == (command.answer is None):
            place.add("should name either a flow or an answer")
        elif command.flow is not None:
            place.check_known(command.flow, ontology.flows, "flow", "flow")
        elif command.answer is not None:
            place.check_known(command.answer, ontology.answers, "answer", "answer")
        for dact in command.after:
            place.check_known(dact, ontology.flows, "flow", "after")


def _check_credentials(config: DomainConfig, tools: Mapping[ToolId, ToolSpec], place: Place) -> None:
    for tool_id, tool in tools.items():
        texts: Mapping[str, str] = tool.options.get("headers") or {}
        for header, text in texts.items():
            for name in credential_placeholders(text):
                kind = "credential in domain.yaml"
                place.check_known(name, config.credentials, kind, tool_id, "http", "headers", header)


def _check_evaluation(ontology: OntologyFile, file: Place) -> None:
    read = file.problems.read(EvaluationFile, file.file, file.file.body)
    for number, conversation in enumerate(read.conversations):
        for index, turn in enumerate(conversation.turns):
            place = file.at("conversations", number, "turns", index)
            if (turn.user is None) == (turn.action is None):
                place.add("should have either a user text or an action")
            expect = turn.expect
            for dact in (expect.flow, *(expect.flows or ()), *(expect.completed or ())):
                if dact is not None:
                    place.check_known(dact, ontology.flows, "flow", "expect")
