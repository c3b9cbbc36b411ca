"""JSON as tables keep it that nobody searches: compressed, with a dictionary of what all of it has in common (RT-20).

PostgreSQL compresses no row below 2 KB, and a turn writes many of them. What is packed is read through the ports, and
through SQLAlchemy by the type `Packed`; a column `bytea` of `schema/*.sql` is of that type.
"""

import threading
from importlib import resources
from typing import Any, Final

import orjson
from sqlalchemy import LargeBinary
from sqlalchemy.types import TypeDecorator
from zstandard import ZstdCompressionDict, ZstdCompressor, ZstdDecompressor

_BEGINNING: Final = b"\x28\xb5\x2f\xfd"
"""Of what zstandard has compressed; plain JSON never begins with it."""
_SHORTEST: Final = 48
"""Fewer bytes are left as they are."""
_LEVEL: Final = 1
"""The third takes a sixth longer and saves a twentieth of the bytes."""
_DICTIONARY: Final = ZstdCompressionDict(
    (resources.files("orchestrator.adapters") / "packing.zdict").read_bytes()
)
"""What is stored was written with just these bytes, so they never change: another dictionary gets another number.

Its number stands in all that was packed with it; `benchmarks/dictionary.py` has made it.
"""
_DICTIONARY.precompute_compress(level=_LEVEL)  # pyright: ignore[reportUnknownMemberType]


class _Coder(threading.local):
    """A thread's own: neither half works for two at once."""

    def __init__(self) -> None:
        self.compress = ZstdCompressor(level=_LEVEL, dict_data=_DICTIONARY).compress
        self.decompress = ZstdDecompressor(dict_data=_DICTIONARY).decompress


_coder = _Coder()


def pack(plain: bytes) -> bytes:
    """Write JSON as it is stored; what is short stays plain."""
    return plain if len(plain) < _SHORTEST else _coder.compress(plain)


def unpack(packed: bytes) -> bytes:
    """Read the JSON that was packed, to the byte. Raises zstandard.ZstdError when it is damaged."""
    return _coder.decompress(packed) if packed.startswith(_BEGINNING) else packed


def pack_json(value: Any) -> bytes:
    """Pack a value that JSON can hold."""
    return pack(orjson.dumps(value))


def unpack_json(packed: bytes) -> Any:
    """Read such a value."""
    return orjson.loads(unpack(packed))


class Packed(TypeDecorator[Any]):
    """A column of packed JSON, read and written as the value; null where there is none."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> bytes | None:
        return None if value is None else pack_json(value)

    def process_result_value(self, value: Any, dialect: Any) -> Any:
        return None if value is None else unpack_json(value)
