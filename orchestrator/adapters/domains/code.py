"""Import the Python files of a domain folder, and report exceptions during the import as problems.

A built-in domain is imported under its package name, and any other domain under a name derived from its path.
"""

import hashlib
import importlib
import sys
import traceback
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
    module = _import(folder, "services", problems)
    return {} if module is None else {name: value for name, value in vars(module).items() if name[0] != "_"}


def import_internal_flows(folder: Path, problems: Problems) -> dict[str, Any]:
    """Return the classes and functions defined in internal_flows.py, by name.

    Return an empty dict if the file is missing or can't be imported.
    """
    module = _import(folder, "internal_flows", problems)
    if module is None:
        return {}
    return {
        name: value
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
    }


def import_policies(folder: Path, problems: Problems) -> tuple[PolicyCode, ...]:
    files = sorted((folder / "policies").glob("*.py"))
    for path in files:
        if path.name not in POLICY_FILES and not path.name.startswith("_"):
            place = SourceFile(f"policies/{path.name}")
            problems.add(place, (), f"is not one of the seven policy files: {', '.join(POLICY_FILES)}")
    found: list[PolicyCode] = []
    for path in files:
        module = _import(folder, f"policies.{path.stem}", problems) if path.name in POLICY_FILES else None
        found += [
            PolicyCode(path.name, value)
            for name, value in vars(module or ModuleType("empty")).items()
            if isinstance(value, type) and module and value.__module__ == module.__name__ and name[0] != "_"
        ]
    return tuple(found)


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


def _import(folder: Path, name: str, problems: Problems) -> ModuleType | None:
    file = f"{name.replace('.', '/')}.py"
    path = folder / file
    if not path.exists():
        return None
    package = _package(folder)
    if package not in sys.modules and not package.startswith(f"{SHIPPED}."):
        holder = ModuleType(package)
        holder.__path__ = [str(folder)]
        sys.modules[package] = holder
    try:
        return importlib.import_module(f"{package}.{name}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a domain's code can raise anything
        line = _line_in(error, path)
        place = SourceFile(file, lines={("import",): line} if line else {})
        problems.add(place, ("import",), explain_missing(error) or f"{type(error).__name__}: {error}")
        return None


def _line_in(error: BaseException, path: Path) -> int | None:
    """Return the line of `path` that caused the error, or None if the traceback doesn't contain `path`."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
