"""Background flows whose stages follow the run's parameters, in any process."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from internal_flows.catalogue import Catalogue
from internal_flows.stages import (
    InternalFlow,
    OnFailure,
    Options,
    RunContext,
    Urgency,
    before_all_response,
    data_response,
    redo_run,
    skip,
)

_CALLS = {
    "skip": skip,
    "redo_run": redo_run,
    "before_all_response": before_all_response,
    "data_response": data_response,
}


def _told(run: RunContext, stage: str, default: Any) -> Any:
    """Return a stage's scripted result: ``{"call": …}``, ``{"json": …}``, ``{"fail": …}`` or a value."""
    if stage not in run.parameters:
        return default
    told = run.parameters[stage]
    if isinstance(told, dict) and "call" in told:
        return _CALLS[told["call"]](**told.get("with", {}))
    if isinstance(told, dict) and "json" in told:
        return told["json"]
    if isinstance(told, dict) and "fail" in told:
        raise ValueError(told["fail"])
    return told


class Scripted(InternalFlow):
    """A flow whose stages return what the parameters specify."""

    name = "scripted"
    trigger = "by_hand"

    async def before_all(self, run):
        return _told(run, "before_all", None)

    async def data(self, run, item):
        return _told(run, "data", item)

    async def work(self, run, item, data):
        return _told(
            run, "work", {"item": item, "data": data, "run_data": run.data, "model": run.options.model}
        )

    async def output(self, run, item, data, result):
        return _told(run, "output", result)

    async def after_all(self, run, outputs):
        return _told(run, "after_all", outputs)


class Chained(InternalFlow):
    """A flow that requests reruns until its count reaches `until`. It fails at the count `fail_at`."""

    name = "chained"
    trigger = "by_hand"

    async def work(self, run, item, data):
        return {"count": run.redo_count, "at": time.time()}

    async def after_all(self, run, outputs):
        count = run.redo_count or 0
        if count == run.parameters.get("fail_at"):
            raise RuntimeError("told to fail")
        if count < run.parameters.get("until", 0):
            return redo_run()
        return {"count": run.redo_count, "outputs": outputs}


class Endless(Scripted):
    """A flow that always requests a rerun, with a ceiling of two."""

    name = "endless"
    redo_ceiling = 2

    async def after_all(self, run, outputs):
        return _told(run, "after_all", redo_run())


class Lifted(Chained):
    """A flow without a redo ceiling."""

    name = "lifted"
    redo_ceiling = None


class Doubling(InternalFlow):
    """A flow that doubles typed inputs. Inputs in `fail` fail, and those in `skip` are skipped."""

    name = "doubling"
    trigger = "by_hand"
    input_type = int
    options = Options(concurrency=3)

    async def data(self, run, item):
        if item in run.parameters.get("fail", []):
            raise ValueError(f"{item} is told to fail")
        if item in run.parameters.get("skip", []):
            return skip(f"{item} is told to be skipped")
        return item

    async def work(self, run, item, data):
        await _take(run.parameters)
        return 2 * data


class Pressing(Doubling):
    """A flow that a turn waits for."""

    name = "pressing"
    urgency = Urgency.URGENT


class Late(InternalFlow):
    """A flow that exceeds its timeout."""

    name = "late"
    trigger = "by_hand"
    options = Options(timeout_s=0.05)

    async def work(self, run, item, data):
        await asyncio.sleep(30)


async def _take(told: dict[str, Any]) -> None:
    """Sleep for `takes_s` seconds, then until the file `until` exists."""
    await asyncio.sleep(told.get("takes_s", 0))
    while _lacks(told.get("until")):
        await asyncio.sleep(0.02)


def _lacks(path: str | None) -> bool:
    return path is not None and not Path(path).exists()


class Node(InternalFlow):
    """A graph node that reports when it started and ended."""

    trigger = "graph"

    async def before_all(self, run):
        began = time.time()
        told = run.parameters.get(self.name, {})
        await _take(told)
        if told.get("fail") or _lacks(told.get("needs")):
            raise RuntimeError("told to fail")
        if told.get("skip"):
            return skip("told to be skipped")
        if (run.redo_count or 0) < told.get("redo", 0):
            return redo_run()
        return {"began": began}

    async def after_all(self, run, outputs):
        return {**run.data, "ended": time.time()}


NODES = [type(f"Node{number}", (Node,), {"name": f"n{number}"}) for number in range(40)]


class Forgiving(Node):
    """A node whose failure does not block its successors."""

    name = "forgiving"
    on_failure = OnFailure.RELEASE


class Diamond(Node):
    """A node of a trigger with two roots and two fan-ins."""

    trigger = "diamond"


DIAMOND = [
    type(f"Diamond{name}", (Diamond,), {"name": f"diamond_{name}", "depends_on": needs})
    for name, needs in {
        "a": (),
        "b": (),
        "c": ("diamond_a", "diamond_b"),
        "d": ("diamond_c",),
        "e": ("diamond_c",),
        "f": ("diamond_d", "diamond_e"),
    }.items()
]

FLOWS = [*DIAMOND, Scripted, Chained, Endless, Lifted, Doubling, Pressing, Late, Forgiving, *NODES]


def make_catalogue(_ports: Any = None) -> Catalogue:
    return Catalogue(FLOWS)
