"""Tests show that every setting has an effect, and the reference has all environment variables."""

from __future__ import annotations

import inspect
import re
from functools import cache

from pydantic import BaseModel

from orchestrator.domain.configuration import DomainConfig
from orchestrator.settings import Settings
from parley.settings_page import make_page
from tests.shape.sources import REPOSITORY, Facts, facts_of, files, name_of, python_files

PACKAGES = ("orchestrator", "internal_flows", "workers", "gateway", "parley", "lab", "domains")
DECLARED_IN = {"orchestrator/settings/__init__.py", "orchestrator/domain/configuration.py"}
OWN_FILES = {"PARLEY_HEARTBEAT_FILE"}
"""Variables that contain a file name, not another variable's file."""
FOREIGN = {"PARLEY_IMAGE", "PARLEY_PUBLISH"}
"""Variables that only docker-compose.yml reads."""


OF_SETTINGS = {"test_settings.py", "test_settings_page.py", "test_settings_used.py"}
"""Tests of reading and displaying settings, which change no setting."""


@cache
def turning() -> list[tuple[str, frozenset[str]]]:
    """Return, by file of tests, test domains and transcripts, the lower-case text and assigned names.

    A name in quotes counts, because a test may loop over several names.
    """
    given = re.compile(r"\b(\w+)[\"']?\s*[=:]|[\"'](\w+)[\"']")
    paths = [path for path in files("tests") if path.suffix in {".py", ".yaml"}]
    texts = [path.read_text() for path in paths if path.name not in OF_SETTINGS]
    return [
        (text.lower(), frozenset(name for pair in given.findall(text) for name in pair)) for text in texts
    ]


def is_turned(*names: str, section: str = "") -> bool:
    """Return whether a test that mentions the section assigns a setting with one of these names."""
    return any(section in text and not given.isdisjoint(names) for text, given in turning())


@cache
def facts() -> list[Facts]:
    """Return the facts of the code, except for the declarations of settings."""
    return [facts_of(path) for path in python_files(*PACKAGES) if name_of(path) not in DECLARED_IN]


def attributes_read() -> frozenset[str]:
    return frozenset[str]().union(*(each.read for each in facts()))


@cache
def names_together() -> list[tuple[set[str], set[str]]]:
    """Return, by file, the lower-case names, and the attributes that are read."""
    found = [({one.lower() for one in each.read | each.named}, {*each.read}) for each in facts()]
    templates = (path.read_text() for path in files(*PACKAGES) if path.suffix == ".j2")
    found += [({"persona"}, set(re.findall(r"persona\.(\w+)", text))) for text in templates]
    return found


def settings_of_a_domain() -> list[tuple[str, str]]:
    """Return the sections with their keys."""
    sections = {
        name: field.annotation
        for name, field in DomainConfig.model_fields.items()
        if inspect.isclass(field.annotation) and issubclass(field.annotation, BaseModel)
    }
    assert sections
    return [(section, key) for section, model in sections.items() for key in model.model_fields]


def test_every_setting_of_the_environment_is_read_by_somebody() -> None:
    assert {name for name in Settings.model_fields if name not in attributes_read()} == set()


def test_every_setting_of_a_domain_is_read_by_somebody() -> None:
    """In a file that mentions the section, too, because many things are named `deadline_s`."""
    unused = {
        f"{section}.{key}"
        for section, key in settings_of_a_domain()
        if not any(section in named and key in read for named, read in names_together())
    }
    assert unused == set()


def test_every_setting_of_the_environment_is_turned_by_a_test() -> None:
    turned = {name for name, field in Settings.model_fields.items() if is_turned(name, str(field.alias))}
    assert set(Settings.model_fields) - turned == set()


def test_every_setting_of_a_domain_is_turned_by_a_test() -> None:
    every = settings_of_a_domain()
    assert {f"{section}.{key}" for section, key in every if not is_turned(key, section=section)} == set()


def test_every_variable_that_the_code_names_is_on_the_page() -> None:
    texts = frozenset[str]().union(*(facts_of(path).texts for path in python_files(*PACKAGES)))
    named = {
        text if text in OWN_FILES else text.removesuffix("_FILE")
        for text in texts
        if re.fullmatch(r"(PARLEY|OPENAI|OTEL|FLOWER)_[A-Z_]+|DATABASE_URL|REDIS_URL", text)
    }
    assert len(named) > 20
    page = make_page()
    assert {name for name in named if f"| `{name}` |" not in page} == set()


def test_every_variable_that_compose_gives_is_on_the_page() -> None:
    page, text = make_page(), (REPOSITORY / "docker-compose.yml").read_text()
    given = set(re.findall(r"^\s+(PARLEY_[A-Z_]+?)(?:_FILE)?:", text, re.MULTILINE))
    given |= set(re.findall(r"\$\{(PARLEY_[A-Z_]+)", text)) - FOREIGN
    assert len(given) > 10
    assert {name for name in given if f"| `{name}` |" not in page} == set()
