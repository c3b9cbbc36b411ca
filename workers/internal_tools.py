"""The tools that Internal flows may declare, over this process's ports (IF-2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.bootstrap import Ports


def make_tools(ports: Ports) -> Mapping[str, Any]:
    """Tools by name."""
    return {}
