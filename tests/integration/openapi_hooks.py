"""Schemathesis hooks that replace half of the generated identifiers by existing ones."""

from __future__ import annotations

import json
import os
from typing import Any

import schemathesis

KNOWN_NAME = "PARLEY_OPENAPI_KNOWN"
"""Environment variable with existing identifiers by parameter, as JSON."""
_KNOWN: dict[str, str] = json.loads(os.environ.get(KNOWN_NAME, "{}"))


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: dict[str, Any]) -> dict[str, Any]:
    """Use an existing identifier if the generated identifier has an odd number of letters."""
    return {
        name: _KNOWN[name] if name in _KNOWN and len(str(value)) % 2 else value
        for name, value in (path_parameters or {}).items()
    }
