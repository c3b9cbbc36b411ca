"""Reports of `parley eval` and `parley replay`, for operators."""

import asyncio
import re
from itertools import islice
from pathlib import Path
from typing import Annotated

import orjson
from fastapi import APIRouter
from pydantic import StringConstraints

from gateway.dependencies import TheOperations, TheTenant
from gateway.schemas import ResponseModel, documented
from orchestrator.errors import NotFound
from orchestrator.types import JsonObject, TenantId, is_object

MOST = 50
"""Maximum number of listed reports."""
DETAILS = frozenset({"confusion", "outcomes", "different"})

router = APIRouter(prefix="/v1", tags=["operate"])


class Report(ResponseModel):
    """A report, as `parley eval --json` or `parley replay --json` prints it.

    In lists, `confusion`, `outcomes` and `different` are omitted.
    """

    tenant_id: str
    domain: str
    made_at: str


# The name of a report's file begins with the report's time. Other files are ignored.
_REPORT = re.compile(r"\d{8}-\d{6}")

# A file or folder name, without path separators.
Name = Annotated[str, StringConstraints(max_length=128, pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$")]


@router.get("/evaluations", responses=documented(list[Report]))
async def list_evaluations(
    operations: TheOperations, tenant: TheTenant, domain: Name | None = None
) -> list[JsonObject]:
    """List the latest evaluation runs of one domain or all domains, newest first."""
    return await asyncio.to_thread(_list, operations.evaluations, domain or "*", tenant)


@router.get("/evaluations/{domain}/{run}", responses=documented(Report))
async def show_evaluation(
    domain: Name, run: Name, operations: TheOperations, tenant: TheTenant
) -> JsonObject:
    """Return an evaluation run with each turn's message, deciding component, answer and problems."""
    return await asyncio.to_thread(_read, operations.evaluations, domain, run, tenant)


@router.get("/replays", responses=documented(list[Report]))
async def list_replays(
    operations: TheOperations, tenant: TheTenant, domain: Name | None = None
) -> list[JsonObject]:
    """List the latest replays of one domain or all domains, newest first."""
    return await asyncio.to_thread(_list, operations.evaluations, f"{domain or '*'}/replays", tenant)


@router.get("/replays/{domain}/{replay}", responses=documented(Report))
async def show_replay(domain: Name, replay: Name, operations: TheOperations, tenant: TheTenant) -> JsonObject:
    """Return a replay. Each turn that differs includes its message, and both values of each differing aspect."""
    return await asyncio.to_thread(_read, operations.evaluations, f"{domain}/replays", replay, tenant)


def _list(folder: Path | None, place: str, tenant: TenantId) -> list[JsonObject]:
    """Return a tenant's latest reports, newest first, without `DETAILS`. `place`: pattern for subfolders."""
    kept = () if folder is None else folder.glob(f"{place}/*.json")
    files = (file for file in kept if _REPORT.match(file.stem))
    latest = sorted(files, key=lambda file: file.stem, reverse=True)
    own = islice(filter(None, (_load(file, tenant) for file in latest)), MOST)
    return [{name: one for name, one in report.items() if name not in DETAILS} for report in own]


def _read(folder: Path | None, place: str, name: str, tenant: TenantId) -> JsonObject:
    """Return a report in the subfolder `place`. Raises NotFound if the tenant has no such report."""
    file = None if folder is None else folder / place / f"{name}.json"
    report = _load(file, tenant) if file is not None and file.is_file() else None
    if report is None:
        raise NotFound("report", f"{place}/{name}")
    return report


def _load(file: Path, tenant: TenantId) -> JsonObject | None:
    """Return the report, or None if it belongs to another tenant or is not a JSON object."""
    report = orjson.loads(file.read_bytes())
    return report if is_object(report) and report.get("tenant_id") == tenant else None
