"""Domains loaded and trained once per test process, because no conversation changes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import orjson

from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.nlu.system1 import System1
from orchestrator.types import JsonObject
from parley.simulator import Conversation, Simulator

_TESTS = Path(__file__).parent
_FOLDERS = (_TESTS / "domains", _TESTS / "transcripts" / "domains")


@cache
def trained(name: str) -> tuple[LoadedDomain, System1]:
    """Return a test domain by folder name, or a shipped domain."""
    folder = next((folder / name for folder in _FOLDERS if (folder / name).is_dir()), name)
    loaded = load_domain(folder)
    return loaded, System1.for_domain(loaded.domain)


def simulate(name: str, **options: Any) -> Simulator:
    """Return a simulator of a trained domain. `options`: of `Simulator.of`."""
    loaded, system1 = trained(name)
    return Simulator.of(loaded, system1=system1, **options)


def converse(name: str, **options: Any) -> Conversation:
    return simulate(name, **options).converse()


def state_of(talk: Conversation) -> JsonObject:
    """Return the stored state of a conversation."""
    return orjson.loads(talk.simulator.store.sessions[talk.session_id].state or b"{}")


async def converse_after(name: str, *said: str, **options: Any) -> Conversation:
    """Start a conversation with a trained domain, and send these messages."""
    talk = converse(name, **options)
    for text in said:
        await talk.say(text)
    return talk
