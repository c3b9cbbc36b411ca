"""Make a domain of a data set, take its dialogues through the runtime, and keep what came of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import orjson

from orchestrator.adapters.domains.folder import load_domain
from orchestrator.types import JsonObject
from parley.evaluation.dialogues.as_domain import write_domain
from parley.evaluation.dialogues.calls import count_calls
from parley.evaluation.dialogues.dataset import read_dialogues, read_schema
from parley.evaluation.dialogues.runtime import Drive, Reader
from parley.evaluation.dialogues.telling import By, Telling
from parley.evaluation.domains import open_model


async def drive(
    schema_path: Path,
    dialogues_path: Path,
    *,
    folder: Path,
    by: By,
    model: str | None,
    told: Telling,
    mistaken: float,
    notice: Callable[[str], None],
) -> tuple[JsonObject, Path]:
    """Measure what the runtime does in annotated dialogues.

    The domain that is made of them and the report are kept in `folder`; returns the figures of `count_calls` and the
    report. `told`: how much the annotations tell; `mistaken`: the share of them that is replaced by wrong ones.

    Raises:
        InvalidInput: a file is missing or not of the format, or there is no endpoint for a model.
    """
    services, dialogues = read_schema(schema_path), read_dialogues(dialogues_path)
    place = write_domain(services, dialogues, folder / "dialogues")
    _keep_data(schema_path, dialogues_path, place)
    notice(f"The domain is {place}")
    async with open_model(model) as pool:
        reader = Reader(by, told, mistaken, pool)
        taken = await Drive(load_domain(place), services, dialogues, reader).run(notice)
    figures = count_calls(taken, services)
    report = place / f"{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    report.write_bytes(orjson.dumps(figures, option=orjson.OPT_INDENT_2))
    return figures, report


def _keep_data(schema_path: Path, dialogues_path: Path, place: Path) -> None:
    """Put the data beside the domain, whose services answer from it."""
    shutil.copy(schema_path, place / "schema.json")
    kept = place / "dialogues.jsonl"
    if kept.is_dir():
        shutil.rmtree(kept)
    kept.unlink(missing_ok=True)
    (shutil.copytree if dialogues_path.is_dir() else shutil.copy)(dialogues_path, kept)
