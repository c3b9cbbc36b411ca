"""Documents and preferences over HTTP (CO-4)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from gateway.dependencies import MemoryServices
from orchestrator.memory.business_context import BusinessContext
from orchestrator.memory.hashing_embedder import HashingEmbedder
from orchestrator.ports.runs.records import NewRun, Started
from orchestrator.types import JsonObject
from parley.testing.memory import MemoryDocuments, MemoryPreferences
from parley.testing.store import MemoryStore
from tests.unit.gateway.memory_dependencies import make_dependencies, serve

BAGGAGE = {"title": "Baggage", "text": "A cabin bag of 8 kg is free.", "domain": "travel"}


class Embedding:
    """A starter of runs that embeds documents immediately, in place of the flow."""

    def __init__(self, context: BusinessContext) -> None:
        self._context = context
        self.started: list[NewRun] = []

    async def start(self, runs: tuple[NewRun, ...], *, key: str | None = None) -> Started:
        (run,) = runs
        self.started.append(run)
        await self._context.embed(run.tenant_id, run.inputs[0]["document_id"])
        return Started({run.flow: "run_1"})


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    store = MemoryStore()
    context = BusinessContext(MemoryDocuments(), HashingEmbedder())

    async def notify_nobody(*_: object) -> None:
        return

    dependencies = make_dependencies(
        store,
        runs=Embedding(context),
        notify_workers=notify_nobody,
        memory=MemoryServices(context, MemoryPreferences()),
    )

    async with serve(dependencies) as (_, client):
        yield client


async def test_a_document_is_uploaded_found_shown_and_deleted(http: httpx.AsyncClient) -> None:
    uploaded = await http.post("/v1/documents", json=BAGGAGE)
    again = await http.post("/v1/documents", json=BAGGAGE)
    document_id = uploaded.json()["document_id"]

    assert (uploaded.status_code, again.status_code) == (201, 200)
    assert (uploaded.json()["created"], uploaded.json()["run_id"]) == (True, "run_1")
    assert (again.json()["document_id"], again.json()["created"]) == (document_id, False)

    [listed] = (await http.get("/v1/documents")).json()
    assert (listed["document_id"], listed["status"], listed["domain"]) == (document_id, "embedded", "travel")
    [found] = (await http.get("/v1/documents/search", params={"q": "free cabin bags"})).json()
    assert (found["document_id"], found["text"]) == (document_id, BAGGAGE["text"])
    assert (await http.get(f"/v1/documents/{document_id}")).json()["text"] == BAGGAGE["text"]

    assert (await http.delete(f"/v1/documents/{document_id}")).status_code == 204
    assert (await http.get(f"/v1/documents/{document_id}")).status_code == 404
    assert (await http.get("/v1/documents/search", params={"q": "free cabin bags"})).json() == []


async def test_markdown_is_taken_as_it_is(http: httpx.AsyncClient) -> None:
    answer = await http.post(
        "/v1/documents",
        params={"title": "Pets", "user_id": "ada"},
        content="# Pets\n\nSmall dogs are welcome.",
        headers={"content-type": "text/markdown; charset=utf-8"},
    )
    document_id = answer.json()["document_id"]

    assert answer.status_code == 201
    assert (await http.get(f"/v1/documents/{document_id}")).status_code == 404
    shown = (await http.get(f"/v1/documents/{document_id}", params={"user_id": "ada"})).json()
    assert (shown["title"], shown["user_id"], shown["labels"]) == ("Pets", "ada", ["private"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"text": ""}, "text"),
        ({"text": "ok", "colour": "red"}, "colour"),
        ({"text": "ok", "labels": ["secret"]}, "labels.0"),
        ({"text": "a\x00b"}, "text"),
    ],
)
async def test_what_does_not_fit_is_named(http: httpx.AsyncClient, body: JsonObject, field: str) -> None:
    answer = await http.post("/v1/documents", json=body)

    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_preferences_are_shown_replaced_and_forgotten(http: httpx.AsyncClient) -> None:
    path = "/v1/users/ada/preferences"
    aisle = {"key": "*.seat_position", "value": "aisle", "text": "prefers aisle seats"}
    put = await http.put(path, json={"preferences": [aisle]})
    shown = (await http.get(path)).json()
    back = await http.put(path, json={"preferences": shown["preferences"]})

    assert put.status_code == back.status_code == 200
    [preference] = shown["preferences"]
    assert {name: preference[name] for name in (*aisle, "kind", "source")} == {
        **aisle,
        "kind": "rule",
        "source": "explicit",
    }
    assert preference["origin"] == {"given": "over HTTP"}
    assert (await http.get("/v1/users/bob/preferences")).json()["preferences"] == []
    assert (await http.put(path, json={"preferences": []})).json()["preferences"] == []


async def test_a_preference_without_content_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.put("/v1/users/ada/preferences", json={"preferences": [{"key": "*.cabin"}]})

    assert answer.status_code == 422


async def test_the_routes_are_documented_with_examples(http: httpx.AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]

    upload = paths["/v1/documents"]["post"]["requestBody"]["content"]
    assert set(upload) == {"application/json", "text/markdown", "text/plain"}
    assert upload["application/json"]["schema"]["examples"][0]["title"] == "Baggage"
    assert {"get", "put"} <= set(paths["/v1/users/{user_id}/preferences"])
