"""`parley domain`: check a domain folder, scaffold a new one."""

import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.adapters.models.trained_files import TrainedFiles
from orchestrator.domain.summary import FlowSummary, summarize
from orchestrator.errors import ConfigurationError, InvalidInput, Problem
from orchestrator.nlu.readers.system1 import System1
from parley.commands.options import AsJson
from parley.output import Answer, Rows, print_result, say

app = typer.Typer(help="Work on domain folders.", no_args_is_help=True)

_SCAFFOLD = Path(__file__).parent.parent / "scaffold"
_COLUMNS: tuple[str, ...] = ("flow", "tools", "changes things with", "tags", "confirmation", "approval")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@app.command()
def check(
    domain: Annotated[str, typer.Argument(help="Name of a shipped domain, or path of a folder.")],
    as_json: AsJson = False,
) -> None:
    """Print every mistake of a domain folder, one per line; of one in order, what each flow may do."""
    try:
        loaded = load_domain(domain)
    except ConfigurationError as error:
        _tell_mistakes(domain, error.problems, as_json=as_json)
        raise typer.Exit(1) from error
    from workers.internal.catalogue import check_internal_flows  # noqa: PLC0415 - slow to import

    if problems := check_internal_flows(Path(loaded.domain.folder)):
        _tell_mistakes(domain, problems, as_json=as_json)
        raise typer.Exit(1)
    rows = [dict(zip(_COLUMNS, _row(flow), strict=True)) for flow in summarize(loaded.domain)]
    print_result(Rows(rows, _COLUMNS), as_json=as_json)
    say(f"{domain} is in order.")


def _tell_mistakes(domain: str, problems: list[Problem], *, as_json: bool) -> None:
    for problem in problems:
        print_result(
            Answer({"place": problem.place, "message": problem.message}, str(problem)), as_json=as_json
        )
    number = len(problems)
    say(f"parley: {number} {'mistake' if number == 1 else 'mistakes'} in {domain}.")


@app.command()
def train(
    domains: Annotated[list[str], typer.Argument(help="Names of shipped domains, or paths of folders.")],
    into: Annotated[
        Path | None, typer.Option(envvar="PARLEY_TRAINED_FOLDER", help="Where what is trained is kept.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train System 1 ahead, as an image is built, so that processes take it over when they start."""
    if into is None:
        raise InvalidInput("Say where: --into FOLDER, or set PARLEY_TRAINED_FOLDER.", field="into")
    kept = TrainedFiles(into.resolve())
    kept.require_writable()
    for domain in domains:
        System1.for_domain(load_domain(domain).domain, kept)
        print_result(Answer({"domain": domain, "folder": str(into)}, ""), as_json=as_json)
        say(f"Trained {domain}.")


def _row(flow: FlowSummary) -> list[str]:
    """Describe what a flow may do; an empty cell means no."""
    return [
        flow.dact,
        ", ".join(flow.tools),
        ", ".join(flow.changes),
        ", ".join(tag.replace("_", " ") for tag in flow.tags),
        "asks first" if flow.confirms else "",
        flow.approval,
    ]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the domain: small letters, digits and _.")],
    into: Annotated[Path, typer.Option(help="Folder in which the domain's folder is made.")] = Path(),
    as_json: AsJson = False,
) -> None:
    """Make a small domain that works, to build on."""
    folder = scaffold(name, into)
    print_result(Answer({"domain": name, "folder": str(folder)}, ""), as_json=as_json)
    say(f"Made {folder}. Try it: parley chat --domain {folder}")


def scaffold(name: str, into: Path) -> Path:
    """Copy the sample domain. Raises InvalidInput for a bad name or a folder that exists."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is no name: use small letters, digits and _.", field="name")
    folder = into / name
    if folder.exists():
        raise InvalidInput(f"{folder} exists already: choose another name or place.", field="name")
    shutil.copytree(_SCAFFOLD, folder, ignore=shutil.ignore_patterns("__pycache__"))
    configuration = folder / "domain.yaml"
    configuration.write_text(configuration.read_text().replace("NAME", name))
    return folder
