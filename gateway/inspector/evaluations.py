"""Shows what `parley eval` has kept, to operators: the runs of each domain, and all that came of one."""

import asyncio
import re
from pathlib import Path
from typing import Annotated

import orjson
from fastapi import APIRouter
from pydantic import StringConstraints

from gateway.dependencies import TheOperations
from gateway.responses.common import documented
from gateway.responses.operations import Evaluation, WholeEvaluation
from orchestrator.errors import NotFound
from orchestrator.types import JsonObject

MOST = 50
"""Runs that are listed: the latest."""
DETAILS = frozenset({"confusion", "outcomes", "different"})

router = APIRouter(prefix="/v1/evaluations", tags=["operate"])

# A run is named by its time; other files beside it are not runs.
_OF_A_RUN = re.compile(r"\d{8}-\d{6}")

# A name within the folder, and nothing above it.
Name = Annotated[str, StringConstraints(max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]


@router.get("", responses=documented(list[Evaluation]))
async def list_evaluations(operations: TheOperations, domain: Name | None = None) -> list[JsonObject]:
    """List the latest runs, of one domain or of all, the newest first; none where this gateway knows no folder."""
    return await asyncio.to_thread(list_kept, operations.evaluations, domain or "*")


@router.get("/{domain}/{run}", responses=documented(WholeEvaluation))
async def show_evaluation(domain: Name, run: Name, operations: TheOperations) -> JsonObject:
    """Show a run with every turn: what was said, who read it, what was answered, and what was wrong with that."""
    found = await asyncio.to_thread(read_kept, operations.evaluations, domain, run)
    if found is None:
        raise NotFound("evaluation", f"{domain}/{run}")
    return found


def list_kept(folder: Path | None, place: str) -> list[JsonObject]:
    """List what is kept at some place within the folder, the newest first, without its details."""
    kept = () if folder is None else folder.glob(f"{place}/*.json")
    files = (file for file in kept if _OF_A_RUN.match(file.stem))
    latest = sorted(files, key=lambda file: file.stem, reverse=True)[:MOST]
    runs = [orjson.loads(file.read_bytes()) for file in latest]
    return [{name: one for name, one in run.items() if name not in DETAILS} for run in runs]


def read_kept(folder: Path | None, place: str, name: str) -> JsonObject | None:
    """Read one of them; None: it is not there."""
    file = None if folder is None else folder / place / f"{name}.json"
    return None if file is None or not file.is_file() else orjson.loads(file.read_bytes())
