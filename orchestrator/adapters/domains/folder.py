"""Load and check domains, from built-in packages or from other folders.

`domain.compile` validates the contents of the files.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from orchestrator.adapters.domains.code import (
    forget,
    import_policies,
    import_services,
    shipped_folder,
)
from orchestrator.adapters.domains.yaml_source import parse_yaml, read_text, read_yaml
from orchestrator.domain import configuration
from orchestrator.domain.compile import DomainSources, compile_domain, read_config
from orchestrator.domain.compile.problems import Problems, SourceFile, shorten, suggest
from orchestrator.domain.compile.skills import SkillSource
from orchestrator.domain.configuration import DomainConfig
from orchestrator.domain.guarding import Language, read_guarded_inputs
from orchestrator.domain.locales import ENGLISH
from orchestrator.domain.model import Domain, Implementation
from orchestrator.domain.schema import FlowEntry, OntologyFile
from orchestrator.errors import ConfigurationError, InvalidInput, Problem
from orchestrator.extras import is_missing, needs_extra
from orchestrator.models.templates import load_prompts
from orchestrator.turns.turn import IfBusy
from orchestrator.types import Dact, JsonObject, is_object

DEFAULTS = Path(configuration.__file__).with_name("defaults.yaml")
TEMPLATE_SUFFIX = ".md.j2"
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class LoadedDomain:
    """A loaded domain.

    Args:
        services: the service classes that implement tools, by name.
        policies: policy classes by flow name.
    """

    domain: Domain
    services: Mapping[str, type]
    policies: Mapping[Dact, type]


def load_domain(name_or_path: str | Path) -> LoadedDomain:
    """Load a built-in domain by name, or a domain folder by path.

    Raises ConfigurationError with all problems, if any.
    """
    problems = Problems()
    loaded = _load(name_or_path, problems)
    if problems.found or loaded is None:
        raise ConfigurationError(problems.found)
    return loaded


def check_domain(name_or_path: str | Path) -> list[Problem]:
    """Return all problems in a domain, or an empty list if the domain can be loaded."""
    problems = Problems()
    _load(name_or_path, problems)
    return problems.found


def shipped_domains() -> list[str]:
    folder = shipped_folder()
    return sorted(path.parent.name for path in folder.glob("*/ontology.yaml")) if folder else []


def domain_folder(name_or_path: str | Path) -> Path | None:
    return _find(name_or_path, Problems())


def served_folders(name_or_path: str | Path) -> list[Path]:
    """Return the folders of all available domains: the built-in domains, then the domain `name_or_path`."""
    named = domain_folder(name_or_path)
    shipped = [folder for name in shipped_domains() if (folder := domain_folder(name)) not in {None, named}]
    return [folder for folder in (*shipped, named) if folder is not None]


@cache
def _defaults() -> JsonObject:
    problems = Problems()
    file = read_yaml(DEFAULTS, DEFAULTS.name, problems)
    if problems.found:
        raise ConfigurationError(problems.found)
    return file.body


def _load(name_or_path: str | Path, problems: Problems) -> LoadedDomain | None:
    folder = _find(name_or_path, problems)
    if folder is None:
        return None
    forget(folder)
    sources = _gather(folder, problems)
    domain, policies = compile_domain(sources, problems)
    targets = {tool.target for tool in domain.tools.values() if tool.implementation is Implementation.SERVICE}
    names = {target.partition(".")[0] for target in targets}
    services = {name: sources.services[name] for name in names if name in sources.services}
    if not problems.found:
        _check_python_sandbox(domain, problems)
    return LoadedDomain(domain, services, policies)


def _check_python_sandbox(domain: Domain, problems: Problems) -> None:
    """Report a tool that runs model-written Python if the interpreter for it is not installed."""
    for name, tool in domain.tools.items():
        languages = {guarded.language for guarded in read_guarded_inputs(tool.input_schema)}
        if Language.PYTHON in languages and is_missing("sandbox"):
            problems.add(SourceFile("tools.yaml"), ("tools", name), needs_extra("sandbox"))


def _find(name_or_path: str | Path, problems: Problems) -> Path | None:
    """Return the domain's folder, or report a problem and return None."""
    text = str(name_or_path)
    if text in (names := shipped_domains()):
        return (shipped_folder() or Path()).resolve() / text
    place = SourceFile("domain")
    try:
        folder = Path(text).expanduser().resolve()
        is_folder, exists = folder.is_dir(), folder.exists()
    except (OSError, ValueError, RuntimeError):
        folder, is_folder, exists = Path(), False, False
    if not text or not exists:
        hint = suggest(text, names) or f"; built-in domains are {', '.join(names)}"
        message = f"Unknown domain {shorten(text)}: neither built in nor a folder{hint}."
        problems.add(place, (), message)
    elif not is_folder:
        problems.add(
            place, (), f"{shorten(text)} is not a folder; a domain is a folder with an ontology.yaml."
        )
    elif not (folder / "ontology.yaml").is_file():
        problems.add(place, (), f"{shorten(text)} has no ontology.yaml, which every domain needs.")
    else:
        return folder
    return None


def _gather(folder: Path, problems: Problems) -> DomainSources:
    ontology = _read_mapping(folder, "ontology.yaml", problems)
    if ontology.body is None and not problems.found:
        problems.add(ontology, (), "is empty; a domain needs flows")
    return DomainSources(
        name=folder.name,
        folder=str(folder),
        defaults=_defaults(),
        config=_read_configuration(folder, problems),
        ontology=ontology,
        tools=_read_mapping(folder, "tools.yaml", problems),
        services=import_services(folder, problems),
        policies=import_policies(folder, problems),
        templates=_read_templates(folder, problems),
        skills={**_read_shared_skills(ontology, problems), **_read_skills(folder, problems)},
        lexicons=tuple(
            read_yaml(path, f"languages/{path.name}", problems)
            for place in (DEFAULTS.parent, folder)
            for path in sorted((place / "languages").glob("*.yaml"))
        ),
        evaluations=tuple(
            read_yaml(path, f"evaluations/{path.name}", problems)
            for path in sorted((folder / "evaluations").glob("*.yaml"))
        ),
    )


def _read_mapping(folder: Path, name: str, problems: Problems) -> SourceFile:
    """Read a YAML file, or return an empty source if the file doesn't exist."""
    path = folder / name
    return read_yaml(path, name, problems) if path.exists() else SourceFile(name)


def _read_configuration(folder: Path, problems: Problems) -> SourceFile:
    """Read domain.yaml, and add the domain's prompts as a section.

    Invalid prompts are reported and left out.
    """
    file = _read_mapping(folder, "domain.yaml", problems)
    try:
        prompts = read_prompts(folder / "prompts")
    except ConfigurationError as error:
        for found in error.problems:
            problems.add(SourceFile(f"prompts/{found.place}"), (), found.message)
        return file
    return replace(file, body={**(file.body or {}), "prompts": prompts}) if prompts else file


def read_prompts(folder: Path) -> dict[str, str]:
    """Return a folder's prompt texts by file name. Raises ConfigurationError with all problems."""
    problems = Problems()
    read = {path.name: read_text(path, path.name, problems) for path in sorted(folder.glob("*.md"))}
    texts = {name: text for name, text in read.items() if text is not None}
    if problems.found:
        raise ConfigurationError(problems.found)
    if texts:
        load_prompts(texts)
    return texts


def _read_templates(folder: Path, problems: Problems) -> dict[str, str]:
    paths = sorted((folder / "templates").glob(f"*{TEMPLATE_SUFFIX}"))
    texts = {path: read_text(path, f"templates/{path.name}", problems) for path in paths}
    return {path.name.removesuffix(TEMPLATE_SUFFIX): text for path, text in texts.items() if text is not None}


def _read_shared_skills(ontology: SourceFile, problems: Problems) -> dict[str, SkillSource]:
    """Return the built-in skills for the domain's flows, by flow name."""
    flows = ontology.body.get("flows") if is_object(ontology.body) else None
    shared = _read_skills(DEFAULTS.parent, problems)
    return {dact: skill for dact, skill in shared.items() if is_object(flows) and dact in flows}


def _read_skills(folder: Path, problems: Problems) -> dict[str, SkillSource]:
    skills: dict[str, SkillSource] = {}
    for path in sorted((folder / "skills").glob("*/SKILL.md")):
        name = f"skills/{path.parent.name}/SKILL.md"
        text = read_text(path, name, problems)
        if text is not None:
            skills[path.parent.name] = _split_skill(text, name, problems)
    return skills


def _split_skill(text: str, name: str, problems: Problems) -> SkillSource:
    """Split a skill into its front matter, which is between two lines of dashes, and its body.

    Line numbers count from the top of the file. Missing front matter is reported.
    """
    parts = _FENCE.split(text, maxsplit=2)
    if len(parts) < 3 or parts[0].strip():
        problems.add(
            SourceFile(name), (), "should begin with front matter: name and description between two --- lines"
        )
        return SkillSource(SourceFile(name), text)
    matter = parse_yaml("\n" * parts[0].count("\n") + parts[1], name, problems)
    return SkillSource(matter, parts[2])


class DomainRegistry:
    """The domains that sessions can use.

    Args:
        configured: name of a built-in domain, or path of a folder. This domain is the default for new
            sessions.
    """

    def __init__(self, configured: str) -> None:
        self._configs: dict[str, DomainConfig] = {}
        self._flows: dict[str, Mapping[str, FlowEntry]] = {}
        self._places = {name: name for name in shipped_domains()}
        self.default = configured
        if configured not in self._places:
            folder = Path(configured).expanduser().resolve()
            self.default = folder.name
            self._places[self.default] = str(folder)

    def resolve(self, name: str | None) -> str:
        """Return `name`, or the default domain if `name` is None. Raises InvalidInput for an unknown domain."""
        if name is None:
            return self.default
        if name not in self._places:
            known = ", ".join(sorted(self._places))
            raise InvalidInput(f"Unknown domain {name!r}; available domains: {known}.", field="domain")
        return name

    def names(self) -> list[str]:
        return sorted(self._places)

    def place(self, name: str) -> str:
        """Return the name or folder to pass to `load_domain`. Raises InvalidInput for an unknown domain."""
        return self._places[self.resolve(name)]

    def config(self, name: str) -> DomainConfig:
        """Return the domain's configuration, which is cached after the first call.

        Raises InvalidInput for an unknown domain, or ConfigurationError for an invalid file.
        """
        known = self._configs.get(name)
        if known is None:
            problems = Problems()
            folder = _find(self.place(name), problems)
            if folder is not None:
                known = read_config(_defaults(), _read_configuration(folder, problems), problems)
            if known is None or problems.found:
                raise ConfigurationError(problems.found)
            self._configs[name] = known
        return known

    def language(self, name: str) -> str:
        """Return a domain's default language, or English if the domain is unknown or invalid."""
        try:
            return self.config(name).language.default
        except (ConfigurationError, InvalidInput):
            return ENGLISH

    def events(self, name: str) -> frozenset[str]:
        """Return the external events that start a flow, or an empty set if the ontology is invalid.

        Raises InvalidInput for an unknown domain.
        """
        return frozenset(event for flow in self.flows(name).values() for event in flow.events)

    def flows(self, name: str) -> Mapping[str, FlowEntry]:
        """Return the domain's flows, cached after the first call, or an empty mapping for an invalid ontology.

        Raises InvalidInput for an unknown domain.
        """
        known = self._flows.get(name)
        if known is None:
            folder = _find(self.place(name), Problems())
            ontology = None if folder is None else _read_mapping(folder, "ontology.yaml", Problems()).body
            known = self._flows[name] = _read_flows(ontology)
        return known

    def if_busy(self, name: str) -> IfBusy:
        """Return the default `if_busy` for a domain's sessions.

        For an invalid domain, return `understand`, because each of its turns reports the problems. Raises
        InvalidInput for an unknown domain.
        """
        try:
            return IfBusy(self.config(name).session.if_busy)
        except ConfigurationError:
            return IfBusy.UNDERSTAND


def _read_flows(ontology: object) -> Mapping[str, FlowEntry]:
    try:
        return OntologyFile.model_validate(ontology).flows
    except ValidationError:  # each turn of the domain reports the problems
        return {}
