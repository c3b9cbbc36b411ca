"""Results of `parley eval`, for operators."""

import asyncio
import re
from itertools import islice
from pathlib import Path
from typing import Annotated

import orjson
from fastapi import APIRouter
from pydantic import StringConstraints

from gateway.dependencies import TheOperations, TheTenant
from gateway.responses.common import documented
from gateway.responses.operations import Evaluation, WholeEvaluation
from orchestrator.errors import NotFound
from orchestrator.types import JsonObject, TenantId, is_object

MOST = 50
"""Maximum number of listed runs."""
DETAILS = frozenset({"confusion", "outcomes", "different"})

router = APIRouter(prefix="/v1/evaluations", tags=["operate"])

# Run names contain their time. Other files are ignored.
_OF_A_RUN = re.compile(r"\d{8}-\d{6}")

# A file or folder name, without path separators.
Name = Annotated[str, StringConstraints(max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]


@router.get("", responses=documented(list[Evaluation]))
async def list_evaluations(
    operations: TheOperations, tenant: TheTenant, domain: Name | None = None
) -> list[JsonObject]:
    """List the latest evaluation runs of one or all domains, newest first."""
    return await asyncio.to_thread(list_kept, operations.evaluations, domain or "*", tenant)


@router.get("/{domain}/{run}", responses=documented(WholeEvaluation))
async def show_evaluation(
    domain: Name, run: Name, operations: TheOperations, tenant: TheTenant
) -> JsonObject:
    """Return an evaluation run with every turn's message, component, answer and problems."""
    found = await asyncio.to_thread(read_kept, operations.evaluations, domain, run, tenant)
    if found is None:
        raise NotFound("evaluation", f"{domain}/{run}")
    return found


def list_kept(folder: Path | None, place: str, tenant: TenantId) -> list[JsonObject]:
    """Return a tenant's latest reports in a subfolder, newest first, without their details."""
    kept = () if folder is None else folder.glob(f"{place}/*.json")
    files = (file for file in kept if _OF_A_RUN.match(file.stem))
    latest = sorted(files, key=lambda file: file.stem, reverse=True)
    own = islice(filter(None, (_read(file, tenant) for file in latest)), MOST)
    return [{name: one for name, one in report.items() if name not in DETAILS} for report in own]


def read_kept(folder: Path | None, place: str, name: str, tenant: TenantId) -> JsonObject | None:
    """Return a report with its details, or None if the tenant has no such report."""
    file = None if folder is None else folder / place / f"{name}.json"
    return None if file is None or not file.is_file() else _read(file, tenant)


def _read(file: Path, tenant: TenantId) -> JsonObject | None:
    """Return the report, or None if it belongs to another tenant."""
    report = orjson.loads(file.read_bytes())
    return report if is_object(report) and report.get("tenant_id") == tenant else None
