"""`generateContent` of Gemini 3: its rules and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.providers.dialect import Dialect, Reply, Turn
from tests.providers.rules import Body, fields, first, names_in, refuse_name, rule, schemas_in

GENERATE = "https://ai.google.dev/api/generate-content"
FUNCTIONS = "https://ai.google.dev/gemini-api/docs/function-calling"
SCHEMA = "https://ai.google.dev/api/caching#Schema"
SIGNATURES = "https://ai.google.dev/gemini-api/docs/thought-signatures"
STRUCTURED = "https://ai.google.dev/gemini-api/docs/structured-output"
KNOWN = names_in("""
    contents tools toolConfig safetySettings systemInstruction generationConfig cachedContent labels
""")
SETTINGS = names_in("""
    stopSequences responseMimeType responseSchema responseJsonSchema responseModalities candidateCount maxOutputTokens
    temperature topP topK seed presencePenalty frequencyPenalty responseLogprobs logprobs enableEnhancedCivicAnswers
    speechConfig thinkingConfig imageConfig mediaResolution
""")
OPEN_API = frozenset(
    names_in("""
    type format title description nullable enum maxItems minItems properties required minProperties maxProperties
    minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum
    """)
)
JSON_SCHEMA = frozenset(
    names_in("""
    $id $defs $ref $anchor type format title description const default examples enum items prefixItems minItems maxItems
    minimum maximum anyOf oneOf properties additionalProperties required propertyOrdering minLength maxLength pattern
    """)
)


def _declarations(body: Body) -> list[Any]:
    return [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations") or ()]


def _refuse_schema(schema: Any, known: frozenset[str]) -> str | None:
    for path, inner in schemas_in(schema):
        unknown = sorted(inner.keys() - known)
        if unknown:
            return f"Unknown name \"{unknown[0]}\" at '{path}': Cannot find field."
        if known is OPEN_API and not isinstance(inner.get("type", ""), str):
            return f"Proto field is not repeating, cannot start list at '{path}.type'."
        if "enum" in inner and "type" not in inner:
            return f"{path}: only allowed for STRING type"
    return None


@rule(GENERATE)
def has_known_settings(body: Body) -> str | None:
    unknown = sorted((body.get("generationConfig") or {}).keys() - {*SETTINGS})
    return f"Unknown name \"{unknown[0]}\" at 'generation_config': Cannot find field." if unknown else None


@rule(SCHEMA)
def schemas_of_functions_are_of_the_subset(body: Body) -> str | None:
    reasons = (
        _refuse_schema(one.get("parameters"), OPEN_API)
        or _refuse_schema(one.get("parametersJsonSchema"), JSON_SCHEMA)
        for one in _declarations(body)
    )
    return first(reasons)


@rule(STRUCTURED)
def schemas_of_answers_are_of_the_subset(body: Body) -> str | None:
    settings = body.get("generationConfig") or {}
    if not {"responseSchema", "responseJsonSchema"} & settings.keys():
        return None
    if settings.get("responseMimeType") != "application/json":
        return "response_schema requires response_mime_type application/json"
    return _refuse_schema(settings.get("responseSchema"), OPEN_API) or _refuse_schema(
        settings.get("responseJsonSchema"), JSON_SCHEMA
    )


@rule(FUNCTIONS)
def functions_have_names(body: Body) -> str | None:
    return first(
        refuse_name(one.get("name"), "[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}") for one in _declarations(body)
    )


@rule(FUNCTIONS + "#function-calling-modes")
def allowed_functions_are_declared(body: Body) -> str | None:
    config = (body.get("toolConfig") or {}).get("functionCallingConfig") or {}
    allowed = config.get("allowedFunctionNames") or []
    if allowed and config.get("mode") not in {"ANY", "VALIDATED"}:
        return "Allowed function names should only be set when mode is ANY."
    unknown = {*allowed} - {one["name"] for one in _declarations(body)}
    return f"Allowed function {min(unknown)} is not declared." if unknown else None


@rule(GENERATE + "#v1beta.Content")
def contents_are_of_user_and_model(body: Body) -> str | None:
    for place, content in enumerate(body["contents"]):
        if content.get("role", "user") not in {"user", "model"}:
            return "Please use a valid role: user, model."
        if not content.get("parts"):
            return f"contents[{place}].parts must not be empty"
        if any(not ({*part} - {"thought", "thoughtSignature"}) for part in content["parts"]):
            return f"contents[{place}].parts: required oneof field 'data' must have one initialized field"
    return None


@rule(FUNCTIONS)
def each_call_is_followed_by_its_response(body: Body) -> str | None:
    waiting = 0
    for content in body["contents"]:
        answered = sum("functionResponse" in part for part in content["parts"])
        if answered != waiting:
            return "Please ensure that there are as many function response parts as function call parts."
        waiting = sum("functionCall" in part for part in content["parts"])
    return (
        "Please ensure that function call turn comes immediately before a function response turn."
        if waiting
        else None
    )


@rule(SIGNATURES)
def calls_go_back_with_their_signature(body: Body) -> str | None:
    for place, content in enumerate(body["contents"]):
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and not calls[0].get("thoughtSignature"):
            name = calls[0]["functionCall"]["name"]
            return f"Function call `{name}` in the `{place}.` content block is missing a `thought_signature`."
    return None


class GeminiDialect(Dialect):
    name = "gemini"
    path = "/v1beta/models/"
    rules = (
        fields(GENERATE, KNOWN, 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'),
        has_known_settings,
        schemas_of_functions_are_of_the_subset,
        schemas_of_answers_are_of_the_subset,
        functions_have_names,
        allowed_functions_are_declared,
        contents_are_of_user_and_model,
        each_call_is_followed_by_its_response,
        calls_go_back_with_their_signature,
    )

    def takes(self, path: str) -> bool:
        return path.startswith(self.path) and path.endswith((":generateContent", ":streamGenerateContent"))

    def wants_stream(self, body: Body, path: str) -> bool:
        return path.endswith(":streamGenerateContent")

    def read(self, body: Body, path: str) -> Turn:
        system = body.get("systemInstruction") or {"parts": []}
        messages: list[Any] = [{"role": "system", "content": _text(system["parts"])}]
        for content in body["contents"]:
            for part in content["parts"]:
                if "text" in part:
                    role = "assistant" if content.get("role") == "model" else "user"
                    messages.append({"role": role, "content": part["text"]})
                elif "functionResponse" in part:
                    messages.append({"role": "tool", "content": str(part["functionResponse"]["response"])})
                elif "functionCall" in part:
                    messages.append({"role": "assistant", "content": None, "tool_calls": [part]})
        settings = body.get("generationConfig") or {}
        schema = settings.get("responseJsonSchema") or settings.get("responseSchema")
        model = path.removeprefix(self.path).partition(":")[0]
        return Turn(model, messages, [one["name"] for one in _declarations(body)], None, schema)

    def error(self, status: int, message: str, code: str | None = None) -> Any:
        named = code or {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}.get(
            status, "INTERNAL"
        )
        return {"error": {"code": status, "message": message, "status": named}}

    def answer(self, body: Body, reply: Reply) -> Any:
        if reply.refusal is not None:
            feedback = {"blockReason": "PROHIBITED_CONTENT"}
            return {"promptFeedback": feedback, "usageMetadata": _USAGE, "modelVersion": "gemini-3"}
        return self._candidate(self._parts(reply), reply.reason or "STOP")

    def chunks(self, body: Body, reply: Reply) -> Iterator[str]:
        if reply.refusal is not None:
            yield self.event(self.answer(body, reply))
            return
        for part in self._parts(reply):
            pieces = reply.pieces() if part.get("text") == reply.text else [None]
            for piece in pieces:
                yield self.event(self._candidate([part if piece is None else {"text": piece}], None))
        yield self.event(self._candidate([{"text": ""}], reply.reason or "STOP"))

    def _parts(self, reply: Reply) -> list[Any]:
        """Return a thought, followed by the answer. The first call has the signature."""
        parts: list[Any] = [{"text": "So they want {help}.", "thought": True}]
        for place, (name, arguments) in enumerate(reply.calls):
            signed = {"thoughtSignature": "c2VhbGVk"} if place == 0 else {}
            parts.append({"functionCall": {"name": name, "args": arguments}, **signed})
        return [*parts, {"text": reply.text}] if reply.text else parts

    def _candidate(self, parts: list[Any], reason: str | None) -> Any:
        candidate: Any = {"index": 0, "content": {"role": "model", "parts": parts}}
        if reason is not None:
            candidate["finishReason"] = reason
        return {
            "candidates": [candidate],
            "usageMetadata": _USAGE,
            "modelVersion": "gemini-3",
            "responseId": "r",
        }


_USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 64,
    "candidatesTokenCount": 20,
    "thoughtsTokenCount": 20,
    "totalTokenCount": 140,
}


def _text(parts: list[Any]) -> str:
    return "".join(part.get("text", "") for part in parts)
