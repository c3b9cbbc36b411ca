"""`parley eval`: take a domain's conversations through the Agent and measure it; or System 1 on annotated dialogues."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.errors import InvalidInput
from orchestrator.types import JsonObject
from parley.commands.options import DEFAULT_DATA_DIR, DataDir
from parley.output import print_json, print_table, say

if TYPE_CHECKING:
    from parley.evaluation.domains import DomainReport

app = typer.Typer()

_FILES = ("dialogues.jsonl", "dialogues.json")
SOURCE = (
    "Baseline: figures on the development set in the README of the dataset's baseline "
    "(google-research/schema_guided_dst), a BERT model fine-tuned on the dataset's training set."
)
_MEASURES = {
    "frames": "frames",
    "active_intent_accuracy": "intent acc.",
    "requested_slots_f1": "requested F1",
    "slot_f1": "slot F1",
    "average_goal_accuracy": "avg. goal acc.",
    "joint_goal_accuracy": "joint goal acc.",
}
_PUBLISHED = ("active_intent_accuracy", "requested_slots_f1", "average_goal_accuracy", "joint_goal_accuracy")
BASELINE: dict[str, JsonObject] = {
    "baseline, SGD-Single": dict(zip(_PUBLISHED, (0.966, 0.965, 0.776, 0.486), strict=True)),
    "baseline, SGD-All": dict(zip(_PUBLISHED, (0.885, 0.972, 0.694, 0.383), strict=True)),
}


@app.command("eval")
def evaluate_domain_or_dialogues(
    target: Annotated[
        str | None,
        typer.Argument(
            help="A domain (name or folder), a file of its conversations, or a folder with annotated dialogues.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Let this model understand and write; several: side by side.")
    ] = None,
    fail_under: Annotated[
        list[str] | None, typer.Option(help="End with 1 below this: 0.95 of the turns, or slot_f1=0.9.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="End with 1 if worse than this run: its name, file, or `latest`.")
    ] = None,
    data_dir: DataDir = DEFAULT_DATA_DIR,
    schema: Annotated[Path | None, typer.Option(help="Schema of annotated dialogues.")] = None,
    dialogues: Annotated[Path | None, typer.Option(help="Annotated dialogues, a file or folder.")] = None,
    examples: Annotated[
        Path | None, typer.Option(help="Learn from these dialogues instead of by cross-validation.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts of the cross-validation.", min=2, max=20)] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure a domain on its conversations.

    They go through the real Agent; the run is kept, beside an HTML report. A folder with schema.json and
    dialogues.jsonl is measured as annotated dialogues, by System 1 alone.
    """
    from parley.evaluation.domains import evaluate_domain, find_conversations  # noqa: PLC0415  # slow to import

    found = find_conversations(target) if target is not None and schema is None else None
    if found is None:
        _evaluate_dialogues(
            Path(target) if target else None, schema, dialogues, examples, folds, as_json=json
        )
        return
    domain, files = found
    report = asyncio.run(
        evaluate_domain(
            domain,
            files,
            models=model or [],
            bounds=fail_under or [],
            against=against,
            folder=data_dir / "evaluations" / Path(domain).name,
            notice=say,
        )
    )
    if json:
        print_json({**report.runs[-1], "report": str(report.page), "findings": report.findings})
    else:
        _print_report(report)
    if report.findings:
        raise typer.Exit(1)


def _print_report(report: DomainReport) -> None:
    """Print the figures of all runs beside each other, what the last one confused, and what is too low."""
    last = report.runs[-1]
    names = [run["model"] or "without a model" for run in report.runs]
    rows = [
        [name.replace("_", " "), *(_show(run["figures"].get(name)) for run in report.runs)]
        for name in last["figures"]
    ]
    print_table(("figure", *names), rows)
    for confusion in last["confusion"]:
        if confusion["expected"] != confusion["taken"]:
            near = " (edge flows)" if confusion["neighbours"] else ""
            print(f"{confusion['expected']} taken for {confusion['taken']}: {confusion['turns']}{near}")
    for finding in report.findings:
        print(f"! {finding}")
    say(f"Kept as {last['run']}; the report is {report.page}")


def _evaluate_dialogues(
    path: Path | None,
    schema: Path | None,
    dialogues: Path | None,
    examples: Path | None,
    folds: int,
    *,
    as_json: bool,
) -> None:
    """Measure System 1 on schema-guided dialogues. No dialogue is measured with what it taught."""
    from parley.evaluation.dialogues.tracking import evaluate  # noqa: PLC0415  # slow to import

    schema_path, dialogues_path = locate(path, schema, dialogues)
    report = evaluate(schema_path, dialogues_path, folds=folds, examples_path=examples, notice=say)
    figures = {**report.figures(), "baseline": BASELINE}
    if as_json:
        print_json(figures)
        return
    print(f"System 1, {report.dialogues} dialogues, {report.folds} parts")
    rows = {**figures["services"], "all services": figures["overall"], **BASELINE}
    cells = ([name, *(_show(row.get(measure)) for measure in _MEASURES)] for name, row in rows.items())
    print_table(("service", *_MEASURES.values()), list(cells))
    print(SOURCE)


def locate(path: Path | None, schema: Path | None, dialogues: Path | None) -> tuple[Path, Path]:
    """Find the two files of annotated dialogues. Raises InvalidInput when one of them is not given."""
    if path is not None:
        schema = schema or path / "schema.json"
        dialogues = dialogues or next((file for name in _FILES if (file := path / name).exists()), path)
    if schema is None or dialogues is None:
        raise InvalidInput(
            "Give a domain, or a folder of dialogues, or --schema and --dialogues.", field="target"
        )
    return schema, dialogues


def _show(value: float | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"
