"""A worker that lists the modules imported after its fork from a prepared process."""

from __future__ import annotations

import sys

from celery import signals

before = frozenset(sys.modules)

from tests.integration.chaos.processes.stand_in import app  # noqa: E402, F401


@signals.worker_ready.connect(weak=False)
def say(**_: object) -> None:
    late = sorted(name for name in sys.modules if name not in before and not name.startswith("tests."))
    print(f"imported late: {' '.join(late)}", flush=True)
