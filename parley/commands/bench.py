"""`parley bench`: the benchmarks of a checkout, by name."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput, Unavailable
from parley.commands.options import AsJson

app = typer.Typer()

BENCHMARKS = {
    "profile": "CPU of a turn by layer, and its calls, in one process",
    "turns": "turns per second and CPU per turn, beside a hand-written task",
    "length": "cost and size of a session at turn 1,000 against turn 10",
    "graphs": "graphs of Internal flows beside their critical path",
    "replay": "finished turns decided anew per second",
    "waiting": "500 sessions that wait a second for a model, in one worker process",
    "workers": "turns per second of one, two and three worker processes",
}


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="Which one: " + ", ".join(BENCHMARKS) + ".")] = "turns",
    arguments: Annotated[
        list[str] | None, typer.Argument(help="Passed on to it; after `--` if they begin with a dash.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Run one benchmark. Figures are ratios within one run, since machines differ and are shared."""
    if name not in BENCHMARKS:
        known = "; ".join(f"{known}: {what}" for known, what in BENCHMARKS.items())
        raise InvalidInput(f"There is no benchmark {name!r}. There are {known}.", field="name")
    module = f"benchmarks.{name}"
    if not Path("benchmarks", f"{name}.py").is_file():
        raise Unavailable("The benchmarks are part of a checkout: run this in its folder.")
    ended = subprocess.run(
        [sys.executable, "-m", module, *(arguments or []), *(["--json"] if json else [])], check=False
    )
    raise typer.Exit(ended.returncode)
