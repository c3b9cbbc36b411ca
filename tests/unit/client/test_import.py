"""A backend that only talks to a gateway needs the default install, and nothing of the runtime is loaded for it."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions

PROBE = """
import json, sys
before = set(sys.modules)
import orchestrator.client
print(json.dumps(sorted(set(sys.modules) - before)))
"""
# httpx itself imports click, rich and pygments where they are installed, for its command line, and zstandard to unpack.
DEFAULT_INSTALL = {
    *("anyio", "certifi", "h11", "httpcore", "httpx", "idna", "sniffio", "typing_extensions"),
    *("click", "markdown_it", "mdurl", "pygments", "rich", "zstandard"),
    "orjson",
    "standardwebhooks",
}
OF_THE_CLIENT = ("client", "errors", "turns.event", "turns.webhook", "types")


@cache
def loaded_modules() -> list[str]:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_client_imports_nothing_but_the_default_dependencies() -> None:
    roots = {name.partition(".")[0] for name in loaded_modules()}
    installed = roots & set(packages_distributions()) - set(sys.stdlib_module_names)

    assert "httpx" in installed
    assert installed - {"orchestrator"} <= DEFAULT_INSTALL
    for heavy in ("celery", "fastapi", "numpy", "psycopg", "pydantic", "redis", "scipy", "sqlalchemy"):
        assert heavy not in installed


def test_the_client_imports_nothing_of_the_runtime() -> None:
    ours = [name.partition(".")[2] for name in loaded_modules() if name.startswith("orchestrator.")]
    packages = {"dialogue", "turns"}

    assert [name for name in ours if name not in packages and not name.startswith(OF_THE_CLIENT)] == []
