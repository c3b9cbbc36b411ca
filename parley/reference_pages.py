"""Generate the documentation's reference pages from the code: ``python -m parley.reference_pages``."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from prometheus_client.metrics import MetricWrapperBase

import gateway.routes.metrics
import orchestrator.errors
import orchestrator.telemetry.metrics
from gateway.app import create_app
from gateway.problems import STATUS_OF
from gateway.wiring import open_dependencies
from orchestrator.errors import ParleyError
from orchestrator.settings import Settings
from parley import settings_page
from parley.main import GROUPS, load_command
from parley.settings_page import show_sentence, show_table

_GENERATED: Final = "Generated from the code by `make docs`.\n"
_COMMON: Final = {"--help", "--json", "--url", "--data-dir"}
_TREE_LINE: Final = re.compile(r"^[ │├└─]*(\w+) {2,}(\S.*)$", re.MULTILINE)


def make_commands_page() -> str:
    parts = [
        "# Commands\n",
        _GENERATED,
        "These options aren't repeated below:\n",
        "- `--json`: print JSON, one object per line.",
        "- `--url`: gateway URL. Default: `PARLEY_URL`, or the gateway of a running `parley up`.",
        "- `--data-dir`: data folder of the embedded stores. Default: `.parley`.",
        "- `--verbose`: print the traceback of an error.\n",
    ]
    for title, group in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in group:
            parts += _describe_command(f"parley {name}", load_command(name))
    return "\n".join(parts)


def _describe_command(usage: str, command: Any) -> Iterator[str]:
    if subcommands := getattr(command, "commands", None):
        for name, subcommand in subcommands.items():
            yield from _describe_command(f"{usage} {name}", subcommand)
        return
    arguments = [
        one.name.upper() if one.required else f"[{one.name.upper()}]"
        for one in command.params
        if one.param_type_name == "argument"
    ]
    yield f"### {usage}\n"
    yield f"```\n{' '.join((usage, *arguments))}\n```\n"
    yield f"{show_sentence(command.help)}\n"
    rows = [
        _describe_parameter(one) for one in command.params if not _COMMON & {*one.opts} and not one.hidden
    ]
    if rows:
        yield show_table(("option", "default", "meaning"), rows)


def _describe_parameter(parameter: Any) -> tuple[str, str, str]:
    names = [*parameter.opts, *parameter.secondary_opts]
    shown = ", ".join(
        f"`{name.upper() if parameter.param_type_name == 'argument' else name}`" for name in names
    )
    default = "required" if parameter.required else _show_default(parameter.default)
    return shown, default, show_sentence(parameter.help)


def _show_default(default: object) -> str:
    return "" if default in {None, False, ""} or callable(default) or default == [] else f"`{default}`"


def make_errors_page() -> str:
    meanings = dict(_TREE_LINE.findall(orchestrator.errors.__doc__ or ""))
    over_http, elsewhere = [], []
    for name, error in inspect.getmembers(orchestrator.errors, inspect.isclass):
        if not issubclass(error, ParleyError) or error is ParleyError:
            continue
        own = show_sentence(vars(error).get("__doc__")).partition(". ")[0].removesuffix(".")
        meaning = meanings.get(name) or own
        row = (f"`{error.code}`", meaning[:1].upper() + meaning[1:])
        if error.__module__ == "parley_client.errors":
            status = next(status for kind, status in STATUS_OF if issubclass(error, kind))
            over_http.append((str(status.value), *row))
        else:
            elsewhere.append(row)
    return "\n".join([
        "# Errors\n",
        _GENERATED,
        "Every error has a stable code. Python clients raise the class of the same name.\n",
        "## HTTP API\n",
        show_table(("status", "code", "meaning"), sorted(over_http)),
        "## In turns, logs and commands\n",
        "A failed turn has its code in `error.code`, and `model_problem` in a turn's flags is a `model_…` code.\n",
        show_table(("code", "meaning"), sorted(elsewhere)),
    ])  # fmt: skip


def make_metrics_page() -> str:
    return "\n".join([
        "# Metrics\n",
        _GENERATED,
        "Labels contain names, kinds and statuses, never users' text.\n",
        "## Per process\n",
        show_table(("metric", "type", "labels", "meaning"), _metrics_of(orchestrator.telemetry.metrics)),
        "## System-wide\n",
        "Only gateways export these metrics.\n",
        show_table(("metric", "type", "labels", "meaning"), _metrics_of(gateway.routes.metrics)),
    ])  # fmt: skip


def _metrics_of(module: ModuleType) -> Iterator[tuple[str, ...]]:
    for collector in vars(module).values():
        if not isinstance(collector, MetricWrapperBase):
            continue
        (family,) = collector.describe()
        suffix = "_total" if family.type == "counter" else ""
        labels = ", ".join(f"`{name}`" for name in getattr(collector, "_labelnames", ()))
        yield f"`{family.name}{suffix}`", family.type, labels, family.documentation


def make_calls_page() -> str:
    document = create_app(lambda: open_dependencies(Settings.model_construct())).openapi()
    rows: dict[str, list[tuple[str, str]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            told = show_sentence(operation["description"])
            rows.setdefault(operation["tags"][0], []).append((f"`{method.upper()} {path}`", told))
    parts = [
        "# HTTP calls\n",
        _GENERATED,
        "Every gateway documents parameters and responses at `/docs`. See also the [HTTP API](http.md).\n",
    ]
    for tag, calls in rows.items():
        parts += [f"## {tag[:1].upper()}{tag[1:]}\n", show_table(("call", "does"), calls)]
    return "\n".join(parts)


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "settings.md": settings_page.make_page,
    "commands.md": make_commands_page,
    "errors.md": make_errors_page,
    "metrics.md": make_metrics_page,
    "http-calls.md": make_calls_page,
}


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    for name, make in PAGES.items():
        (folder / name).write_text(make(), encoding="utf-8")


if __name__ == "__main__":
    main()
