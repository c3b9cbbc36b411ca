"""The workers' application with these graphs: `celery -A tests.integration.flower.stand_in worker`."""

from __future__ import annotations

from orchestrator.settings import load_settings
from tests.integration.chaos.processes.counting import build
from tests.integration.flower.graphs import make_catalogue
from workers.app import create_app

app = create_app(load_settings(), build, make_catalogue)
