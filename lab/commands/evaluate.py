from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.errors import InvalidInput
from orchestrator.types import DEFAULT_TENANT
from parley.commands.options import DEFAULT_DATA_DIR, DataDir
from parley.data_folder import EVALUATIONS
from parley.output import print_json, print_prompts, print_table, say

if TYPE_CHECKING:
    from lab.domain_evaluation import Conversations, DomainReport, Variant

app = typer.Typer()

Models = Annotated[list[str] | None, typer.Option(help="Model to evaluate. Repeat to compare several.")]
PromptFolders = Annotated[
    list[Path] | None,
    typer.Option(help="Folder of prompts to compare with the domain's own. Repeat for several."),
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        help="Exit with status 1 below this score: a share of correct turns (0.95) or a named score (slot_f1=0.9)."
    ),
]
Against = Annotated[
    str | None,
    typer.Option(help="Exit with status 1 if the run is worse than this one: a name, a file or `latest`."),
]
Judge = Annotated[
    str | None,
    typer.Option(
        help="Model that grades answers by their rubrics. Default: the first --model.", show_default=False
    ),
]
Faults = Annotated[
    bool, typer.Option("--faults", help="Inject one fault at every step and check the outcome.")
]
Simulate = Annotated[
    bool,
    typer.Option(
        "--simulate",
        help="Let simulated users pursue goals drawn from the domain. With --model, a model plays them.",
    ),
]
Budget = Annotated[
    int | None,
    typer.Option(
        help="Number of conversations. Default: 1500 for `--faults`, 100 for `--simulate`.",
        min=1,
        show_default=False,
    ),
]
Seed = Annotated[
    int, typer.Option(help="Seed for fault order and combinations, or for goals with `--simulate`.")
]
_FAULTY, _SIMULATED = 1500, 100
"""Default number of cases for --faults, and of conversations for --simulate."""


@app.command("eval")
def evaluate(
    target: Annotated[str, typer.Argument(help="Domain name or folder, or a file of test conversations.")],
    model: Models = None,
    prompts: PromptFolders = None,
    judge: Judge = None,
    faults: Faults = False,
    simulate: Simulate = False,
    budget: Budget = None,
    seed: Seed = 0,
    fail_under: FailUnder = None,
    against: Against = None,
    tenant: Annotated[
        str, typer.Option(help="Tenant whose operators can see the run in the inspector.")
    ] = DEFAULT_TENANT,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Evaluate a domain on test conversations.

    Runs the domain's conversations, or those of simulated users, through the real Agent. Each run is stored for the
    inspector.
    """
    from lab.domain_evaluation import evaluate_domain, find_conversations  # noqa: PLC0415  # slow to import
    from lab.simulation.running import Simulated  # noqa: PLC0415  # slow to import

    if faults and simulate:
        raise InvalidInput("Use either --faults or --simulate.", field="simulate")
    found = find_conversations(target, is_needed=not simulate)
    if faults:
        _try_faults(*found, data_dir, seed, budget or _FAULTY, as_json=json)
        return
    folder = data_dir / EVALUATIONS / Path(found[0]).resolve().name
    report = asyncio.run(
        evaluate_domain(
            *found,
            variants=_list_variants(model, prompts),
            judge=judge or next(iter(model or ()), None),
            bounds=fail_under or [],
            against=against,
            folder=folder / "simulated" if simulate else folder,
            tenant=tenant,
            simulated=Simulated(budget or _SIMULATED, seed) if simulate else None,
            notice=say,
        )
    )
    _print_report(report, as_json=json)
    if report.findings:
        raise typer.Exit(1)


def _list_variants(model: Models, prompts: PromptFolders) -> list[Variant]:
    """Return the variants to compare: each model (or none) with the domain's prompts and each prompt folder.

    Raises InvalidInput if there are prompt folders but no model.
    """
    from lab.domain_evaluation import Variant  # noqa: PLC0415  # slow to import

    if prompts and not model:
        raise InvalidInput("--prompts requires --model.", field="prompts")
    return [Variant(one, tried) for one in model or [None] for tried in (None, *(prompts or ()))]


def _try_faults(
    domain: str, files: Conversations, data_dir: Path, seed: int, budget: int, *, as_json: bool
) -> None:
    """Run conversations with injected faults, print the findings, and exit with status 1 if there are any."""
    from lab.evaluation.outside import list_services  # noqa: PLC0415  # slow to import
    from lab.faults.cases import try_faults  # noqa: PLC0415  # slow to import
    from orchestrator.adapters.domains.folder import load_domain  # noqa: PLC0415  # slow to import

    for sentence in list_services(load_domain(domain).domain):
        say(sentence)
    folder = data_dir / EVALUATIONS / Path(domain).resolve().name / "faults"
    report, path = try_faults(domain, files, folder, seed=seed, budget=budget)
    if as_json:
        print_json({**report, "report": str(path)})
    else:
        rows = [[name.replace("_", " "), count] for name, count in report["faults"].items()]
        print_table(("fault", "times"), rows)
        for one in report["found"]:
            print(f"! {one['why']}\n{one['case']}")
        for sentence in report["kept_cases"]:
            print(f"! {sentence}")
        say(f"{report['taken']} conversations; the report is {path}")
    if report["found"] or report["kept_cases"]:
        raise typer.Exit(1)


def _print_report(report: DomainReport, *, as_json: bool) -> None:
    if as_json:
        print_json({**report.runs[-1], "report": str(report.path), "findings": report.findings})
        return
    last = report.runs[-1]
    names = [run["name"] for run in report.runs]
    rows = [
        [name.replace("_", " "), *(_show(run["figures"].get(name)) for run in report.runs)]
        for name in last["figures"]
    ]
    print_table(("figure", *names), rows)
    for run in report.runs:
        print_prompts(run["prompts"])
    for confusion in last["confusion"]:
        if confusion["expected"] != confusion["taken"]:
            near = " (edge flows)" if confusion["neighbors"] else ""
            print(f"{confusion['expected']} classified as {confusion['taken']}: {confusion['turns']}{near}")
    for finding in report.findings:
        print(f"! {finding}")
    say(f"Stored as {report.path}")


def _show(value: float | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"
