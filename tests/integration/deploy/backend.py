"""A backend that knows Celery and the broker alone: submits one turn and prints what became of it.

`python -m tests.integration.deploy.backend REDIS_URL SESSION`
"""

from __future__ import annotations

import json
import sys

from celery import Celery

from orchestrator.adapters.redis.address import for_celery, sentinel_options


def main(url: str, session: str) -> None:
    app = Celery(broker=for_celery(url), backend=for_celery(url))
    app.conf.broker_transport_options = sentinel_options(url)
    app.conf.result_backend_transport_options = sentinel_options(url)
    sent = app.send_task(
        "orchestrator.submit_turn",
        kwargs={"session_id": session, "text": "effect", "domain": "counting", "wait": 20},
        queue="submissions",
    )
    print(json.dumps(sent.get(timeout=60)))


if __name__ == "__main__":
    main(*sys.argv[1:])
