"""`parley domain`: check a domain folder, scaffold a new one."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput
from parley.commands.output import say

app = typer.Typer(help="Work on domain folders.", no_args_is_help=True)

_SCAFFOLD = Path(__file__).parent.parent / "scaffold"
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@app.command()
def check(
    domain: Annotated[str, typer.Argument(help="Name of a shipped domain, or path of a folder.")],
) -> None:
    """Look for mistakes in a domain folder and print all of them, one per line."""
    from orchestrator.adapters.domain_folder import check_domain  # noqa: PLC0415  # slow to import

    problems = check_domain(domain)
    for problem in problems:
        print(problem)
    if problems:
        say(f"parley: {len(problems)} {'mistake' if len(problems) == 1 else 'mistakes'} in {domain}.")
        raise typer.Exit(1)
    say(f"{domain} is in order.")


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="Name of the domain: small letters, digits and _.")],
    into: Annotated[Path, typer.Option(help="Folder in which the domain's folder is made.")] = Path(),
) -> None:
    """Make a small domain that works, to build on."""
    folder = scaffold(name, into)
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
