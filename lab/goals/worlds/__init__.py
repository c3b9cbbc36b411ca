"""Worlds of simulated users: the travel domain, and a domain created by `parley domain new`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from lab.goals.goal import World
from lab.goals.grammar import Grammar
from lab.goals.worlds.notes import Notes
from lab.goals.worlds.travel import Travel
from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.nlu.system1 import System1

WORLDS: dict[str, Callable[[Grammar], World]] = {"notes": Notes, "travel": Travel}


def open_world(name: str, grammar: Grammar) -> tuple[World, LoadedDomain, System1]:
    world = WORLDS[name](grammar)
    return world, *_load(world.folder)


@cache
def _load(folder: str) -> tuple[LoadedDomain, System1]:
    loaded = load_domain(folder)
    return loaded, System1.for_domain(loaded.domain)
