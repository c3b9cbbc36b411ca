"""Trains the dictionary of `orchestrator/adapters/packing.py`: ``python -m benchmarks.dictionary --into FILE``.

The shipped conversations are held on the real path; what their sessions left in packed columns is the sample, as much
of one domain as of the other. What is stored can be read with its own dictionary alone: a new one gets the next number.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final

import psycopg
import zstandard
from psycopg import sql

from benchmarks.environment import open_lanes, open_stores, own_stores, parse
from benchmarks.replay import DOMAINS, conversations, hold
from orchestrator.adapters.packing import Packed, unpack
from orchestrator.adapters.postgres.tables import metadata
from parley.embedded import Stores

SIZE: Final = 16_384
LONGEST: Final = 3_000
"""Longer documents repeat themselves enough, and would fill the dictionary with their rows."""


def main() -> None:
    arguments = parse(
        "benchmarks.dictionary",
        __doc__,
        into=("build/packing.zdict", "the file that is written"),
        number=(1, "of the dictionary, which stands in all that is packed with it"),
    )
    with open_stores() as (running, _):
        samples = [
            asyncio.run(hold_all(own_stores(running, place), name)) for place, name in enumerate(DOMAINS)
        ]
    least = min(sum(map(len, sample)) for sample in samples)
    trained = zstandard.train_dictionary(
        SIZE, [one for sample in samples for one in some_of(sample, least)], dict_id=arguments.number, level=3
    )
    into = Path(arguments.into)
    into.parent.mkdir(parents=True, exist_ok=True)
    into.write_bytes(trained.as_bytes())


async def hold_all(running: Stores, name: str) -> list[bytes]:
    """What the domain's conversations leave in packed columns, as plain JSON."""
    async with open_lanes(running) as (ports, lanes):
        for number, (domain, conversation) in enumerate(conversations(name)):
            await hold(ports, lanes, domain, conversation, f"{domain}-{number}")
    return [one for one in packed_in(running) if len(one) <= LONGEST]


def packed_in(running: Stores) -> Iterator[bytes]:
    with psycopg.connect(running.database_url) as connection:
        for table in metadata.tables.values():
            for column in (one.name for one in table.columns if isinstance(one.type, Packed)):
                names = sql.Identifier(column), sql.Identifier(*table.fullname.split("."))
                rows = connection.execute(sql.SQL("SELECT {} FROM {}").format(*names)).fetchall()
                yield from (unpack(body) for (body,) in rows if body is not None)


def some_of(sample: list[bytes], size: int) -> Iterator[bytes]:
    """Documents of so many bytes together, drawn by lot."""
    for one in Random(0).sample(sample, len(sample)):
        size -= len(one)
        if size < 0:
            return
        yield one


if __name__ == "__main__":
    main()
