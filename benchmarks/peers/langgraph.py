# `benchmarks.peers` installs the dependencies in a separate environment.
"""The LangGraph candidate: a graph with the PostgreSQL checkpointer, run by the hand-written Celery task.

The environment variable `LANGGRAPH` selects the variant. ``default``: messages with a reducer, and checkpoints
written asynchronously. ``leanest``: a plain dictionary, and one checkpoint at the end of each turn.
"""

from __future__ import annotations

import os
import time
from typing import Annotated, Any, TypedDict

import orjson
import psycopg
import psycopg_pool
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from psycopg.rows import dict_row

from benchmarks.by_hand import DATABASE_URL, THREADS, WAIT_S, make_app
from benchmarks.mailbox import QUEUE, SUBMIT, TASK, keys
from benchmarks.work import FIRST, KEPT_MESSAGES, advance, made_once

LEANEST = os.environ.get("LANGGRAPH") == "leanest"


class Messages(TypedDict, total=False):
    turn: int
    stack: list[Any]
    messages: Annotated[list[Any], add_messages]
    text: str
    reply: str


class Document(TypedDict, total=False):
    document: dict[str, Any]
    text: str
    reply: str


def _with_messages(state: Messages) -> Messages:
    time.sleep(WAIT_S)
    first = {} if "stack" in state else orjson.loads(FIRST)
    document = {"turn": 0, "messages": [], **first, **{k: state[k] for k in ("turn", "stack") if k in state}}
    before = state.get("messages", [])
    begin = [HumanMessage(one["content"]) for one in first.get("messages", ())]
    reply = advance(document, state["text"])
    gone = [RemoveMessage(one.id) for one in before[: max(0, len(before) + 2 - KEPT_MESSAGES)]]
    said = [*gone, *begin, HumanMessage(state["text"]), AIMessage(reply)]
    return {"turn": document["turn"], "stack": document["stack"], "messages": said, "reply": reply}


def _with_document(state: Document) -> Document:
    time.sleep(WAIT_S)
    document = state.get("document") or orjson.loads(FIRST)
    return {"reply": advance(document, state["text"]), "document": document}


def _connect() -> PostgresSaver:
    options: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    if THREADS:
        pool = psycopg_pool.ConnectionPool(DATABASE_URL, open=True, max_size=16, timeout=60, kwargs=options)
        return PostgresSaver(pool)
    return PostgresSaver(psycopg.connect(DATABASE_URL, **options))


@made_once
def _graph() -> Any:
    graph = StateGraph(Document if LEANEST else Messages)
    graph.add_node("answer", _with_document if LEANEST else _with_messages)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=_connect())


def _take_turn(session: str, text: str) -> str:
    thread = {"configurable": {"thread_id": session}}
    durability = "exit" if LEANEST else "async"
    return _graph().invoke({"text": text}, thread, durability=durability)["reply"]


app = make_app(_take_turn)


class Client:
    async def prepare(self, sessions: list[str]) -> None:
        """Do nothing: the first turn of a thread creates the thread."""

    async def submit(self, redis: Any, session: str, text: str) -> None:
        if await redis.eval(SUBMIT, 2, *keys(session)[:2], text):
            app.send_task(TASK, args=[session], queue=QUEUE)


async def open_client() -> Client:
    _connect().setup()
    return Client()
