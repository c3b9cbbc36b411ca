"""Graphs of background flows for comparing Flower, Celery's results and PostgreSQL: each is a trigger.

A word controls each node: ``fail``, ``skip``, ``items``, ``bad items``, ``redo``, ``exit`` (ends its worker),
``poison`` (an item ends the worker), ``needs`` (fails until its file exists), ``release`` (fails and releases
its successors).
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

from internal_flows.catalogue import Catalogue
from internal_flows.stages import InternalFlow, OnFailure, Options, before_all_response, redo_run, skip

TAKES_S = 0.15
ITEMS = 6

Shape = dict[str, tuple[str, ...]]

CHAIN: Shape = {"a": (), "b": ("a",), "c": ("b",)}
FAN_OUT: Shape = {"a": (), "b": ("a",), "c": ("a",), "d": ("a",)}
FAN_IN: Shape = {"a": (), "b": (), "c": (), "d": ("a", "b", "c")}
DIAMOND: Shape = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
TWO_DIAMONDS: Shape = {**DIAMOND, "e": ("d",), "f": ("d",), "g": ("e", "f")}
CROSSED: Shape = {"a": (), "b": (), "c": ("a",), "d": ("a", "b")}
COMPLETE: Shape = {"a": (), "b": (), "c": ("a", "b"), "d": ("a", "b")}
NESTED: Shape = {
    "a": (),
    "b": ("a",),
    "c": ("b",),
    "d": ("b",),
    "e": ("c", "d"),
    "f": ("a",),
    "g": ("e", "f"),
}
TREE: Shape = {"a": (), "b": ("a",), "c": ("a",), "d": ("b",), "e": ("b",), "f": ("c",), "g": ("c",)}
LONG: Shape = {name: (chr(ord(name) - 1),) if name != "a" else () for name in "abcdefgh"}
LAYERS: Shape = {
    "a": (),
    "b": (),
    "c": ("a",),
    "d": ("a", "b"),
    "e": ("c", "d"),
    "f": ("b",),
    "g": ("e", "f"),
}

GRAPHS: dict[str, tuple[Shape, dict[str, str]]] = {
    "chain": (CHAIN, {}),
    "long_chain": (LONG, {}),
    "fan_out": (FAN_OUT, {}),
    "fan_in": (FAN_IN, {}),
    "diamond": (DIAMOND, {}),
    "two_diamonds": (TWO_DIAMONDS, {}),
    "crossed": (CROSSED, {}),
    "complete": (COMPLETE, {}),
    "nested": (NESTED, {}),
    "tree": (TREE, {}),
    "layers": (LAYERS, {}),
    "items_in_a_chain": (CHAIN, {"b": "items"}),
    "items_first": (TWO_DIAMONDS, {"a": "items"}),
    "items_in_a_diamond": (DIAMOND, {"b": "items", "c": "items"}),
    "items_everywhere": (DIAMOND, dict.fromkeys("abcd", "items")),
    "first_fails": (CHAIN, {"a": "fail"}),
    "middle_fails": (LONG, {"d": "fail"}),
    "branch_fails": (TWO_DIAMONDS, {"b": "fail"}),
    "nested_branch_fails": (NESTED, {"c": "fail"}),
    "items_fail": (DIAMOND, {"b": "bad items"}),
    "skipped": (DIAMOND, {"a": "skip", "b": "skip"}),
    "released": (DIAMOND, {"b": "release"}),
    "rerun": (CHAIN, {"b": "redo"}),
    "redone_by_hand": (TWO_DIAMONDS, {"b": "needs"}),
    "poisoned": (CHAIN, {"b": "exit"}),
    "poisoned_item": (DIAMOND, {"b": "poison"}),
}


class Node(InternalFlow):
    """A node of a graph. `does`: its word."""

    does = ""
    options = Options(concurrency=3)

    async def before_all(self, run: Any) -> Any:
        await asyncio.sleep(TAKES_S)
        if self.does == "exit":
            os._exit(7)
        if self.does in {"fail", "release"} or (self.does == "needs" and _lacks(run.parameters["file"])):
            raise RuntimeError("told to fail, with a xylophone in it")
        if self.does == "skip":
            return skip("told to be skipped")
        if self.does == "redo" and (run.redo_count or 0) < 2:
            return redo_run()
        if self.does in {"items", "bad items", "poison"}:
            return before_all_response(inputs=[*range(ITEMS)])
        return None

    async def work(self, run: Any, item: Any, data: Any) -> Any:
        await asyncio.sleep(TAKES_S)
        if self.does == "poison" and item == 1:
            os._exit(7)
        if self.does == "bad items" and item == 1:
            raise RuntimeError("told to fail, with a xylophone in it")
        return item


def _lacks(path: str) -> bool:
    return not Path(path).exists()


def make_catalogue(_ports: Any = None) -> Catalogue:
    return Catalogue(
        type(
            f"{trigger}_{name}",
            (Node,),
            {
                "name": f"{trigger}_{name}",
                "trigger": trigger,
                "depends_on": tuple(f"{trigger}_{needed}" for needed in needs),
                "does": words.get(name, ""),
                "on_failure": OnFailure.RELEASE if words.get(name) == "release" else OnFailure.BLOCK,
            },
        )
        for trigger, (shape, words) in GRAPHS.items()
        for name, needs in shape.items()
    )
