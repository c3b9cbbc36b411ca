"""The scripted model as seen by programs that use the OpenAI API."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
import openai
import pytest

from parley.testing.scripted_model import Fail, Script, ScriptedModel, ToolUse
from tests.processes.forked import run

HELLO = [{"role": "user", "content": "hello"}]


def client_of(base_url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0)


async def test_it_lists_models_and_embeds():
    with ScriptedModel(Script(models=("small", "large"), embedding_dimensions=16)) as model:
        async with client_of(model.base_url) as client:
            names = [entry.id async for entry in client.models.list()]
            packed = await client.embeddings.create(model="small", input=["to Oslo", "Oslo to"])
            plain = await client.embeddings.create(model="small", input="to Oslo", encoding_format="float")

    assert names == ["small", "large"]
    assert packed.data[0].embedding == packed.data[1].embedding
    assert packed.data[0].embedding == pytest.approx(plain.data[0].embedding)
    assert len(plain.data[0].embedding) == 16


async def test_tool_calls_stream_too():
    script = Script(default=ToolUse(calls=(("flight_search", {"day": "Monday"}), ("hotel_search", {}))))

    with ScriptedModel(script) as model:
        async with client_of(model.base_url) as client:
            stream = await client.chat.completions.create(model="small", messages=HELLO, stream=True)
            chunks = [chunk async for chunk in stream]

    pieces = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
    names = [(piece.index, piece.function.name) for piece in pieces if piece.function.name]
    assert names == [(0, "flight_search"), (1, "hotel_search")]
    assert "".join(piece.function.arguments for piece in pieces if piece.index == 0) == '{"day":"Monday"}'
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_failures_look_like_the_api_s():
    with ScriptedModel(Script(default=Fail(429, retry_after_s=1.5, message="slow down"))) as model:
        async with client_of(model.base_url) as client:
            with pytest.raises(openai.RateLimitError, match="slow down") as caught:
                await client.chat.completions.create(model="small", messages=HELLO)

    assert caught.value.response.headers["retry-after"] == "1.5"


async def test_a_body_that_is_no_json_object_is_refused():
    with ScriptedModel(Script()) as model:
        async with httpx.AsyncClient() as client:
            for body in (b"{", b"[]", b"\xff"):
                for path in ("chat/completions", "embeddings"):
                    response = await client.post(f"{model.base_url}/{path}", content=body)
                    assert response.status_code == 400

    assert model.requests == []


def test_a_port_that_is_taken_is_said_at_the_start():
    with ScriptedModel(Script()) as model, pytest.raises(OSError, match="in use"):
        ScriptedModel(Script(), port=model.port).start()


async def test_it_runs_as_a_process_of_its_own(tmp_path: Path):
    path = tmp_path / "script.yaml"
    path.write_text('default: {text: "from a file"}\n')
    command = [sys.executable, "-m", "parley.testing.scripted_model", str(path)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        try:
            assert process.stdout is not None
            base_url = process.stdout.readline().strip()
            async with client_of(base_url) as client:
                answer = await client.chat.completions.create(model="small", messages=HELLO)
        finally:
            process.terminate()

    assert answer.choices[0].message.content == "from a file"


def test_a_wrong_script_ends_the_process_with_its_mistakes(tmp_path: Path):
    path = tmp_path / "script.yaml"
    path.write_text("rules: 3\n")

    ended = run(("-m", "parley.testing.scripted_model", str(path)), environment=os.environ)

    assert ended.returncode == 2
    assert ended.stderr == "script.yaml: $.rules: 3 is not of type 'array'\n"
