"""The worker's application with the counting agent: `celery -A tests.integration.chaos.processes.stand_in worker`."""

from __future__ import annotations

from orchestrator.settings import load_settings
from tests.integration.chaos.processes.counting import build
from workers.app import create_app

app = create_app(load_settings().model_copy(update={"domain": "counting"}), build)
