"""`parley eval`: measure understanding on annotated dialogues, beside what is published for a baseline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.errors import InvalidInput
from orchestrator.types import JsonObject
from parley.evaluation.metrics import summarize
from parley.evaluation.runner import Report, evaluate
from parley.output import print_json, print_table, say

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
def evaluate_dialogues(
    path: Annotated[
        Path | None, typer.Argument(help="Folder with schema.json and dialogues.jsonl.", show_default=False)
    ] = None,
    schema: Annotated[Path | None, typer.Option(help="Schema file, instead of the folder's.")] = None,
    dialogues: Annotated[Path | None, typer.Option(help="Dialogue file or folder, likewise.")] = None,
    examples: Annotated[
        Path | None, typer.Option(help="Learn from these dialogues instead of by cross-validation.")
    ] = None,
    folds: Annotated[int, typer.Option(help="Parts of the cross-validation.", min=2, max=20)] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure System 1 on schema-guided dialogues. No dialogue is measured with what it taught."""
    schema_path, dialogues_path = locate(path, schema, dialogues)
    report = evaluate(schema_path, dialogues_path, folds=folds, examples_path=examples, notice=say)
    figures = as_json(report)
    if json:
        print_json(figures)
        return
    print(f"System 1, {report.dialogues} dialogues, {report.folds} parts")
    rows = {**figures["services"], "all services": figures["overall"], **BASELINE}
    cells = ([name, *(_show(row.get(measure)) for measure in _MEASURES)] for name, row in rows.items())
    print_table(("service", *_MEASURES.values()), list(cells))
    print(SOURCE)


def as_json(report: Report) -> JsonObject:
    """The figures of all services and overall; a measure that does not apply is null."""
    return {
        "dialogues": report.dialogues,
        "folds": report.folds,
        "overall": summarize(report.overall),
        "services": {name: summarize(scores) for name, scores in sorted(report.services.items())},
        "baseline": BASELINE,
    }


def locate(path: Path | None, schema: Path | None, dialogues: Path | None) -> tuple[Path, Path]:
    """Find the two files. Raises InvalidInput when one of them is not given."""
    if path is not None:
        schema = schema or path / "schema.json"
        dialogues = dialogues or next((file for name in _FILES if (file := path / name).exists()), path)
    if schema is None or dialogues is None:
        raise InvalidInput("Give a folder, or --schema and --dialogues.", field="path")
    return schema, dialogues


def _show(value: float | None) -> str:
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.3f}"
