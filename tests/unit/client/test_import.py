"""The package `parley-client` for backends, which imports nothing of the server."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from functools import cache

from tests.shape.sources import REPOSITORY

# Direct and indirect dependencies of `parley-client`.
INSTALLED = {
    *("parley_client", "httpx", "orjson", "standardwebhooks"),
    *("anyio", "certifi", "h11", "httpcore", "idna", "sniffio", "typing_extensions"),
    *("attr", "attrs", "dateutil", "deprecated", "six", "wrapt"),
}
PROBE = """
import sys
class Closed:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if path is None and top not in {allowed!r} and top not in sys.stdlib_module_names:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Closed())
from parley_client import AsyncClient, Client, verify_webhook
print(AsyncClient.__name__, Client.__name__, verify_webhook.__name__)
"""


@cache
def project() -> dict[str, list[str]]:
    text = (REPOSITORY / "client" / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]


def test_the_client_loads_where_only_its_own_dependencies_are_installed() -> None:
    code = PROBE.format(allowed=INSTALLED)

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "AsyncClient" in done.stdout
    assert "verify_webhook" in done.stdout


def test_the_client_depends_on_three_packages() -> None:
    assert project()["dependencies"] == ["httpx", "orjson", "standardwebhooks>=1.1"]
