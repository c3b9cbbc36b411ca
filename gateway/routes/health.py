"""Live: the process answers. Ready: what it needs answers as well (RT-24)."""

from fastapi import APIRouter, Response

from gateway.dependencies import TheOperations
from gateway.problems import problem
from gateway.responses.operations import Alive, Ready
from orchestrator.errors import Unavailable

router = APIRouter(prefix="/health", tags=["operate"])


@router.get("/live")
async def live() -> Alive:
    """The process answers."""
    return Alive(status="live")


@router.get("/ready", response_model=Ready)
async def ready(operations: TheOperations) -> Ready | Response:
    """503 naming what is missing, or 200; `models_down` are those whose breaker is open somewhere.

    `off` says why Internal flows or scheduled jobs are off. Turns go on without them and without a model, so
    neither makes the gateway unready.
    """
    missing = await operations.probe()
    if missing:
        what = "; ".join(f"{name}: {why}" for name, why in missing.items())
        return problem(503, Unavailable.code, f"Not ready: {what}", missing=missing)
    down, off = await operations.circuits(), await operations.off()
    return Ready(status="ready", models_down=down, off=off)
