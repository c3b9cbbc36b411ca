"""CO-2: OpenAI is called with the Responses API without storage; reasoning is sent back unchanged."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from orchestrator.adapters.models.chat import LibraryChat
from orchestrator.adapters.models.providers import Endpoint
from orchestrator.models.config import ModelChoice, ModelConfig
from orchestrator.models.engineer import PromptEngineer, tool_result
from orchestrator.ports.language_model import Effort
from tests.integration.models.bench import GOOD, PROMPTS, SCHEMA, calling, thinking, wording
from tests.integration.models.quirks import SEARCH

REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
CALLED = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "flight_search",
    "arguments": '{"day": "monday"}', "status": "completed",
}  # fmt: skip


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


@contextmanager
def responding(*outputs: list[dict[str, Any]]) -> Iterator[tuple[str, list[tuple[str, dict[str, Any]]]]]:
    """Return an endpoint that gives these outputs in turn, and the received requests."""
    left, seen = list(outputs), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append((self.path, body))
            answer = {
                "id": "resp_1", "object": "response", "created_at": 1, "model": body["model"], "status": "completed",
                "output": left.pop(0), "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None,
                "incomplete_details": None, "instructions": None, "metadata": {}, "temperature": 1, "top_p": 1,
                "usage": {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13,
                          "input_tokens_details": {"cached_tokens": 5},
                          "output_tokens_details": {"reasoning_tokens": 2}},
            }  # fmt: skip
            data = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
        server.shutdown()


async def test_openai_is_asked_statelessly_and_gets_its_reasoning_back() -> None:
    with responding([REASONING, CALLED], [said("Done.")], [said(json.dumps(GOOD))]) as (url, seen):
        chat = LibraryChat(Endpoint(provider="openai", base_url=url, api_key="sk-1"))
        config = ModelConfig(default=ModelChoice("gpt-5.4"), effort=Effort.LOW)
        engineer = PromptEngineer({"default": chat}, PROMPTS, config)
        step = await engineer.tools("res_naturalize", wording(), (SEARCH,), calling())
        transcript = (step.reply, tool_result(step.calls[0].id, {"found": 1}))
        done = await engineer.tools("res_naturalize", wording(), (SEARCH,), calling(), transcript=transcript)
        found = await engineer.structured("nlu_think", thinking(), SCHEMA, calling())
        await chat.aclose()

    assert (step.calls[0].arguments, done.text, found) == ({"day": "monday"}, "Done.", GOOD)
    assert {path for path, _ in seen} == {"/v1/responses"}
    for _, body in seen:
        assert body["store"] is False
        assert "metadata" not in body
        assert body["reasoning"]["effort"] == "low"
        assert "reasoning.encrypted_content" in body["include"]
    kinds = [item.get("type") for item in seen[1][1]["input"]]
    assert "reasoning" in kinds
    sealed = next(item for item in seen[1][1]["input"] if item.get("type") == "reasoning")
    assert sealed["encrypted_content"] == "sealed"
    assert seen[2][1]["text"]["format"]["name"] == "nlu_think"
