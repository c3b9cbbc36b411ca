"""Liveness and readiness probes (RT-24)."""

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import Field

from gateway.dependencies import TheOperations
from gateway.problems import problem
from gateway.schemas import ResponseModel
from orchestrator.errors import Unavailable

router = APIRouter(prefix="/health", tags=["operate"])


class Alive(ResponseModel):
    status: Literal["live"]


class Ready(ResponseModel):
    status: Literal["ready"]
    off: list[str] = Field(description="Problems that disabled background flows or scheduled jobs.")


@router.get("/live")
async def live() -> Alive:
    """Return 200 if the process responds."""
    return Alive(status="live")


@router.get("/ready", response_model=Ready)
async def ready(operations: TheOperations) -> Ready | Response:
    """Return 200 if the stores respond, or 503 with the stores that don't.

    `off`: problems that disable background flows or scheduled jobs. The gateway stays ready, because turns
    still run.
    """
    missing = await operations.probe()
    if missing:
        what = "; ".join(f"{name}: {why}" for name, why in missing.items())
        return problem(503, Unavailable.code, f"Not ready: {what}", missing=missing)
    return Ready(status="ready", off=await operations.off())
