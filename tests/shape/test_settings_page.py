"""The settings reference matches the code."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from pydantic.fields import FieldInfo

from orchestrator.settings import Settings
from orchestrator.settings.fields import ReadBy
from parley.roles import Role
from parley.settings_page import describe_fields
from tests.cases import for_each
from tests.shape.sources import REPOSITORY

PAGE = REPOSITORY / "docs" / "settings.md"
FIELDS = Settings.model_fields
READS = {
    "gateway": "gateway/**/*.py",
    "turns": "workers/{app,worker_lifecycle,process,periodic}.py",
    "internal": "workers/{app,worker_lifecycle,process,periodic}.py",
    "beat": "workers/internal/schedule.py",
    "flower": "workers/flower_app.py",
}
"""Code of single roles. Code for stores and models of several roles is in the orchestrator."""


def roles_of(field: FieldInfo) -> set[str]:
    (declared,) = (note for note in field.metadata if isinstance(note, ReadBy))
    return set(declared.roles)


@cache
def read_in(*places: str) -> set[str]:
    """Return the settings that these files read as `settings.…`."""
    found: set[str] = set()
    for place in places:
        for path in REPOSITORY.glob(place):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Attribute) or node.attr not in FIELDS or node.attr in found:
                    continue
                if "settings" in ast.unparse(node.value):
                    found.add(node.attr)
    return found


@cache
def own(role: str) -> set[str]:
    before, braces, after = READS[role].partition("{")
    names, _, ending = after.partition("}")
    return (
        read_in(*(f"{before}{name}{ending}" for name in names.split(","))) if braces else read_in(READS[role])
    )


@for_each("name", FIELDS)
def test_each_setting_is_told_whole(name: str) -> None:
    """Its variable, default, unit or form, the processes that read it, and its purpose."""
    field = FIELDS[name]
    (row,) = re.findall(rf"^\| `{field.alias}` \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    default, form, readers, what = (cell.strip() for cell in row.split(" | "))
    empty = field.get_default() in (None, (), {}) and field.default_factory is None
    assert bool(default) != (empty or field.default_factory is not None)
    assert form
    assert readers
    assert what.endswith((".", ".`"))
    assert roles_of(field) <= {role.value for role in Role}


@pytest.mark.parametrize("role", ["gateway", "beat", "flower"])
def test_who_reads_a_setting_is_named(role: str) -> None:
    missing = {name for name in own(role) if role not in roles_of(FIELDS[name])}
    assert missing == set()


def test_who_is_named_reads_it() -> None:
    """In code of the role, or in code that opens stores and models for it."""
    shared = read_in(
        "orchestrator/bootstrap.py", "orchestrator/adapters/*.py", "orchestrator/adapters/models/*.py"
    )
    idle = {
        (role, name)
        for name, field in FIELDS.items()
        for role in roles_of(field)
        if name not in own(role) | shared
    }
    assert idle == set()
    workers = own("turns") - {"domain"}
    assert {name for name in workers if not roles_of(FIELDS[name]) & {"turns", "internal"}} == set()


def test_what_stands_under_a_setting_describes_it() -> None:
    assert describe_fields(Settings)["broker_url"].startswith("Celery's broker")
