"""The workers' application with these flows: `celery -A tests.contract.internal.stand_in worker`."""

from __future__ import annotations

from orchestrator.settings import load_settings
from tests.contract.internal.flows import make_catalogue
from tests.integration.chaos.processes.counting import build
from workers.app import create_app

app = create_app(load_settings(), build, make_catalogue)
