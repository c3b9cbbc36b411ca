"""What stands in for the base image: a tree with a system and a Python, made from what this machine has.

`borrow_system` takes the machine's own programs, unchanged, and is there at once; `install_system` makes a
minimal Debian with debootstrap from the mirror that the machine's apt uses.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.deploy.trees import Mount, Tree

VARIABLES = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
"""What the base image sets."""
_LINKS = ("bin", "sbin", "lib", "lib64")
_CONFIGURATION = (
    "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "login.defs", "ssl", "alternatives", "hosts", "resolv.conf",
)  # fmt: skip
_PROGRAMS = "python3,python3-venv,python3-pip,ca-certificates"


def borrow_system(root: Path) -> Tree:
    """A fresh tree over the machine's /usr, with the Python that runs the tests in /usr/local."""
    if not Path("/bin").is_symlink():
        pytest.skip("this machine keeps programs outside of /usr")
    for name in ("etc", "tmp", "var/tmp", "run", "root", "opt"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for name in _LINKS:
        if Path(f"/{name}").exists():
            (root / name).symlink_to(f"usr/{name}")
    (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\n")
    for name in _CONFIGURATION:
        _copy(Path("/etc") / name, root / "etc" / name)
    tree = Tree(root, (Mount(Path("/usr"), "/usr"), *_python()))
    # The loader's cache has to know the libraries of that Python.
    run_in(tree, ["ldconfig"])
    return tree


def install_system(root: Path) -> Tree:
    """A minimal Debian with Python and pip, and nothing else."""
    if shutil.which("debootstrap") is None:
        pytest.skip("Debian's package debootstrap is not installed")
    mirror, suite = _mirror()
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={_PROGRAMS}", suite, str(root), mirror],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"debootstrap could not make a system: {made.stdout[-500:]}")
    for name in ("hosts", "resolv.conf"):
        _copy(Path("/etc") / name, root / "etc" / name)
    return Tree(root)


def run_in(tree: Tree, command: list[str]) -> None:
    subprocess.run(tree.enter(command, environment=VARIABLES), check=True, capture_output=True)


def _python() -> tuple[Mount, ...]:
    base = Path(sys.base_prefix)
    if base.is_relative_to("/usr"):
        return ()
    return (Mount(base, "/usr/local"),)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    elif source.exists():
        shutil.copy(source, target)


def _mirror() -> tuple[str, str]:
    """The address and the release of the first source that apt has."""
    for path in sorted(Path("/etc/apt").glob("sources.list.d/*.sources")):
        text = path.read_text()
        address = re.search(r"^URIs:\s*(\S+)", text, re.MULTILINE)
        suite = re.search(r"^Suites:\s*(\S+)", text, re.MULTILINE)
        if address and suite and "debian" in address[1]:
            return address[1], suite[1]
    listed = Path("/etc/apt/sources.list")
    lines = listed.read_text() if listed.exists() else ""
    if found := re.search(r"^deb\s+(?:\[[^]]*\]\s+)?(\S*debian\S*)\s+(\S+)", lines, re.MULTILINE):
        return found[1], found[2]
    pytest.skip("apt has no source of Debian to take a mirror from")


class Pip:
    """How this machine's pip finds packages: its configuration as variables, and the folders that these name."""

    def __init__(self) -> None:
        listed = _configuration()
        self.variables = {
            name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")
        }
        for scope, name, value in re.findall(
            r"^(global|install|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE
        ):
            del scope  # the later line counts, as it does for pip
            self.variables[f"PIP_{name.replace('-', '_').upper()}"] = value.replace("\\n", " ")

    def mounts(self) -> tuple[Mount, ...]:
        words = {word.removeprefix("file://") for value in self.variables.values() for word in value.split()}
        places = {Path(word) for word in words if word.startswith("/") and Path(word).exists()}
        # An index refers to files that lie beside it.
        folders = {place.parent if place.name == "simple" else place for place in places}
        return tuple(Mount(folder, str(folder)) for folder in sorted(folders))


def _configuration() -> str:
    """What pip says of its configuration; an environment made by `uv` has none, so the interpreter's own is asked."""
    for python in dict.fromkeys((sys.executable, str(Path(sys.base_prefix) / "bin" / "python3"))):
        asked = subprocess.run(
            [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
        )
        if asked.returncode == 0:
            return asked.stdout
    return ""
