"""Compile an ontology's entities and answers to records."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from orchestrator.domain.compile.problems import Path, Problems, SourceFile, suggest
from orchestrator.domain.compile.tools import Services
from orchestrator.domain.model import Answer, Entity, EntityValue
from orchestrator.domain.schema import AnswerEntry, EntityEntry


def compile_entities(
    entries: Mapping[str, EntityEntry], services: Services, file: SourceFile, problems: Problems
) -> dict[str, Entity]:
    """Return all entities, with values from the file or from their provider."""
    return {name: _compile_entity(name, entry, services, file, problems) for name, entry in entries.items()}


def compile_answers(
    entries: Mapping[str, AnswerEntry], file: SourceFile, problems: Problems
) -> tuple[Answer, ...]:
    for name, entry in entries.items():
        if not entry.text.strip():
            problems.add(file, ("answers", name, "text"), "is missing")
        if not entry.examples:
            problems.add(file, ("answers", name, "examples"), "is missing: add questions that it answers")
    return tuple(
        Answer(name, entry.examples, entry.text.strip(), entry.digression) for name, entry in entries.items()
    )


def find_callable(
    name: str, services: Services, file: SourceFile, path: Path, problems: Problems
) -> Any | None:
    """Return the callable `name` of services.py, or report a problem and return None."""
    found = services.get(name)
    if callable(found):
        return found
    known = [one for one, value in services.items() if callable(value)]
    problems.add(file, path, f"services.py has no {name!r}{suggest(name, known)}")
    return None


def _compile_entity(
    name: str, entry: EntityEntry, services: Services, file: SourceFile, problems: Problems
) -> Entity:
    path: Path = ("entities", name)
    if entry.provider is None:
        if not entry.values:
            problems.add(file, path, "has neither values nor a provider")
        values = [
            EntityValue(canonical, value.name or canonical, value.aliases, value.metadata)
            for canonical, value in entry.values.items()
        ]
        return Entity(name, tuple(values), entry.learned_from)
    if entry.values:
        problems.add(file, (*path, "provider"), "an entity has values or a provider, not both")
    place = (*path, "provider")
    provider = find_callable(entry.provider, services, file, place, problems)
    provided = () if provider is None else _provide(provider, entry, file, place, problems)
    return Entity(name, provided, entry.learned_from)


def _provide(
    provider: Any, entry: EntityEntry, file: SourceFile, path: Path, problems: Problems
) -> tuple[EntityValue, ...]:
    """Call a domain's provider, and report any exception as a problem of the domain."""
    try:
        values = list(cast("Iterable[Any]", provider(**entry.options)))
    except Exception as error:  # noqa: BLE001 - a domain's code may raise anything
        problems.add(file, path, f"{entry.provider} fails: {type(error).__name__}: {error}")
        return ()
    if not values or not all(isinstance(value, EntityValue) for value in values):
        problems.add(file, path, f"{entry.provider} must return at least one EntityValue record")
        return ()
    return tuple(values)
