"""Import the Python files of a domain folder, and report exceptions during the import as problems.

A built-in domain is imported under its package name, and any other domain under a name derived from its path.
"""

import hashlib
import importlib
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from orchestrator.domain.compile import POLICY_FILES, PolicyCode
from orchestrator.domain.compile.problems import Problems, SourceFile
from orchestrator.extras import explain_missing

SHIPPED = "domains"


def shipped_folder() -> Path | None:
    """Return the built-in domains' folder, or None if they are not installed."""
    try:
        package = importlib.import_module(SHIPPED)
    except ModuleNotFoundError:
        return None
    return Path(package.__file__).parent if package.__file__ else Path(next(iter(package.__path__)))


def import_services(folder: Path, problems: Problems) -> dict[str, Any]:
    """Return the public members of services.py by name.

    Return an empty dict if the file is missing or can't be imported.
    """
    members = _import(folder, "services", problems)
    return {name: value for name, value in members.items() if name[0] != "_"}


def import_internal_flows(folder: Path, problems: Problems) -> dict[str, Any]:
    """Return the classes and functions defined in internal_flows.py, by name.

    Return an empty dict if the file is missing or can't be imported.
    """
    return _defined_in(_import(folder, "internal_flows", problems))


def import_policies(folder: Path, problems: Problems) -> tuple[PolicyCode, ...]:
    found: list[PolicyCode] = []
    for path in sorted((folder / "policies").glob("*.py")):
        if path.name in POLICY_FILES:
            defined = _defined_in(_import(folder, f"policies.{path.stem}", problems))
            found += [
                PolicyCode(path.name, value)
                for name, value in defined.items()
                if isinstance(value, type) and name[0] != "_"
            ]
        elif not path.name.startswith("_"):
            place = SourceFile(f"policies/{path.name}")
            problems.add(place, (), f"is not one of the seven policy files: {', '.join(POLICY_FILES)}")
    return tuple(found)


def _defined_in(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the classes and functions that a module defines rather than imports. `members`: its members."""
    return {
        name: value
        for name, value in members.items()
        if getattr(value, "__module__", None) == members["__name__"]
    }


def forget(folder: Path) -> None:
    """Unload a folder's modules unless the domain is built in, so that the next load rereads its files."""
    package = _package(folder)
    if not package.startswith(f"{SHIPPED}."):
        for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
            del sys.modules[name]
    importlib.invalidate_caches()


def _package(folder: Path) -> str:
    shipped = shipped_folder()
    if shipped is not None and folder.parent == shipped.resolve() and (folder / "__init__.py").exists():
        return f"{SHIPPED}.{folder.name}"
    digest = hashlib.blake2b(str(folder).encode(), digest_size=6).hexdigest()
    return f"parley_domain_{digest}"


def _import(folder: Path, name: str, problems: Problems) -> Mapping[str, Any]:
    """Return a module's members by name, or an empty dict if the file is missing or can't be imported."""
    file = f"{name.replace('.', '/')}.py"
    path = folder / file
    if not path.exists():
        return {}
    package = _package(folder)
    if package not in sys.modules and not package.startswith(f"{SHIPPED}."):
        holder = ModuleType(package)
        holder.__path__ = [str(folder)]
        sys.modules[package] = holder
    try:
        return vars(importlib.import_module(f"{package}.{name}"))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a domain's code can raise anything
        line = _line_in(error, path)
        place = SourceFile(file, lines={("import",): line} if line else {})
        problems.add(place, ("import",), explain_missing(error) or f"{type(error).__name__}: {error}")
        return {}


def _line_in(error: BaseException, path: Path) -> int | None:
    """Return the line of `path` that caused the error, or None if the traceback doesn't contain `path`."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
