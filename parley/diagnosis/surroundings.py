"""Check settings, folders, model endpoints and Flower."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from orchestrator.adapters.models.pool import read_endpoints
from orchestrator.errors import ConfigurationError
from orchestrator.models.config import DEFAULT_PROVIDER
from orchestrator.settings import NO_STORES, OPENAI_URL, Settings, read_settings
from parley.diagnosis.finding import Finding, bad, note, well

_TIMEOUT_S = 3
_FREE_BYTES = 1 << 30
_REFUSALS = frozenset({401, 403})
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost", ""})
_OF_MODELS = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "PARLEY_MODEL", "PARLEY_MODEL_ENDPOINTS")


def examine_settings(environment: Mapping[str, str]) -> Iterator[Finding]:
    yield from _check_values(environment)
    yield from _check_exposure(environment)
    yield from _check_tokens(environment)
    for name in ("DATABASE_URL", "REDIS_URL", "PARLEY_BROKER_URL"):
        yield from _check_password(name, environment.get(name))


def examine_folders(data_dir: Path, environment: Mapping[str, str], *, embedded: bool) -> Iterator[Finding]:
    if embedded:
        yield from _check_data_folder(data_dir)
    heartbeat = environment.get("PARLEY_HEARTBEAT_FILE")
    for folder in {tempfile.gettempdir(), *([str(Path(heartbeat).parent)] if heartbeat else [])}:
        if not os.access(folder, os.W_OK | os.X_OK):
            yield bad("folders", f"{folder} is not writable", "mount a writable /tmp, or set TMPDIR")


def examine_models(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Request the model list from each endpoint that has a URL. `parley doctor --model` tests more features."""
    try:
        settings = read_model_settings(environment)
        endpoints = read_endpoints(settings)
    except ConfigurationError:
        return  # reported by examine_settings
    if not endpoints:
        yield note("model", "OPENAI_API_KEY is not set, so Parley only uses the local classifier")
    for name, endpoint in endpoints.items():
        title = "model" if name == DEFAULT_PROVIDER else f"model {name}"
        url = endpoint.url or (OPENAI_URL if endpoint.provider.startswith("openai") else "")
        if url:
            model = settings.model if name == DEFAULT_PROVIDER else None
            yield _ask_endpoint(title, url, endpoint.api_key or None, model)
        else:
            yield note(title, f"{endpoint.provider} is configured", "test it with `parley doctor --model`")


def examine_flower(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Check the format of Flower's credentials, and that the server at PARLEY_FLOWER_URL requires a password."""
    auth, url = environment.get("FLOWER_BASIC_AUTH"), environment.get("PARLEY_FLOWER_URL")
    if auth is not None and not all(auth.partition(":")):
        yield bad(
            "flower",
            "FLOWER_BASIC_AUTH is not in the form <user>:<password>",
            "set a user name and a password",
        )
    if not url:
        return
    try:
        reply = httpx.get(f"{url.rstrip('/')}/workers", timeout=_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        yield note(
            "flower", f"{url} can't be reached from here: {error}", "check the URL from Flower's network"
        )
        return
    if reply.status_code in _REFUSALS:
        yield well("flower", f"{url} requires a password")
    elif urlsplit(url).hostname in _LOOPBACK:
        yield note("flower", f"{url} has no authentication; it is only reachable from this machine")
    else:
        yield bad(
            "flower",
            f"{url} shows queues, workers and tasks to everyone",
            "set FLOWER_BASIC_AUTH to <user>:<password> for `parley serve flower`",
        )


def _check_values(environment: Mapping[str, str]) -> Iterator[Finding]:
    try:
        _settings(environment)
    except ConfigurationError as error:
        for problem in error.problems:
            what, _, todo = problem.message.rpartition("; ")
            yield bad("settings", f"{problem.place} {what}", todo)


def _check_exposure(environment: Mapping[str, str]) -> Iterator[Finding]:
    host = environment.get("PARLEY_HOST", "")
    if host not in _LOOPBACK and environment.get("PARLEY_AUTH") != "required":
        yield bad(
            "gateway host",
            f"PARLEY_HOST is {host}, and callers don't have to authenticate",
            "set PARLEY_AUTH=required, or keep PARLEY_HOST on 127.0.0.1 behind an authenticating proxy",
        )
    if environment.get("PARLEY_REMOTE_CONTROL", "").lower() in {"1", "true", "yes", "on"}:
        yield bad(
            "remote control",
            "is on: anyone with access to the broker can stop workers",
            "unset PARLEY_REMOTE_CONTROL",
        )


def _check_tokens(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Check the JWT settings. The gateway doesn't start with a weak secret or without an audience and issuer."""
    try:
        settings = _settings(environment)
    except ConfigurationError:
        return  # reported by _check_values
    # Imported here because the library takes 15 MB, and `parley up` only needs `examine_models`.
    from gateway.auth.tokens import read_tokens  # noqa: PLC0415

    try:
        read_tokens(settings)
    except ConfigurationError as error:
        for problem in error.problems:
            yield bad(
                "tokens",
                f"{problem.place} {problem.message}",
                "correct the setting; until then, the gateway doesn't start",
            )


def _check_password(name: str, url: str | None) -> Iterator[Finding]:
    parts = urlsplit(url or "")
    if not url or (parts.hostname or "") in _LOOPBACK:
        return
    if not parts.password:
        yield bad(
            "passwords",
            f"{name} has no password for {parts.hostname}",
            f"set a password on {parts.hostname}, and add it to {name} (or to the file specified by {name}_FILE)",
        )
    elif (parts.username, parts.password) == ("guest", "guest"):
        yield bad("passwords", f"{name} uses the default account guest/guest", "create a separate account")


def _check_data_folder(data_dir: Path) -> Iterator[Finding]:
    place = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        yield bad("data folder", f"{place} is not writable", "choose another folder with --data-dir")
        return
    password = data_dir / "postgres.password"
    if password.exists() and stat.S_IMODE(password.stat().st_mode) & 0o077:
        yield bad("data folder", f"other users can read {password}", f"chmod 600 {password}")
    free = shutil.disk_usage(place).free
    if free < _FREE_BYTES:
        yield bad(
            "data folder",
            f"only {free >> 20} MiB are free in {place}",
            "free disk space: PostgreSQL stops without it",
        )
    else:
        yield well("data folder", f"{data_dir} is writable, with {free >> 30} GiB free")


def _ask_endpoint(name: str, address: str, key: str | None, model: str | None) -> Finding:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        reply = httpx.get(f"{address.rstrip('/')}/models", headers=headers, timeout=_TIMEOUT_S)
        if reply.status_code == httpx.codes.NOT_FOUND and _lacks_version(address, headers):
            return bad(
                name,
                f"{address} lacks /v1; turns continue with the local classifier",
                f"use {address.rstrip('/')}/v1",
            )
        if reply.status_code in _REFUSALS:
            return bad(
                name,
                f"{address} refuses {'the key' if key else 'callers without a key'} ({reply.status_code}); "
                "turns continue with the local classifier",
                "put a valid key in OPENAI_API_KEY, or in the endpoint's `api_key` in PARLEY_MODEL_ENDPOINTS",
            )
        reply.raise_for_status()
        known = {str(entry["id"]) for entry in reply.json()["data"]}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, KeyError, TypeError) as error:
        return bad(
            name,
            f"{address} is not responding; turns continue with the local classifier: {error}",
            "check the URL, the key and the network rules",
        )
    if model is not None and model not in known:
        return note(
            name,
            f"{address} is responding, but does not list {model}",
            "set PARLEY_MODEL to a listed model",
        )
    return well(name, f"{address} is responding" + (f" and has {model}" if model else ""))


def _lacks_version(address: str, headers: Mapping[str, str]) -> bool:
    """Return True if the endpoint responds when /v1 is appended to its URL."""
    return httpx.get(f"{address.rstrip('/')}/v1/models", headers=headers, timeout=_TIMEOUT_S).is_success


def read_model_settings(environment: Mapping[str, str]) -> Settings:
    named = {name: environment[name] for name in _OF_MODELS if name in environment}
    return read_settings(**NO_STORES, **named)


def _settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings, even if store URLs are missing."""
    return read_settings(**{name: environment.get(name, instead) for name, instead in NO_STORES.items()})
