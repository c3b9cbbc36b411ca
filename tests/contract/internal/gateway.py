"""A gateway that serves these flows: `python -m tests.contract.internal.gateway HOST PORT`."""

from __future__ import annotations

import sys

import uvicorn

from gateway.app import create_app
from gateway.wiring import open_dependencies
from orchestrator.settings import load_settings
from tests.contract.internal.flows import make_catalogue


def serve(host: str, port: int) -> None:
    settings = load_settings()
    flows = make_catalogue()
    uvicorn.run(
        create_app(lambda: open_dependencies(settings, catalogue=flows)),
        host=host,
        port=port,
        access_log=False,
    )


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
