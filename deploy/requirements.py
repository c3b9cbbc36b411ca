"""Prints what an extra of the project stands for: `python deploy/requirements.py server` is what the image needs.

The build installs this before it has the sources, so that a change of them does not install everything anew.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_OWN = re.compile(r"parley\[([a-z, ]+)\]")


def list_requirements(project: dict[str, Any], extra: str) -> list[str]:
    """List the requirements of a project with an extra, each once, in the order of the project file."""
    return list(dict.fromkeys([*project["dependencies"], *_resolve(project["optional-dependencies"], extra)]))


def _resolve(extras: dict[str, list[str]], extra: str) -> Iterator[str]:
    for requirement in extras[extra]:
        own = _OWN.fullmatch(requirement)
        if own is None:
            yield requirement
            continue
        for name in own[1].split(","):
            yield from _resolve(extras, name.strip())


if __name__ == "__main__":
    described = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    sys.stdout.writelines(f"{requirement}\n" for requirement in list_requirements(described, sys.argv[1]))
