"""Check a domain's answer templates without rendering them: syntax, filters, tests, variables and slots."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from jinja2 import TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import SandboxedEnvironment

from orchestrator.domain.compile.problems import Place, Problems, SourceFile, suggest
from orchestrator.domain.model import TEMPLATE_FILTERS, TEMPLATE_VARIABLES
from orchestrator.domain.schema import FlowEntry

_OF_SLOTS = ("slots", "values")
_OUTSIDE = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)


def check_templates(templates: Mapping[str, str], flows: Mapping[str, FlowEntry], problems: Problems) -> None:
    """Report template problems that would make an answer fall back to the base template."""
    environment: Any = SandboxedEnvironment()
    environment.filters.update(dict.fromkeys(TEMPLATE_FILTERS, str))
    used_by_name: tuple[tuple[str, type, Collection[str]], ...] = (
        ("filter", nodes.Filter, environment.filters),
        ("test", nodes.Test, environment.tests),
    )
    for name, text in templates.items():
        place = Place(problems, SourceFile(f"templates/{name}.md.j2"))
        dact, _, suffix = name.partition(".")
        if dact not in flows and (hint := suggest(dact, flows, nearness=0.85)):
            place.add(f"unknown flow {dact!r}{hint}")
        try:
            tree = environment.parse(text)
        except TemplateSyntaxError as error:
            place.add(f"cannot be parsed: {error.message}", f"line {error.lineno}")
            continue
        is_known = [
            place.check_known(used.name, known, kind, f"line {used.lineno}")
            for kind, node, known in used_by_name
            for used in tree.find_all(node)
        ]
        if all(is_known) and dact in flows and not suffix and next(tree.find_all(_OUTSIDE), None) is None:
            _check_variables(tree, [*flows[dact].slots], place)


def _check_variables(tree: Any, slots: list[str], place: Place) -> None:
    """Report unknown variables, and slots that the flow doesn't have."""
    undeclared = find_undeclared_variables(tree) - TEMPLATE_VARIABLES - {*tree.environment.globals}
    for used in tree.find_all(nodes.Name):
        if used.name in undeclared:
            place.check_known(used.name, sorted(TEMPLATE_VARIABLES), "variable", f"line {used.lineno}")
    for name, line in members_of(tree, _OF_SLOTS):
        place.check_known(name, slots, "slot", f"line {line}")


def members_of(tree: nodes.Template, variables: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the constant keys of `variables`, such as ``price`` in ``data.price``, with their line numbers."""
    for used in tree.find_all((nodes.Getattr, nodes.Getitem)):
        if not isinstance(used.node, nodes.Name) or used.node.name not in variables:
            continue
        if isinstance(used, nodes.Getattr):
            yield used.attr, used.lineno
        elif isinstance(used.arg, nodes.Const) and isinstance(used.arg.value, str):
            yield used.arg.value, used.lineno
