"""Run batches of conversations in several processes, and store each complete batch."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lab.goals.conversations import Verdict, hold
from lab.goals.grammar import Half
from lab.goals.readers import Reader

PIECE = 100
"""Number of conversations in a batch."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A batch of conversations in one domain with one kind of NLU. `first`: the first seed."""

    domain: str
    reader: Reader
    half: Half
    first: int
    count: int

    @property
    def file(self) -> str:
        return f"{self.domain}-{self.reader}-{self.half}-{self.first}-{self.count}.json"


def hold_all(
    pieces: Sequence[Piece], folder: Path, processes: int
) -> Iterator[tuple[Piece, tuple[list[Verdict], float]]]:
    """Yield each batch with its verdicts and CPU seconds.

    Batches stored at the current commit come first. The other batches are run and stored.
    """
    commit = _commit()
    missing: list[Piece] = []
    for piece in pieces:
        found = _read(folder / piece.file, commit)
        if found is None:
            missing.append(piece)
        else:
            yield piece, found
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running = {pool.submit(hold_piece, piece): piece for piece in missing}
        for done, future in enumerate(as_completed(running), start=1):
            piece, (verdicts, seconds) = running[future], future.result()
            record = {"commit": commit, "seconds": seconds, "verdicts": [asdict(one) for one in verdicts]}
            (folder / piece.file).write_text(json.dumps(record), encoding="utf-8")
            print(f"{done} of {len(missing)}: {piece.file}", file=sys.stderr)
            yield piece, (verdicts, seconds)


def hold_piece(piece: Piece) -> tuple[list[Verdict], float]:
    """Run a batch and return its verdicts and CPU time in seconds."""
    began = time.process_time()
    seeds = range(piece.first, piece.first + piece.count)
    figures = asyncio.run(hold(piece.domain, piece.reader, seeds, piece.half))
    return figures.verdicts, time.process_time() - began


def _read(path: Path, commit: str) -> tuple[list[Verdict], float] | None:
    if not path.exists():
        return None
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if record["commit"] != commit or commit.endswith("-dirty"):
        return None
    return [Verdict.read(one) for one in record["verdicts"]], record["seconds"]


def _commit() -> str:
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
    )
    return described.stdout.strip()
