"""Graphs for the suite, with named or random shapes."""

from __future__ import annotations

import random

from internal_flows.catalogue import Catalogue
from orchestrator.ports.runs.records import NewRun, RunRecord

SHAPES: dict[str, dict[int, tuple[int, ...]]] = {
    "chain": {0: (), 1: (0,), 2: (1,), 3: (2,)},
    "fan_out": {0: (), 1: (0,), 2: (0,), 3: (0,)},
    "fan_in": {0: (), 1: (), 2: (), 3: (0, 1, 2)},
    "diamond": {0: (), 1: (0,), 2: (0,), 3: (1, 2)},
    "not_series_parallel": {0: (), 1: (), 2: (0,), 3: (0, 1)},
    "independent": {0: (), 1: (), 2: ()},
}


def make_nodes(catalogue: Catalogue, shape: dict[int, tuple[int, ...]], **told: dict) -> tuple[NewRun, ...]:
    """Return nodes ``n0``, ``n1``, …. `told`: parameters by node name."""
    return tuple(
        catalogue.new_run(
            f"n{number}", depends_on=tuple(f"n{needed}" for needed in needs), parameters=dict(told)
        )
        for number, needs in shape.items()
    )


def random_shape(seed: int, size: int) -> tuple[dict[int, tuple[int, ...]], dict[str, dict]]:
    """Return a random graph and the duration of its nodes."""
    choose = random.Random(seed)
    shape = {
        number: tuple(sorted(choose.sample(range(number), min(number, choose.choice((0, 1, 1, 2, 3))))))
        for number in range(size)
    }
    return shape, {f"n{number}": {"takes_s": choose.uniform(0.0, 0.08)} for number in shape}


def early_starts(nodes: tuple[NewRun, ...], ended: dict[str, RunRecord]) -> list[str]:
    """Return the nodes that started before a predecessor had ended."""
    return [
        f"{node.flow} before {needed}"
        for node in nodes
        for needed in node.depends_on
        if ended[node.flow].closing["began"] < ended[needed].closing["ended"]
    ]
