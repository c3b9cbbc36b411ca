import random
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lab.soak.runner import SoakPlan
from lab.soak.runner import soak as run
from parley.commands.options import AsJson
from parley.embedded.ports import free_port
from parley.output import print_json, print_table, progress, say
from parley.signals import StopRequested, stop_on_signals
from parley.stack import StackPlan, run_stack

app = typer.Typer()

_PREFIX = "parley-soak-"
_ANY_SEED = 10**6
_SHOWN = 20


@app.command()
def soak(
    minutes: Annotated[float, typer.Option(min=0.05, help="Duration of fault injection, in minutes.")] = 5.0,
    sessions: Annotated[int, typer.Option(min=1, help="Number of concurrent conversations.")] = 30,
    workers: Annotated[int, typer.Option(min=1, help="Number of worker processes for turns.")] = 2,
    fault_every: Annotated[float, typer.Option(min=0.2, help="Seconds between faults, on average.")] = 3.0,
    seed: Annotated[int | None, typer.Option(help="Seed for the choice of faults.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a soak test with injected faults. Exits with status 1 if a guarantee is broken.

    Uses separate temporary stores, and ignores DATABASE_URL and REDIS_URL.
    """
    plan = SoakPlan(
        seconds=minutes * 60,
        sessions=sessions,
        fault_every_s=fault_every,
        seed=random.randrange(_ANY_SEED) if seed is None else seed,
    )
    folder, held = Path(tempfile.mkdtemp(prefix=_PREFIX)), False
    try:
        with stop_on_signals(), run_stack(_stack_of(folder, workers), say) as stack:
            say(f"Injecting faults for {minutes:g} minutes, seed {plan.seed}.")
            with progress("injecting faults, seconds") as counted:
                report = run(stack, plan, say, counted)
        held = not report.breaches
    except StopRequested:
        held = True  # the user stopped the test, so there is nothing to investigate
        raise
    finally:
        if held:
            shutil.rmtree(folder)
        else:
            say(f"Data and logs are in {folder}.")
    if as_json:
        print_json({**asdict(report), "faults": dict(report.faults)})
    else:
        print_table(("fault", "times"), report.faults.most_common())
        print(
            f"{report.conversations} conversations of {report.turns} turns in {report.seconds:.0f} s,"
            f" {report.retries} requests retried."
        )
        for breach in report.breaches[:_SHOWN]:
            print(f"BROKEN  {breach}")
        print(f"Broken guarantees: {len(report.breaches)}." if report.breaches else "All guarantees held.")
    raise typer.Exit(1 if report.breaches else 0)


def _stack_of(folder: Path, turn_workers: int) -> StackPlan:
    return StackPlan(
        data_dir=folder, domain="travel", host="127.0.0.1", port=free_port(), turn_workers=turn_workers
    )
