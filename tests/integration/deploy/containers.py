"""Runs what a container would run, as a process: its command, its variables and its files, nothing else.

Hosts are those of the tests' stores; ``/run/secrets`` and ``/tmp`` are folders of the container's own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from parley.embedded.ports import free_port
from tests.integration.chaos.fleet import wait_until
from tests.integration.deploy.dockerfile import ROOT, read_dockerfile

WELL_WITHIN_S = 240.0


@dataclass
class Container:
    """One container: `command` without the image's entry point."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    secrets: Path
    folder: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def variables(self) -> dict[str, str]:
        """Its whole environment, with paths that exist here."""
        image = {name: value for name, value in read_dockerfile()[-1].environment().items() if name != "PATH"}
        given = {**image, **self.environment, "PARLEY_PORT": str(self.port)}
        placed = {name: self._place(value) for name, value in given.items()}
        return {**placed, "PATH": os.environ["PATH"], "TMPDIR": str(self.own), "PYTHONPATH": str(ROOT)}

    @property
    def own(self) -> Path:
        """Its /tmp."""
        folder = self.folder / self.name
        folder.mkdir(exist_ok=True)
        return folder

    def _place(self, value: str) -> str:
        places = {"run/secrets": self.secrets, "tmp": self.own}
        return re.sub(r"(^|=)/(run/secrets|tmp)/", lambda found: f"{found[1]}{places[found[2]]}/", value)

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return self._run(self._program(command or tuple(self.command)))

    def check(self, check: Sequence[str]) -> int:
        """Run a health check in it; the exit code."""
        assert check[0] == "python", check
        return self._run([sys.executable, *check[1:]]).returncode

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd="/",
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    def _program(self, command: Sequence[str]) -> list[str]:
        """The image's entry point is the script `parley`, which is this."""
        assert read_dockerfile()[-1].last("ENTRYPOINT").words() == ["parley"]
        return [sys.executable, "-m", "parley", *(self._place(word) for word in command)]

    def start(self) -> None:
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                self._program(self.command), cwd="/", env=self.variables(), stdout=output, stderr=output
            )

    def is_well(self, check: Sequence[str]) -> bool:
        """What its health check says now."""
        assert self.process is not None
        assert self.process.poll() is None, f"{self.name} ended: {self.log.read_text()[-3000:]}"
        return self.check(check) == 0

    def await_well(self, check: Sequence[str]) -> None:
        wait_until(
            lambda: self.is_well(check),
            within_s=WELL_WITHIN_S,
            what=f"{self.name} is well, see {self.log}",
        )

    def stop(self) -> int:
        """Ask it to stop, as a container is asked; its exit code."""
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@contextmanager
def ended(containers: Mapping[str, Container]) -> Iterator[None]:
    """Leave none of them running."""
    try:
        yield
    finally:
        for container in containers.values():
            container.end()
