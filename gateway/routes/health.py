"""Live: the process answers. Ready: what it needs answers as well (RT-24)."""

from __future__ import annotations

from fastapi import APIRouter, Response

from gateway import shapes
from gateway.doors import TheDoors
from gateway.problems import problem
from orchestrator.errors import Unavailable
from orchestrator.types import JsonObject

router = APIRouter(prefix="/health", tags=["operate"])


@router.get("/live", responses={200: {"model": shapes.Alive}})
async def live() -> dict[str, str]:
    """The process answers."""
    return {"status": "live"}


@router.get("/ready", response_model=None, responses={200: {"model": shapes.Ready}})
async def ready(doors: TheDoors) -> JsonObject | Response:
    """503 naming what is missing, or 200; `models_down` are those whose breaker is open somewhere.

    Without a model turns go on, so that does not make the gateway unready.
    """
    missing = await doors.probe()
    if missing:
        what = "; ".join(f"{name}: {why}" for name, why in missing.items())
        return problem(503, Unavailable.code, f"Not ready: {what}", missing=missing)
    return {"status": "ready", "models_down": await doors.circuits()}
