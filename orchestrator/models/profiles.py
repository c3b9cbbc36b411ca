"""Profiles of the features that an endpoint accepts for a model, learned from rejected requests.

The first request uses all features. If a rejection names a field, that field is omitted or changed. If not,
the request is retried once in its minimal form. If the endpoint has accepted the full form before, only a
second rejection changes the profile.
"""

from collections.abc import Iterator
from dataclasses import replace

from orchestrator.errors import ModelContextExceeded, ModelFiltered, ModelRefused, ModelRejected
from orchestrator.ports.language_model import (
    ChatRequest,
    EndpointProfile,
    OutputMode,
    RequestField,
    ToolChoice,
)

Key = tuple[str, str]
Form = tuple[Key, EndpointProfile, frozenset[str]]
"""The form of a request: endpoint and model, profile, and the names of its optional parts."""
_NOT_ABOUT_FORM = (ModelContextExceeded, ModelFiltered, ModelRefused)
_WORSE = {OutputMode.SCHEMA: OutputMode.OBJECT, OutputMode.OBJECT: OutputMode.PROMPTED}


class ProfileBook:
    def __init__(self) -> None:
        self._known: dict[Key, EndpointProfile] = {}
        self._guesses: dict[Key, tuple[EndpointProfile, Form]] = {}
        self._accepted: set[Form] = set()
        self._blameless: set[Form] = set()

    def of(self, key: Key) -> EndpointProfile:
        guess, _ = self._guesses.get(key, (None, None))
        return guess or self._known.get(key) or EndpointProfile()

    def note_answer(self, key: Key, sent: ChatRequest) -> bool:
        """Record that an endpoint accepted a request. Return True if the endpoint's profile changes."""
        self._accepted.add(_form(key, sent))
        guess, rejected = self._guesses.pop(key, (None, None))
        if rejected is None or guess != sent.profile:
            return False
        if rejected in self._accepted:
            # The endpoint has accepted this form before, so the rejection may have been an exception.
            self._accepted.remove(rejected)
            return False
        self._known[key] = sent.profile
        return True

    def correct(self, key: Key, request: ChatRequest, error: ModelRejected) -> EndpointProfile | None:
        """Return a profile to retry with, or None if no other form of the request could succeed."""
        if isinstance(error, _NOT_ABOUT_FORM):
            return None
        profile = request.profile
        _, rejected = self._guesses.pop(key, (None, None))
        field = error.said.field if error.said is not None else None
        corrected = None if field is None else without(profile, RequestField(field), request)
        if corrected is not None:
            self._known[key] = corrected
            return corrected
        if rejected is not None:
            # The minimal request was also rejected, so the form is not the cause.
            self._blameless.add(rejected)
            return None
        least, form = _least(profile, request), _form(key, request)
        if least == profile or form in self._blameless:
            return None
        self._guesses[key] = least, form
        return least


def _form(key: Key, request: ChatRequest) -> Form:
    parts = {"tools": bool(request.tools), "output": request.output is not None}
    carried = (field.value for field in _carried(request))
    return key, request.profile, frozenset([*carried, *(name for name, has in parts.items() if has)])


def without(profile: EndpointProfile, field: RequestField, request: ChatRequest) -> EndpointProfile | None:
    """Return a profile that omits or changes a rejected field, or None if no change is left to try."""
    match field:
        case RequestField.OUTPUT:
            worse = _WORSE.get(profile.output)
            return None if worse is None or request.output is None else replace(profile, output=worse)
        case RequestField.TOKEN_LIMIT if not profile.renamed_token_limit:
            return replace(profile, renamed_token_limit=True)
        case RequestField.EFFORT if request.tools and not profile.no_thought_with_tools:
            return replace(profile, no_thought_with_tools=True)
        case _:
            return None if field in profile.refused else replace(profile, refused=profile.refused | {field})


def _least(profile: EndpointProfile, request: ChatRequest) -> EndpointProfile:
    return replace(profile, output=OutputMode.PROMPTED, refused=profile.refused | {*_carried(request)})


def _carried(request: ChatRequest) -> Iterator[RequestField]:
    """Yield the request's optional fields that its minimal form omits."""
    yield from (RequestField.METADATA, RequestField.STREAM_USAGE, RequestField.STRICT)
    if request.temperature is not None:
        yield RequestField.TEMPERATURE
    if request.effort is not None:
        yield RequestField.EFFORT
    if request.tool_choice != ToolChoice.AUTO:
        yield RequestField.TOOL_CHOICE


def describe(profile: EndpointProfile) -> tuple[str, ...]:
    """Return descriptions of the features that an endpoint rejected."""
    said = sorted(field.value for field in profile.refused)
    if profile.output is not OutputMode.SCHEMA:
        said.append(f"output by {profile.output.value}")
    if profile.renamed_token_limit:
        said.append("the default name of the token limit field")
    if profile.no_thought_with_tools:
        said.append("thinking with tools")
    return tuple(said)
