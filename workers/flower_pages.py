"""Flower without remote control: worker data comes from events instead of inspection.

By default, workers reject remote commands, which would leave Flower's worker page and API list empty.
"""

import asyncio
from typing import Any, Final

from flower.app import Flower
from flower.utils import tasks
from flower.views import BaseHandler
from tornado import template, web

SHOWN_TASKS: Final = 100
_TOLD: Final = ("pid", "sw_ident", "sw_ver", "freq", "loadavg", "active", "processed")
_COUNTED: Final = ("received", "succeeded", "failed", "retried", "revoked")
_PAGE: Final = "worker_events.html"
_TEMPLATE: Final = """{% extends "base.html" %}
{% block title %}{{ name }} · Flower{% end %}
{% block navbar %}{% module Template("navbar.html", active_tab="workers") %}{% end %}
{% block container %}
<div class="detail-page page-section">
  <header class="detail-page-header">
    <p class="page-eyebrow">Worker details</p>
    <h1 id="workername">{{ name }}</h1>
  </header>
  <section class="detail-card" aria-label="Worker details">
    <dl class="detail-list">
      {% for key, value in facts.items() %}
      <div class="detail-row"><dt>{{ key }}</dt><dd>{{ value }}</dd></div>
      {% end %}
    </dl>
  </section>
  <section class="detail-card" aria-label="Latest tasks">
    <table class="table table-hover align-middle">
      <thead><tr><th>Task</th><th>ID</th><th>State</th><th>Runtime (s)</th></tr></thead>
      <tbody>
        {% for task in latest %}
        <tr>
          <td>{{ task.name }}</td>
          <td><a href="{{ reverse_url('task', task.uuid) }}">{{ task.uuid }}</a></td>
          <td>{{ task.state }}</td>
          <td>{{ '' if task.runtime is None else '%.3f' % task.runtime }}</td>
        </tr>
        {% end %}
      </tbody>
    </table>
  </section>
</div>
{% end %}
"""


class WatchedFlower(Flower):
    """A Flower application that never inspects workers."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        prefix = f"/{self.options.url_prefix}" if self.options.url_prefix else ""
        self.add_handlers(".*", [(rf"{prefix}/worker/(.+)", WorkerPage)])

    @property
    def workers(self) -> Any:
        """Return the latest data from each worker's events, by worker name."""
        events: Any = self.events
        # A lookup reorders Celery's worker cache, which must not happen during iteration.
        return {name: _facts(events.state, name) for name in list(events.state.workers)}

    def update_workers(self, workername: str | None = None) -> Any:
        """Do nothing: workers send events without requests."""
        del workername
        answered: asyncio.Future[None] = asyncio.get_event_loop().create_future()
        answered.set_result(None)
        return answered


class WorkerPage(BaseHandler):
    """A worker's page, rendered from its events."""

    @web.authenticated
    def get(self, name: str) -> None:
        """Render the page, or respond with 404 if the worker sent no events."""
        application: Any = self.application
        state = application.events.state
        if name not in state.workers:
            raise web.HTTPError(404, f"Unknown worker '{name}'")
        self.render(_PAGE, name=name, facts=_facts(state, name), latest=_latest(application.events, name))

    def get_template_path(self) -> str:
        """Return Flower's template folder with a trailing slash, because Tornado caches one loader per path."""
        return f"{super().get_template_path()}/"

    def create_template_loader(self, template_path: str) -> template.BaseLoader:
        """Return a loader for Flower's templates and this page."""
        return _Templates(template_path)


class _Templates(template.Loader):
    def _create_template(self, name: str) -> template.Template:
        if name == _PAGE:
            return template.Template(_TEMPLATE, name=name, loader=self)
        return super()._create_template(name)


def _facts(state: Any, name: str) -> dict[str, Any]:
    worker, counted = state.workers[name], state.counter[name]
    told = {key: getattr(worker, key) for key in ("alive", "timestamp", *_TOLD)}
    return told | {key: counted.get(f"task-{key}", 0) for key in _COUNTED}


def _latest(events: Any, name: str) -> list[Any]:
    found = tasks.iter_tasks(events, worker=name, sort_by="-received", limit=SHOWN_TASKS)
    return [task for _, task in found]
