import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput, Unavailable
from parley.commands.options import AsJson

app = typer.Typer()

BENCHMARKS = {
    "profile": "CPU time and function calls per turn, by layer",
    "turns": "turns per second and CPU time per turn, compared with a hand-written task",
    "length": "cost and size of a session at turn 1,000, compared with turn 10",
    "graphs": "run time of background-flow graphs, compared with their critical paths",
    "replay": "replayed turns per second",
    "waiting": "500 sessions that each wait one second for a model, in one worker process",
    "workers": "turns per second with one, two and three worker processes",
}


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="One of: " + ", ".join(BENCHMARKS) + ".")] = "turns",
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="Arguments for the benchmark, after `--` if they begin with a dash."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Run a benchmark. Compare ratios within one run; absolute values depend on the machine."""
    if name not in BENCHMARKS:
        known = "; ".join(f"{known}: {what}" for known, what in BENCHMARKS.items())
        raise InvalidInput(f"Unknown benchmark {name!r}. Available: {known}.", field="name")
    module = f"benchmarks.{name}"
    if not Path("benchmarks", f"{name}.py").is_file():
        raise Unavailable("Benchmarks need a checkout: run this command in the checkout's folder.")
    ended = subprocess.run(
        [sys.executable, "-m", module, *(arguments or []), *(["--json"] if json else [])], check=False
    )
    raise typer.Exit(ended.returncode)
