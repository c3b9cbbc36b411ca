"""`parley eval`: measure understanding on annotated dialogues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from orchestrator.errors import InvalidInput
from parley.commands.output import say


def eval_command(
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
    """Measure System 1 on schema-guided dialogues: no dialogue is measured with what it taught."""
    from parley.evaluation.report import COLUMNS, SOURCE, as_json, rows  # noqa: PLC0415  # slow to import
    from parley.evaluation.runner import evaluate  # noqa: PLC0415  # slow to import

    schema_path, dialogues_path = locate(path, schema, dialogues)
    report = evaluate(schema_path, dialogues_path, folds=folds, examples_path=examples, notice=say)
    if json:
        print(orjson.dumps(as_json(report)).decode())
        return
    table = Table(*COLUMNS, title=f"System 1, {report.dialogues} dialogues, {report.folds} parts")
    for row in rows(report):
        table.add_row(*row)
    Console(width=max(100, Console().width)).print(table)
    print(SOURCE)


def locate(path: Path | None, schema: Path | None, dialogues: Path | None) -> tuple[Path, Path]:
    """Find the two files. Raises InvalidInput when one of them is not given."""
    if path is not None:
        schema = schema or path / "schema.json"
        found = next((file for name in _NAMES if (file := path / name).exists()), path)
        dialogues = dialogues or found
    if schema is None or dialogues is None:
        raise InvalidInput("Give a folder, or --schema and --dialogues.", field="path")
    return schema, dialogues


_NAMES = ("dialogues.jsonl", "dialogues.json")
