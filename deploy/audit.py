"""Check all pinned packages against a stored list of vulnerabilities: `python deploy/audit.py`.

Exit code: 1 if there are vulnerabilities, 2 if some packages can't be checked. To update the list from a copy of
the Python Packaging Advisory Database, run `python deploy/audit.py --renew FOLDER`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

PINNED, LIST = Path("constraints.txt"), Path("deploy/advisories.json")
OLDEST_DAYS = 90


def read_pinned() -> dict[str, Version]:
    """Return the pinned version of each package."""
    lines = PINNED.read_text(encoding="utf-8").splitlines()
    pinned = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    return {canonicalize_name(each.name): Version(str(each.specifier).removeprefix("==")) for each in pinned}


def concerns(advisory: dict[str, Any], version: Version) -> bool:
    """Return whether an advisory affects a version."""
    if str(version) in advisory["versions"]:
        return True
    return any(
        Version(begins) <= version and (ends is None or version < Version(ends))
        for begins, ends in advisory["ranges"]
    )


def audit(today: date) -> int:
    """Print known vulnerabilities and unchecked packages. Return the exit code."""
    stored, pinned = json.loads(LIST.read_text(encoding="utf-8")), read_pinned()
    taken = date.fromisoformat(stored["taken"])
    found = [
        f"{name} {version}: {advisory['id']} {' '.join(advisory['aliases'])}"
        for name, version in pinned.items()
        for advisory in stored["advisories"].get(name, ())
        if concerns(advisory, version)
    ]
    unchecked = [f"{name}: not in the list" for name in sorted(pinned.keys() - set(stored["packages"]))]
    if (age := (today - taken).days) > OLDEST_DAYS:
        unchecked.append(f"what became known in the {age} days since: renew the list, see deploy/audit.py")
    print(f"audit: {len(pinned)} packages, the list of {taken} ({stored['source']}): {len(found)} found.")
    for line in found:
        print(f"audit: {line}")
    for line in unchecked:
        print(f"audit: not checked: {line}", file=sys.stderr)
    return 1 if found else 2 if unchecked else 0


def renew(database: Path) -> None:
    """Store the advisories for the pinned packages from a copy of the database."""
    taken = subprocess.check_output(["git", "-C", database, "log", "-1", "--format=%cs %h"], text=True)
    day, commit = taken.split()
    names = sorted(read_pinned())
    known = {name: list(_read_advisories(database / "vulns" / name)) for name in names}
    kept = {
        "source": f"pypa/advisory-database {commit}, CC-BY-4.0",
        "taken": day,
        "packages": names,
        "advisories": {name: advisories for name, advisories in known.items() if advisories},
    }
    LIST.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def _read_advisories(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.yaml")):
        advisory = yaml.safe_load(path.read_text(encoding="utf-8"))
        if "withdrawn" in advisory:
            continue
        affected = advisory["affected"]
        ranges = [each for one in affected for each in one.get("ranges", ()) if each["type"] == "ECOSYSTEM"]
        yield {
            "id": advisory["id"],
            "aliases": advisory.get("aliases", []),
            # Most advisories also list the versions in their ranges.
            "versions": []
            if ranges
            else [version for one in affected for version in one.get("versions", ())],
            "ranges": [pair for each in ranges for pair in _pairs(each["events"])],
        }


def _pairs(events: list[dict[str, str]]) -> Iterator[tuple[str, str | None]]:
    """Yield the first vulnerable version, and the first fixed version or None."""
    begins = None
    for event in events:
        if "introduced" in event:
            begins = event["introduced"]
        elif begins is not None and "fixed" in event:
            yield begins, event["fixed"]
            begins = None
    if begins is not None:
        yield begins, None


if __name__ == "__main__":
    if sys.argv[1:2] == ["--renew"]:
        renew(Path(sys.argv[2]))
    else:
        sys.exit(audit(datetime.now(UTC).date()))
