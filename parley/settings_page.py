"""``python -m parley.settings_page``: writes the reference of every setting, `docs/settings.md`, from the code.

What a setting is for stands where it is declared; nothing is described here.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import orjson
import yaml
from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from orchestrator.domain.configuration import DomainConfig
from orchestrator.settings import Settings
from orchestrator.settings.fields import EVERYBODY, Form, ReadBy

# Variables that are read outside of the settings: by commands, and by OpenTelemetry itself.
_OF_COMMANDS = {
    "PARLEY_HOST": (
        "127.0.0.1",
        "Where the gateway, or Flower, listens: `parley serve`, `python -m gateway`.",
    ),
    "PARLEY_PORT": ("8600, Flower 5555", "Its port."),
    "PARLEY_URL": ("", "The gateway that commands talk to; else the running `up`."),
    "PARLEY_API_KEY": ("", "The key that commands send it."),
    "FLOWER_BASIC_AUTH": ("", "`user:password` of Flower; required where others can reach it."),
    "OTEL_EXPORTER_OTLP_ENDPOINT": (
        "",
        "Where traces are sent, by OTLP over HTTP; none are made without it.",
    ),
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ("", "The same for traces alone; goes before."),
    "OTEL_EXPORTER_OTLP_HEADERS": ("", "`name=value,…` sent with them; their values are kept out of logs."),
    "OTEL_SERVICE_NAME": ("parley-gateway, parley-turns, …", "The service's name in traces."),
}

_BAR = "\\|"
_FORMS = {str: "text", bool: "`true` or `false`", SecretStr: "secret", Path: "path"}

_HEAD = """\
# Settings

Made from the code by `make docs`; change it there.

A process is configured by its environment. Every variable may be left in a file instead: `DATABASE_URL_FILE`
names a file that holds what `DATABASE_URL` would. A process that finds a value that it cannot use names
the variable in one line and ends. *Read by* names the roles of `parley serve`. What one assistant is like
stands in its folder's `domain.yaml`, section by section over shared defaults.
"""


def make_page() -> str:
    """Make the whole page, in Markdown."""
    commands = ((f"`{name}`", _code(default), what) for name, (default, what) in _OF_COMMANDS.items())
    parts = [
        _HEAD,
        "## Environment\n",
        _table(("variable", "default", "unit or form", "read by", "what for"), _environment()),
        "## Environment of commands and of traces\n",
        _table(("variable", "default", "what for"), commands),
        "## `domain.yaml`\n",
        *_domain(),
    ]
    return "\n".join(parts)


def _environment() -> Iterator[tuple[str, ...]]:
    descriptions = describe_fields(Settings)
    for name, field in Settings.model_fields.items():
        default = "required" if field.is_required() else _show(field.get_default(call_default_factory=True))
        yield f"`{field.alias}`", default, describe_form(field), _readers(field), descriptions[name]


def describe_form(field: FieldInfo) -> str:
    """Name the unit of a value, or the form in which it is written."""
    parts = get_args(field.annotation)
    notes = [*field.metadata, *(note for part in parts for note in getattr(part, "__metadata__", ()))]
    for form in (note for note in notes if isinstance(note, Form)):
        return form.name
    origin = get_origin(field.annotation)
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in parts)
    if origin in {dict, tuple}:
        return "JSON"
    (kind,) = {part for part in parts or (field.annotation,) if part is not NoneType}
    return _FORMS[kind]


def _readers(field: FieldInfo) -> str:
    """Name the roles that read it, as `parley serve` names them."""
    (readers,) = (note for note in field.metadata if isinstance(note, ReadBy))
    return "all" if readers == EVERYBODY else ", ".join(readers.roles)


def _domain() -> Iterator[str]:
    source = files("orchestrator.domain").joinpath("defaults.yaml").read_text(encoding="utf-8")
    defaults: dict[str, Any] = yaml.safe_load(source)
    for name, field in DomainConfig.model_fields.items():
        section = field.annotation
        if not (inspect.isclass(section) and issubclass(section, BaseModel)):
            continue
        descriptions = describe_fields(section)
        yield f"### {name}\n\n{_sentence(section.__doc__)}\n"
        given = defaults.get(name) or {}
        rows = (
            (f"`{key}`", _show(given.get(key)), descriptions.get(key, "")) for key in section.model_fields
        )
        yield _table(("key", "default", "what for"), rows)


def describe_fields(model: type[BaseModel]) -> dict[str, str]:
    """Read by field the text that stands under its declaration."""
    [declared] = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(declared, ast.ClassDef)
    found: dict[str, str] = {}
    field = ""
    for statement in declared.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                field = name
            case ast.Expr(value=ast.Constant(value=str(text))) if field:
                found[field] = _sentence(text)
            case _:
                field = ""
    return found


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, tuple("---" for _ in head), *rows)
    return "".join(f"| {' | '.join(cell.replace('|', _BAR) for cell in line)} |\n" for line in lines)


def _show(value: Any) -> str:
    if value is None or value is PydanticUndefined or value in ("", [], {}, ()):
        return ""
    return _code(value if isinstance(value, str) else orjson.dumps(value, default=str).decode())


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _sentence(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").replace("``", "`").split())


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/settings.md").write_text(make_page(), encoding="utf-8")
