"""Generate the settings reference, `docs/settings.md`, from the declared settings."""

import ast
import inspect
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

# Variables that commands or OpenTelemetry read, and that `Settings` doesn't declare.
_OF_COMMANDS = {
    "PARLEY_HOST": (
        "127.0.0.1",
        "Address that the gateway or Flower listens on.",
    ),
    "PARLEY_PORT": ("8600, Flower 5555", "Port that the gateway or Flower listens on."),
    "PARLEY_URL": (
        "",
        "URL of the gateway that commands use. Default: the gateway of a running `parley up`.",
    ),
    "PARLEY_API_KEY": ("", "API key that commands send."),
    "FLOWER_BASIC_AUTH": ("", "`user:password` for Flower. Required if other machines can reach Flower."),
    "OTEL_EXPORTER_OTLP_ENDPOINT": (
        "",
        "URL of the OTLP collector (HTTP). Default: no traces.",
    ),
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ("", "The URL for traces only. Takes precedence."),
    "OTEL_EXPORTER_OTLP_HEADERS": ("", "HTTP headers, `name=value,…`. Their values are kept out of logs."),
    "OTEL_SERVICE_NAME": ("parley-gateway, parley-turns, …", "Service name in traces."),
}

_BAR = "\\|"
_FORMS = {str: "text", bool: "`true` or `false`", SecretStr: "secret", Path: "path"}

_HEAD = """\
# Settings

Generated from the code by `make docs`.

Environment variables configure processes, and `domain.yaml` configures an assistant. To read a
value from a file, add `_FILE` to the variable's name, for example `DATABASE_URL_FILE`. A process with an invalid value
exits with one line that names the variable. *Read by* lists the roles of `parley serve`.
"""


def make_page() -> str:
    commands = ((f"`{name}`", _code(default), what) for name, (default, what) in _OF_COMMANDS.items())
    parts = [
        _HEAD,
        "## Environment\n",
        show_table(("variable", "default", "unit or form", "read by", "meaning"), _environment()),
        "## Environment of commands and traces\n",
        show_table(("variable", "default", "meaning"), commands),
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
        yield f"### {name}\n\n{show_sentence(section.__doc__)}\n"
        given = defaults.get(name) or {}
        rows = (
            (f"`{key}`", _show(given.get(key)), descriptions.get(key, "")) for key in section.model_fields
        )
        yield show_table(("key", "default", "meaning"), rows)


def describe_fields(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings under a model's fields, by field name."""
    [declared] = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(declared, ast.ClassDef)
    found: dict[str, str] = {}
    field = ""
    for statement in declared.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                field = name
            case ast.Expr(value=ast.Constant(value=str(text))) if field:
                found[field] = show_sentence(text)
            case _:
                field = ""
    return found


def show_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, tuple("---" for _ in head), *rows)
    return "".join(f"| {' | '.join(cell.replace('|', _BAR) for cell in line)} |\n" for line in lines)


def _show(value: Any) -> str:
    if value is None or value is PydanticUndefined or value in ("", [], {}, ()):
        return ""
    return _code(value if isinstance(value, str) else orjson.dumps(value, default=str).decode())


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def show_sentence(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").replace("``", "`").split())
