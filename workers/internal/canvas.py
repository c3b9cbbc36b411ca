"""Build and send Celery canvases for background runs (IF-8, IF-9).

A run's Celery task finishes only when the run does. Celery then starts the next tasks, or stops the canvas if
the run failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from celery import Celery, chain, chord, group, states  # pyright: ignore[reportMissingTypeStubs]
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from orchestrator.adapters.postgres.runs.runs import PostgresRuns
from orchestrator.adapters.task_sender import run_options, sending
from orchestrator.adapters.threads import run_in_thread
from orchestrator.errors import Unavailable
from orchestrator.ports.runs.records import GraphNode, Hint
from orchestrator.ports.runs.status import Urgency
from orchestrator.ports.runs.work import LostShare, Unrun
from orchestrator.ports.tasks import RUN_FLOW, RUN_ITEMS
from workers.internal.outcomes import RunFailed, why_ended
from workers.internal.series_parallel import Fork, Series, find_series

CANNOT_SEND: Final = (OperationalError, RedisError, OSError)


class RunCanvas:
    def __init__(self, app: Celery, runs: PostgresRuns) -> None:
        self._app: Any = app
        self._runs = runs

    async def send(self, hints: Sequence[Hint], *, root: str | None = None) -> None:
        """Send ready runs with their successors. Raises Unavailable.

        `root`: root task ID for the new tasks, or None to let Celery choose the ID.
        """
        first = [hint.run_id for hint in hints]
        series = find_series(first, await self._runs.behind(first))
        if series:
            await sending(lambda: self._build_all(series, root).apply_async(retry=False))

    async def send_share(self, share: LostShare) -> None:
        """Resend the task that executes a share of a run's items. Raises Unavailable."""
        await sending(
            lambda: self._signature(
                RUN_ITEMS, share.run_id, share.flow, share.urgency, share.task_id
            ).apply_async(retry=False)
        )

    async def store_end(self, run: Unrun) -> None:
        """Store a failure as the task result of a run that ended before it started. Raises Unavailable."""
        failure = RunFailed(why_ended(run.status, run.why), run.run_id)
        try:
            await run_in_thread(self._app.backend.store_result, run.task_id, failure, states.FAILURE)
        except CANNOT_SEND as error:
            raise Unavailable(f"The result backend does not respond: {error}") from error

    def shares(self, request: Any, run_id: str, flow: str, urgency: Urgency, count: int) -> Any:
        """Return the chord that replaces a run's task: `count` tasks for items, then the task again for `after_all`.

        `request`: the request of the run's task.
        """
        header = [
            self._signature(RUN_ITEMS, run_id, flow, urgency, f"{request.id}.items.{number}")
            for number in range(count)
        ]
        body = self._again(request, run_id, flow, urgency)
        return chord(header, body, app=self._app)

    def rerun(self, request: Any, hint: Hint) -> Any:
        """Return the task that replaces a run's task, to rerun the run after the hint's delay.

        `request`: the request of the run's task.
        """
        return self._again(request, hint.run_id, hint.flow, hint.urgency).set(countdown=hint.after_s)

    def _build_all(self, series: list[Series], root: str | None) -> Any:
        built = [self._build(one, root) for one in series]
        return built[0] if len(built) == 1 else group(built, app=self._app)

    def _build(self, series: Series, root: str | None) -> Any:
        """Return a chain of the series' steps, or the step itself if there is only one.

        A fork becomes a chord if a run follows the fork, and a group otherwise.
        """
        steps: list[Any] = []
        header: Any = None
        for step in series:
            if isinstance(step, Fork):
                header = group([self._build(branch, root) for branch in step.branches], app=self._app)
                continue
            node = self._node(step, root)
            steps.append(node if header is None else chord(header, node, app=self._app))
            header = None
        if header is not None:
            steps.append(header)
        return steps[0] if len(steps) == 1 else chain(*steps, app=self._app)

    def _node(self, node: GraphNode, root: str | None) -> Any:
        known = {"parent_id": node.parent, "root_id": root}
        options = {name: value for name, value in known.items() if value is not None}
        run = self._signature(RUN_FLOW, node.run_id, node.flow, node.urgency, node.task_id)
        return run.set(**options)

    def _again(self, request: Any, run_id: str, flow: str, urgency: Urgency) -> Any:
        """Return the run's task again, with the same parent. Celery's default parent is the sending task."""
        run = self._signature(RUN_FLOW, run_id, flow, urgency, request.id)
        return run.set(parent_id=request.parent_id, keeps_place=True)

    def _signature(self, name: str, run_id: str, flow: str, urgency: Urgency, task_id: str) -> Any:
        options = run_options(run_id, flow, urgency, name)
        arguments = options.pop("kwargs")
        return self._app.signature(name, kwargs=arguments, immutable=True).set(task_id=task_id, **options)


def runs_carried_by(request: Any) -> frozenset[str]:
    """Return the IDs of the runs that Celery sends when the request's task or chord has succeeded."""
    return frozenset(_run_ids([request.chain, request.chord]))


def _run_ids(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        run_id = part.get("run_id")
        if isinstance(run_id, str):
            yield run_id
        for value in part.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _run_ids(value)
    elif isinstance(part, list | tuple):
        for value in part:  # pyright: ignore[reportUnknownVariableType]
            yield from _run_ids(value)
