"""The worker's application with dying agents: `celery -A tests.integration.chaos.processes.plan_killer worker`."""

from __future__ import annotations

from orchestrator.settings import load_settings
from tests.integration.chaos.processes.plan_deaths import build
from workers.app import create_app

app = create_app(load_settings(), build)
