"""`internal_flows.start_run` in Celery's canvas, by a plain client with its own queue; runs are awaited
natively.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from celery import Signature, chain, chord, group

from orchestrator.adapters.redis.address import for_celery
from orchestrator.ports.tasks import START_RUN
from parley.embedded import Stores
from tests.cases import for_each
from tests.celery_clients import connected
from tests.integration.chaos.fleet import fleet
from tests.integration.flower.test_agreement import STAND_IN
from tests.integration.front_door.canvases import Sender
from tests.integration.front_door.plain_backend import make_app
from tests.integration.front_door.test_canvas import their_worker
from tests.redis_numbers import numbered

WITHIN_S = 40.0


class Starter(Sender):
    """A backend that starts background flows."""

    def start(self, trigger: str = "chain", **options: Any) -> Signature:
        """Return a signature that starts a graph."""
        return self.app.signature(START_RUN, kwargs={"trigger": trigger}, queue="internal", **options)

    def one(self, flow: str, *args: Any, **more: Any) -> Signature:
        """Return a signature that starts one flow."""
        return self.app.signature(START_RUN, args=args, kwargs={"flow": flow, **more}, queue="internal")

    def require_runs(self, receipt: Any, count: int) -> None:
        """Check that each run in the receipt ends as an ordinary task."""
        assert sorted(receipt["runs"].values()) == sorted(receipt["run_ids"])
        assert len(receipt["run_ids"]) == count
        for run_id in receipt["run_ids"]:
            assert self.get(self.app.AsyncResult(run_id)) == {"run_id": run_id, "status": "done"}


def links(sender: Starter) -> None:
    result = sender.start().apply_async(link=[sender.note("one"), sender.note("two")])
    sender.require_runs(sender.get(result), 3)
    for tag in ("one", "two"):
        ((given,),) = sender.noted(tag)
        sender.require_runs(given, 3)


def link_errors(sender: Starter) -> None:
    result = sender.start("nonsense").apply_async(
        link=sender.note("never"), link_error=sender.note("refused")
    )
    with pytest.raises(Exception, match="nonsense"):
        sender.get(result)
    assert sender.noted("refused")


def chains(sender: Starter) -> None:
    result = chain(sender.note("before"), sender.start(immutable=True), sender.note("after")).apply_async()
    (receipt,) = sender.get(result)
    sender.require_runs(receipt, 3)


def results_become_inputs(sender: Starter) -> None:
    """A run with several inputs uses the results of the previous task."""
    before = sender.app.signature(
        "theirs.note", args=[1, 2, 3], kwargs={"tag": f"{sender.name}-in"}, queue="theirs"
    )
    receipt = sender.get(chain(before, sender.one("items_in_a_chain_a")).apply_async())
    sender.require_runs(receipt, 1)


def groups(sender: Starter) -> None:
    result = group([sender.start("chain"), sender.start("diamond")]).apply_async()
    for receipt, count in zip(result.get(timeout=sender.within_s), (3, 4), strict=True):
        sender.require_runs(receipt, count)


def chords(sender: Starter) -> None:
    sender.get(chord([sender.start("chain"), sender.start("crossed")])(sender.note("body")))
    ((receipts,),) = sender.noted("body")
    for receipt, count in zip(receipts, (3, 4), strict=True):
        sender.require_runs(receipt, count)


def chords_that_fail(sender: Starter) -> None:
    body = sender.note("never").on_error(sender.note("failed", immutable=True))
    result = chord([sender.start("chain"), sender.start("nonsense")])(body)
    with pytest.raises(Exception, match="nonsense"):
        sender.get(result)
    assert sender.noted("failed")


def bodies(sender: Starter) -> None:
    result = chord([sender.note("one"), sender.note("two")])(sender.start("fan_in", immutable=True))
    sender.require_runs(sender.get(result), 4)


CANVASES: list[Callable[[Starter], None]] = [
    links,
    link_errors,
    chains,
    results_become_inputs,
    groups,
    chords,
    chords_that_fail,
    bodies,
]


@pytest.fixture(scope="module")
def starter(
    database_url: str, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Starter]]:
    redis_url, folder = numbered(stores.redis_url, 10), tmp_path_factory.mktemp("starter")
    with (
        fleet(database_url, redis_url, folder) as crew,
        their_worker(for_celery(redis_url), redis_url, folder / "theirs.log"),
        redis.Redis.from_url(redis_url) as server,
        connected(make_app(for_celery(redis_url), for_celery(redis_url))) as app,
    ):
        crew.start(1, application=STAND_IN, queues="internal,urgent", threads=8)
        yield lambda name: Starter(app, server, None, name, "", WITHIN_S)


@for_each("canvas", CANVASES, ids=lambda canvas: canvas.__name__)
def test_background_flows_are_started_in_any_canvas(
    starter: Callable[[str], Starter], canvas: Callable[[Starter], None]
) -> None:
    """IF-9"""
    canvas(starter(canvas.__name__))
