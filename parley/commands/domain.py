import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.adapters.models.trained_files import TrainedFiles
from orchestrator.domain.summary import FlowSummary, list_assumed, list_hints, summarize
from orchestrator.errors import ConfigurationError, InvalidInput, Problem
from orchestrator.nlu.system1 import System1
from orchestrator.res.languages import languages_worded
from parley.commands.options import AsJson
from parley.openapi_tools import make_tools, read_document, write_tools
from parley.output import Answer, Rows, print_result, say

app = typer.Typer(help="Create, check and train domains.", no_args_is_help=True)

_SCAFFOLD = Path(__file__).parent.parent / "scaffold"
_COLUMNS: tuple[str, ...] = ("flow", "acts", "tools", "side effects", "tags", "confirmation", "approval")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@app.command()
def check(
    domain: Annotated[str, typer.Argument(help="Name of a built-in domain, or path to a domain folder.")],
    as_json: AsJson = False,
) -> None:
    """Print all mistakes in a domain folder or, if there are none, the capabilities of each flow."""
    try:
        loaded = load_domain(domain)
    except ConfigurationError as error:
        _print_problems(domain, error.problems, as_json=as_json)
        raise typer.Exit(1) from error
    from parley.template_check import render_templates  # noqa: PLC0415 - slow to import
    from workers.internal.catalogue import check_internal_flows  # noqa: PLC0415 - slow to import

    if problems := check_internal_flows(Path(loaded.domain.folder)):
        _print_problems(domain, problems, as_json=as_json)
        raise typer.Exit(1)
    policies = frozenset(map(str, loaded.policies))
    rendered = render_templates(loaded.domain, policies)
    if rendered.mistakes:
        _print_problems(domain, rendered.mistakes, as_json=as_json)
        raise typer.Exit(1)
    rows = [dict(zip(_COLUMNS, _row(flow), strict=True)) for flow in summarize(loaded.domain)]
    print_result(Rows(rows, _COLUMNS), as_json=as_json)
    for tool_id, tags in list_assumed(loaded.domain).items():
        named = " and ".join(tag.replace("_", " ") for tag in tags)
        say(f"{tool_id}: Parley assumes that this remote tool {named}; if not, declare `trusted: <why>`.")
    hints = list_hints(loaded.domain, policies, languages_worded())
    places = {hint.rpartition(": ")[0] for hint in hints}
    for hint in [*hints, *(one for one in rendered.hints if one.rpartition(": ")[0] not in places)]:
        say(f"Hint: {hint}")
    say(f"{domain} is valid.")


def _print_problems(domain: str, problems: list[Problem], *, as_json: bool) -> None:
    for problem in problems:
        print_result(
            Answer({"place": problem.place, "message": problem.message}, str(problem)), as_json=as_json
        )
    number = len(problems)
    say(f"parley: {number} {'mistake' if number == 1 else 'mistakes'} in {domain}.")


@app.command()
def tools_from(
    source: Annotated[str, typer.Argument(help="URL or file of an OpenAPI document.")],
    into: Annotated[
        Path | None,
        typer.Option(help="File to write, such as my_domain/tools.yaml. Default: standard output."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Generate a domain's tools.yaml from a service's OpenAPI document."""
    if into is not None and into.exists():
        raise InvalidInput(
            f"{into} already exists; choose another file and copy what you need.", field="into"
        )
    tools = make_tools(read_document(source), source)
    text = write_tools(tools)
    if into is not None:
        into.write_text(text, encoding="utf-8")
        say(f"Wrote {len(tools)} tools to {into}; check `idempotent`, `errors` and the descriptions.")
    print_result(Answer({"tools": tools}, text.rstrip() if into is None else ""), as_json=as_json)


@app.command()
def train(
    domains: Annotated[
        list[str], typer.Argument(help="Names of built-in domains, or paths to domain folders.")
    ],
    into: Annotated[
        Path | None, typer.Option(envvar="PARLEY_TRAINED_FOLDER", help="Folder for the trained models.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train the local classifier, for example during an image build, so that processes can load it at startup."""
    if into is None:
        raise InvalidInput("Specify --into FOLDER, or set PARLEY_TRAINED_FOLDER.", field="into")
    kept = TrainedFiles(into.resolve())
    kept.require_writable()
    for domain in domains:
        System1.for_domain(load_domain(domain).domain, kept)
        print_result(Answer({"domain": domain, "folder": str(into)}, ""), as_json=as_json)
        say(f"Trained {domain}.")


def _row(flow: FlowSummary) -> list[str]:
    """Return a flow's table row, with one cell for each of `_COLUMNS`."""
    return [
        flow.dact,
        ", ".join(flow.acts),
        ", ".join(flow.tools),
        ", ".join(flow.changes),
        ", ".join(tag.replace("_", " ") for tag in flow.tags),
        "required" if flow.confirms else "",
        flow.approval,
    ]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Domain name: lowercase letters, digits and _.")],
    into: Annotated[Path, typer.Option(help="Parent folder of the new domain folder.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Create a small working domain as a starting point."""
    folder = scaffold(name, into)
    print_result(Answer({"domain": name, "folder": str(folder)}, ""), as_json=as_json)
    say(f"Created {folder}. Try it: parley chat --domain {folder}")


def scaffold(name: str, into: Path) -> Path:
    """Copy the sample domain to the folder `into/name` and return this folder.

    Raises InvalidInput if the name is invalid or the folder already exists.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} is not a valid name: use lowercase letters, digits and _.", field="name"
        )
    folder = into / name
    if folder.exists():
        raise InvalidInput(f"{folder} already exists: choose another name or parent folder.", field="name")
    shutil.copytree(_SCAFFOLD, folder, ignore=shutil.ignore_patterns("__pycache__"))
    configuration = folder / "domain.yaml"
    configuration.write_text(configuration.read_text().replace("NAME", name))
    return folder
