"""Live: the process answers. Ready: what it needs answers as well (RT-24)."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gateway.doors import TheDoors
from gateway.problems import problem
from orchestrator.errors import Unavailable

router = APIRouter(prefix="/health", tags=["operate"])


@router.get("/live")
async def live() -> dict[str, str]:
    return {"status": "live"}


@router.get("/ready", response_model=None)
async def ready(doors: TheDoors) -> dict[str, str] | Response:
    """503 naming what is missing, or 200."""
    missing = await doors.probe()
    if missing:
        what = "; ".join(f"{name}: {why}" for name, why in missing.items())
        return problem(503, Unavailable.code, f"Not ready: {what}", missing=missing)
    return {"status": "ready"}
