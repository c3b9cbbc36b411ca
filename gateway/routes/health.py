"""Liveness and readiness probes (RT-24)."""

from fastapi import APIRouter, Response

from gateway.dependencies import TheOperations
from gateway.problems import problem
from gateway.responses.operations import Alive, Ready
from orchestrator.errors import Unavailable

router = APIRouter(prefix="/health", tags=["operate"])


@router.get("/live")
async def live() -> Alive:
    """Return 200 if the process responds."""
    return Alive(status="live")


@router.get("/ready", response_model=Ready)
async def ready(operations: TheOperations) -> Ready | Response:
    """Return 200 if the stores respond, or 503 with the stores that don't.

    `models_down`: models with an open circuit breaker. `off`: problems that disable background flows or
    scheduled jobs. The gateway stays ready in both cases, because turns still run.
    """
    missing = await operations.probe()
    if missing:
        what = "; ".join(f"{name}: {why}" for name, why in missing.items())
        return problem(503, Unavailable.code, f"Not ready: {what}", missing=missing)
    down, off = await operations.circuits(), await operations.off()
    return Ready(status="ready", models_down=down, off=off)
