"""JSON as tables keep it that nobody searches: deflated, with a dictionary of what all of it has in common (RT-20).

PostgreSQL compresses no row below 2 KB, and a turn writes many of them. What is packed is read through the ports, and
through SQLAlchemy by the type `Packed`; a column `bytea` of `schema/*.sql` is of that type.
"""

import zlib
from typing import Any

import orjson
from sqlalchemy import LargeBinary
from sqlalchemy.types import TypeDecorator

_DEFLATED = b"\x01"
"""Begins what was deflated with the dictionary; plain JSON never begins with it."""
_SHORTEST = 48
"""Fewer bytes are left as they are."""
_DICTIONARY = (
    b'"code":null,"error":null,"warning":null,"table_id":null,"chart_type":null,"rows":null,"block":{"note":null,'
    b'"type":"table","title":"","items":[{"name":"","columns":[{"name":"","type":"number","label":""},"actions":[]'
    b',"source":[""],"frame_id":"frame_","display_name":"","display_type":"card"}"outputs":{"completed_at":1795'
    b'"notes":{"scratchpad":[{"text":" It is done.","about":"","turn":1,"labels":["private"],"kind":"result"}]}'
    b',"notes":{"candidate":{"tool_id":"","arguments":{},"data":{"fingerprint":"","confirmed":false,"again":false}}'
    b'{"=":{"turn":1,"epoch":1,"predicted_intent":null,"predicted_flow":""},"~":{"digression":{"=":{"depth":1,"last":"'
    b'"effects":{"+":[{"summary":"","status":"finished","compensation":"","result":{},"fingerprint":""}]},"shown":{'
    b'"candidates":{"|":1,"~":[[0,{"=":{"dact":"","score":0.0}}],[1,{"=":{"dact":"","score":0.0}}]]},"stack":{"~":[[0,'
    b'{"=":{"state":"Pending","reason":"interrupted","interrupted_at":1795,"interruption":"the user asked for "},"-":'
    b'["reason","interrupted_at","interruption"]}]],"+":[{"flow_id":"flow_","dact":"","state":"Active","started_at":1795'
    b',"slots":{"":{"value":"","source":"inherited","turn_id":"turn_","confirmed":true,"text":""},"source":"user"}'
    b',"turn_ids":["turn_"],"completed":{"+":["labels":{"+":[{"label":"private","source":"","turn":1,"flow_id":"flow_"}]'
    b'"ambiguity":{"~":{"open":{"+":[{"level":"confirmation","flow_id":"flow_","slot":null,"candidates":[],"question":"'
    b'","asked":1,"turn_id":"turn_","options":[],"metadata":{"about":"candidate","candidate":"","shown":{}}}]},"counts":'
    b'{"=":{"confirmation":1}}}},"messages":{"+":[{"role":"user","text":"","turn":1},{"role":"agent","text":"","turn":1}]}'
    b',"trace":{"+":[{"turn":1,"kind":"task","completed":[""]}]}}}{"ok":true,"data":{},"idempotency_key":"turn_:tool:'
    b'[{"id":"signal_","type":"prediction","source":"nlu","time":"+00:00","payload":{"kind":"task","flows":[{"dact":"","'
    b'score":0.0}],"source":"system1","unexplained":[]}},{"type":"tool_call","source":"pex","flow_id":"flow_","payload":'
    b'{"tool_id":"","status":"ok","duration_ms":1.0}},{"type":"template","source":"res","payload":{"templates":[]}}]'
    b'[{"type":"started","payload":{"seq":1}},{"type":"flow_pushed","payload":{"flow_id":"flow_","dact":""}},{"type":"'
    b'tool_started","payload":{"tool_id":"","flow_id":"flow_"}},{"type":"tool_finished","payload":{"tool_id":"",'
    b'"flow_id":"flow_","status":"ok"}},{"type":"flow_popped","payload":{"flow_id":"flow_","dact":"","state":"Completed"'
    b',"reason":null}},{"type":"block","payload":{"frame_id":"frame_","flow_id":"flow_","display_type":"card"'
    b',"display_name":""}},{"type":"answer","payload":{"reply":""}}]'
)
"""What is stored was written with just these bytes, so they never change: another dictionary needs another mark."""
_WINDOW = 13
"""Of the compressor, in powers of two: more memory costs more time than it saves bytes."""
_BEGUN = zlib.compressobj(3, zlib.DEFLATED, -_WINDOW, 6, zlib.Z_DEFAULT_STRATEGY, _DICTIONARY)


def pack(plain: bytes) -> bytes:
    """Write JSON as it is stored; what is short stays plain."""
    if len(plain) < _SHORTEST:
        return plain
    deflating = _BEGUN.copy()
    return b"".join((_DEFLATED, deflating.compress(plain), deflating.flush()))


def unpack(packed: bytes) -> bytes:
    """Read the JSON that was packed, to the byte. Raises zlib.error when it is damaged."""
    if packed[:1] != _DEFLATED:
        return packed
    return zlib.decompressobj(-_WINDOW, _DICTIONARY).decompress(packed[1:])


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
