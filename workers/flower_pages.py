"""Flower without remote control: worker data comes from events instead of inspection.

Workers reject remote commands by default, so with inspection, Flower's lists of workers would be empty.
"""

import asyncio
from collections import Counter
from typing import Any, Final

from flower.app import Flower

_FACTS: Final = ("pid", "sw_ident", "sw_ver", "freq", "loadavg", "active", "processed")
_COUNTED: Final = ("received", "succeeded", "failed", "retried", "revoked")


class WatchedFlower(Flower):
    @property
    def workers(self) -> Any:
        """Return the latest data from each worker's events, by worker name."""
        events: Any = self.events
        # A lookup reorders Celery's worker cache, which must not happen during iteration.
        return {name: _describe(events.state, name) for name in list(events.state.workers)}

    def update_workers(self, workername: str | None = None) -> Any:
        """Return a finished future, because workers send events unprompted."""
        del workername
        answered: asyncio.Future[None] = asyncio.get_event_loop().create_future()
        answered.set_result(None)
        return answered


def _describe(state: Any, name: str) -> dict[str, Any]:
    """Return a worker's data from its events.

    The key `stats` has the format of Celery's inspection replies, which Flower's worker page reads.
    """
    worker, counted = state.workers[name], state.counter[name]
    facts = {key: getattr(worker, key) for key in _FACTS}
    facts |= {key: counted.get(f"task-{key}", 0) for key in _COUNTED}
    tasks = [task for _, task in state.tasks_by_worker(name) if task.name is not None]
    stats = {**facts, "total": Counter(task.name for task in tasks), "broker": {}}
    return {"alive": worker.alive, "timestamp": worker.timestamp, "stats": stats}
