"""Domains loaded and trained once per test process, because no conversation changes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from orchestrator.adapters.domains.folder import LoadedDomain, load_domain
from orchestrator.nlu.system1 import System1

_TESTS = Path(__file__).parent
_FOLDERS = (_TESTS / "domains", _TESTS / "transcripts" / "domains")


@cache
def trained(name: str) -> tuple[LoadedDomain, System1]:
    """Return a test domain by folder name, or a shipped domain."""
    folder = next((folder / name for folder in _FOLDERS if (folder / name).is_dir()), name)
    loaded = load_domain(folder)
    return loaded, System1.for_domain(loaded.domain)
