"""How text that nobody vouches for travels to a model: as one line of JSON, never as prose.

Whatever a user, a tool or a document wrote stays inside a JSON string: it cannot start a line,
close a delimiter or form a special token. It is not this file's work to judge what it says.
"""

import json
import re

import orjson

from orchestrator.types import Json

_INVISIBLE = (
    "\u007f-\u009f"  # control characters that JSON does not escape by itself
    "\u00ad\u061c\u180e\ufeff\ufff9-\ufffb"  # soft hyphen, marks, byte order mark, annotations
    "\u200b-\u200f\u2028-\u202f\u2060-\u206f"  # zero width, separators, direction of writing
    "\U000e0000-\U000e007f"  # tag characters, which hide whole sentences
)
_TO_ESCAPE = re.compile(rf"[<>`{_INVISIBLE}]|\[(?=/?INST\])", re.IGNORECASE)


def encode_data(value: Json) -> str:
    """Write a value as one line of JSON in which no role marker or delimiter survives.

    Reading the result as JSON gives the value back.
    """
    try:
        encoded = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # Half a surrogate pair, or a number over 64 bits: rare, and only this library takes them.
        encoded = json.dumps(value, default=str)
    return _TO_ESCAPE.sub(_escape, encoded)


def _escape(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
