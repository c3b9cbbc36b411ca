"""The worlds that goals are about: a shipped domain, and one as `parley domain new` creates it."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.adapters.domains.folder import LoadedDomain
from orchestrator.nlu.system1 import System1
from tests.goals.goal import World
from tests.goals.grammar import Grammar
from tests.goals.worlds.notes import Notes
from tests.goals.worlds.travel import Travel
from tests.trained import trained

WORLDS: dict[str, Callable[[Grammar], World]] = {"notes": Notes, "travel": Travel}


def open_world(name: str, grammar: Grammar) -> tuple[World, LoadedDomain, System1]:
    """A world, with its domain loaded and its System 1 trained once."""
    world = WORLDS[name](grammar)
    return world, *trained(world.folder)
