"""`make release VERSION=0.2.0`: set the version everywhere, date the changelog, commit and tag. Pushes nothing."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

VERSIONED: Final = (
    "pyproject.toml",
    "client/pyproject.toml",
    "docker-compose.yml",
    "docs/kubernetes.md",
    "k8s/base/kustomization.yaml",
    "k8s/overlays/prod/kustomization.yaml",
    "k8s/examples/clinic/Dockerfile",
)
_PLACES: Final = r'^(version = "|\s*newTag: )|\bparley:'


def main() -> int:
    """Return the exit code: 1 if the version is invalid or the checkout is not ready for a release."""
    root = Path.cwd()
    version = sys.argv[1] if len(sys.argv) > 1 else ""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        return _complain(f"{version!r} is not a version such as 0.2.0: run `make release VERSION=0.2.0`.")
    if _git("status", "--porcelain"):
        return _complain("The checkout has uncommitted changes: commit or stash them first.")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    heading = f"## [{version}] - unreleased"
    if heading not in text:
        return _complain(f"CHANGELOG.md has no section “{heading}”: write it first.")
    today = datetime.now(UTC).date().isoformat()
    changelog.write_text(text.replace(heading, f"## [{version}] - {today}"), encoding="utf-8")
    current = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    for name in VERSIONED:
        _set_version(root / name, current, version)
    _git("commit", "--quiet", "--all", "--message", f"Add release {version}")
    _git("tag", "--annotate", f"v{version}", "--message", f"Parley {version}")
    print(f"Tagged v{version}. Publish it with: git push --follow-tags")
    return 0


def _set_version(path: Path, current: str, version: str) -> None:
    pattern = re.compile(rf"({_PLACES}){re.escape(current)}\b", re.MULTILINE)
    text = path.read_text(encoding="utf-8")
    path.write_text(pattern.sub(lambda found: f"{found[1]}{version}", text), encoding="utf-8")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def _complain(message: str) -> int:
    print(f"release: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
