"""Does what the Dockerfile says, instruction by instruction, in trees of files: no engine, no layers.

What an engine would pull is handed in; everything else is as the file says, in its order.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tests.integration.deploy.bases import VARIABLES, Pip
from tests.integration.deploy.dockerfile import ROOT, Instruction, Stage, context_files, read_dockerfile
from tests.integration.deploy.trees import Mount, Tree


@dataclass
class Image:
    """What a build ends with: files, and how a container of it starts."""

    tree: Tree
    environment: dict[str, str] = field(default_factory=lambda: dict(VARIABLES))
    folder: str = "/"
    account: int | None = None
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def enter(
        self, command: list[str], *, environment: Mapping[str, str], mounts: tuple[Mount, ...] = ()
    ) -> list[str]:
        """What to run for `command` (with the entry point, if that is wanted) in a container."""
        return self.tree.enter(
            command,
            environment={**self.environment, **environment},
            folder=self.folder,
            account=self.account,
            mounts=mounts,
        )


class Building:
    """`base` makes the tree of a stage; `before_run` may prepare it for a step, and is told the step's text."""

    def __init__(
        self, folder: Path, base: Callable[[Path], Tree], before_run: Callable[[Image, str], None]
    ) -> None:
        self._folder = folder
        self._base = base
        self._before_run = before_run
        self._pip = Pip()
        self._stages: dict[str, Image] = {}

    @classmethod
    @contextmanager
    def within(cls, folder: Path, base: Callable[[Path], Tree]) -> Iterator[Building]:
        """Of complete systems, which are removed afterwards, for they are large."""
        place = folder / "stages"
        place.mkdir()
        try:
            yield cls(place, base, lambda *_: None)
        finally:
            shutil.rmtree(place)

    def build(self, path: Path = ROOT / "Dockerfile") -> Image:
        """Every stage of the file; the last one's image."""
        for stage in read_dockerfile(path):
            self._stages[stage.name] = self._build_stage(stage)
        return self._stages[stage.name]

    def _build_stage(self, stage: Stage) -> Image:
        image = Image(self._base(self._folder / stage.name))
        for instruction in stage.instructions:
            self._follow(image, instruction)
            image.done.append(instruction.name)
        return image

    def _follow(self, image: Image, instruction: Instruction) -> None:
        match instruction.name:
            case "ENV":
                image.environment |= dict(word.split("=", 1) for word in instruction.words())
            case "WORKDIR":
                image.folder = instruction.value
                self._inside(image, instruction.value).mkdir(parents=True, exist_ok=True)
            case "RUN":
                self._run(image, instruction.value)
            case "COPY":
                self._copy(image, instruction)
            case "USER":
                user, _, group = instruction.value.partition(":")
                assert user == group
                image.account = int(user)
            case "ENTRYPOINT":
                image.entry = instruction.words()
            case "CMD":
                image.command = instruction.words()
            case "EXPOSE":
                assert all(port.isdigit() for port in instruction.words())
            case name:
                raise AssertionError(f"{name} is not understood")

    def _run(self, image: Image, text: str) -> None:
        self._before_run(image, text)
        command = image.tree.enter(
            ["/bin/sh", "-c", text],
            environment={**self._pip.variables, **image.environment},
            folder=image.folder,
            mounts=self._pip.mounts(),
        )
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, f"RUN {text}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}"

    def _copy(self, image: Image, instruction: Instruction) -> None:
        *sources, target = instruction.words()
        place = self._inside(image, str(PurePosixPath(image.folder, target)))
        if found := re.fullmatch(r"--from=(\w+)", sources[0]):
            origin = self._stages[found[1]].tree.root
            for source in sources[1:]:
                _copy_one(origin / source.lstrip("/"), place, into=target.endswith("/"))
            return
        with TemporaryDirectory(dir=self._folder) as context:
            _lay_out(Path(context))
            for source in sources:
                _copy_one(Path(context) / source, place, into=target.endswith("/"))

    def _inside(self, image: Image, path: str) -> Path:
        return image.tree.root / path.lstrip("/")


def _lay_out(folder: Path) -> None:
    """The build's context, as `.dockerignore` leaves it."""
    for path in context_files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)


def _copy_one(source: Path, target: Path, *, into: bool) -> None:
    """As COPY does: of a folder the contents, of a file the file."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        place = target / source.name if into else target
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, place)
