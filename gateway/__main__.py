"""``python -m gateway``: serve the gateway until SIGTERM."""

from __future__ import annotations

from typing import Annotated

import typer
import uvicorn

from gateway.app import production_app

LOOPBACK = "127.0.0.1"


def serve(
    host: Annotated[str, typer.Option(envvar="PARLEY_HOST")] = LOOPBACK,
    port: Annotated[int, typer.Option(envvar="PARLEY_PORT")] = 8600,
) -> None:
    """Serve the gateway."""
    uvicorn.run(production_app(), host=host, port=port, log_level="info", access_log=False)


if __name__ == "__main__":
    typer.run(serve)
