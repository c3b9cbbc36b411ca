"""Runs what a container would run: its command, its variables and its files, nothing else.

In an image's tree as the image's account, or as a process of this machine, where ``/run/secrets`` and ``/tmp``
are folders of the container's own. Hosts are those of the tests' stores.
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
from tests.integration.deploy.building import Image
from tests.integration.deploy.dockerfile import ROOT, read_dockerfile
from tests.integration.deploy.trees import Mount

WELL_WITHIN_S = 240.0


@dataclass
class Container:
    """One container: `command` without the image's entry point. `ports`: of it, for ours."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    secrets: Path
    folder: Path
    image: Image | None = None
    port: int = field(default_factory=free_port)
    metrics_port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return self._run(self._program(command or tuple(self.command)))

    def check(self, check: Sequence[str]) -> int:
        """Run a health check in it; the exit code."""
        return self.run_inside(*check).returncode

    def run_inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the image beside the container's own, as `exec` does."""
        return self._run(self._words(list(command)))

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd="/",
            env=self._variables(),
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )

    def _program(self, command: Sequence[str]) -> list[str]:
        entry = read_dockerfile()[-1].last("ENTRYPOINT").words()
        assert entry == ["parley"]
        return self._words([*entry, *command])

    def _words(self, words: list[str]) -> list[str]:
        if self.image is not None:
            return self.image.enter(words, environment=self._given(), mounts=self._mounts())
        programs = {"parley": [sys.executable, "-m", "parley"], "python": [sys.executable]}
        return [*programs.get(words[0], words[:1]), *(self._place(word) for word in words[1:])]

    def _mounts(self) -> tuple[Mount, ...]:
        return (Mount(self.secrets, "/run/secrets"), Mount(self.own, "/tmp", writable=True))

    def _given(self) -> dict[str, str]:
        """What its file gives it; ports are free ones."""
        ports = {"PARLEY_PORT": str(self.port)}
        if "PARLEY_METRICS_PORT" in self.environment:
            ports["PARLEY_METRICS_PORT"] = str(self.metrics_port)
        return {**self.environment, **ports}

    def _variables(self) -> dict[str, str]:
        """Its whole environment, with paths that exist here."""
        if self.image is not None:
            return {"PATH": os.environ["PATH"]}  # what enters the image finds its own inside
        image = {name: value for name, value in read_dockerfile()[-1].environment().items() if name != "PATH"}
        placed = {name: self._place(value) for name, value in {**image, **self._given()}.items()}
        return {**placed, "PATH": os.environ["PATH"], "TMPDIR": str(self.own), "PYTHONPATH": str(ROOT)}

    @property
    def own(self) -> Path:
        """Its /tmp."""
        folder = self.folder / self.name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)
        return folder

    def _place(self, value: str) -> str:
        places = {"run/secrets": self.secrets, "tmp": self.own}
        return re.sub(r"(^|=)/(run/secrets|tmp)/", lambda found: f"{found[1]}{places[found[2]]}/", value)

    def start(self) -> None:
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                self._program(self.command), cwd="/", env=self._variables(), stdout=output, stderr=output
            )

    def lives(self) -> bool:
        """True; fails with the end of its log when it ended by itself."""
        assert self.process is not None
        assert self.process.poll() is None, f"{self.name} ended: {self.log.read_text()[-3000:]}"
        return True

    def await_well(self, check: Sequence[str]) -> None:
        wait_until(
            lambda: self.lives() and self.check(check) == 0,
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
