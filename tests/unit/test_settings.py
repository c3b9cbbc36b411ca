"""Settings: secrets from files, as containers mount them, and options in URLs (RT-22)."""

from __future__ import annotations

from pathlib import Path

import pytest
from celery import Celery
from redis.asyncio.connection import SSLConnection

from orchestrator.adapters.postgres.pool import engine_url
from orchestrator.adapters.redis.client import connect
from orchestrator.bootstrap import build_agent
from orchestrator.errors import ConfigurationError
from orchestrator.settings import NO_STORES, Settings, load_settings, read_settings
from orchestrator.settings.environment import read_variable
from parley.main import run
from parley.roles import Role
from workers.app import create_app

SECRETS = ("DATABASE_URL", "REDIS_URL", "PARLEY_JWT_KEY", "OPENAI_API_KEY", "PARLEY_CORS_ORIGINS")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.delenv(name, raising=False)


def place(monkeypatch: pytest.MonkeyPatch, folder: Path, **values: str) -> None:
    """Write each value to a file, and set the environment to the files' paths."""
    for name, value in values.items():
        (folder / name).write_text(value)
        monkeypatch.setenv(f"{name}_FILE", str(folder / name))


def test_values_are_read_from_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place(
        monkeypatch,
        tmp_path,
        DATABASE_URL="postgresql://u:p@db/parley\n",
        REDIS_URL="redis://:p@redis/0\n",
        PARLEY_JWT_KEY="x" * 32,
        OPENAI_API_KEY="sk-1\n",
        PARLEY_CORS_ORIGINS='["https://shop.example"]',
    )
    settings = Settings()  # type: ignore[call-arg]
    assert (settings.database_url, settings.redis_url) == ("postgresql://u:p@db/parley", "redis://:p@redis/0")
    assert settings.jwt_key is not None
    assert settings.jwt_key.get_secret_value() == "x" * 32
    assert settings.openai_api_key is not None
    assert settings.openai_api_key.get_secret_value() == "sk-1"
    assert settings.cors_origins == ("https://shop.example",)
    assert read_variable("DATABASE_URL") == "postgresql://u:p@db/parley"


def test_the_environment_itself_goes_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place(monkeypatch, tmp_path, DATABASE_URL="postgresql://file", REDIS_URL="redis://file")
    monkeypatch.setenv("DATABASE_URL", "postgresql://direct")
    assert Settings().database_url == "postgresql://direct"  # type: ignore[call-arg]
    assert read_variable("DATABASE_URL") == "postgresql://direct"


def test_a_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DATABASE_URL_FILE", str(tmp_path / "nothing"))
    with pytest.raises(ConfigurationError, match="DATABASE_URL_FILE"):
        Settings()  # type: ignore[call-arg]


def test_everything_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigurationError) as told:
        read_settings()
    assert [problem.place for problem in told.value.problems] == ["DATABASE_URL", "REDIS_URL"]
    assert (
        told.value.problems[0].message
        == "is not set; set it, or DATABASE_URL_FILE to a file that contains it"
    )


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("DATABASE_URL", "mysql://hush@db/parley", "should begin with postgresql://"),
        ("REDIS_URL", "hush:6379", "should begin with redis:// or rediss://"),
        ("PARLEY_BROKER_URL", "http://hush", "should begin with redis:// or rediss:// or"),
        ("OPENAI_BASE_URL", "hush/v1", "should begin with http:// or https://"),
        ("PARLEY_FLOWER_URL", "hush:5555", "should begin with http:// or https://"),
        ("PARLEY_METRICS_PORT", "hush", "should be a valid integer"),
        ("PARLEY_METRICS_PORT", "70000", "should be less than or equal to 65535"),
        ("PARLEY_LEASE_TTL_S", "0", "should be greater than 0"),
        ("PARLEY_SWEEP_GRACE_S", "hush", "should be a valid number"),
        ("PARLEY_BACKGROUND_NICE", "20", "should be less than or equal to 19"),
        ("PARLEY_MAX_ATTEMPTS", "", "should be a valid integer"),
        ("PARLEY_DOCS", "hush", "should be a valid boolean"),
        ("PARLEY_AUTH", "hush", "should be 'open' or 'required'"),
        ("PARLEY_CORS_ORIGINS", "https://hush.example", "should be JSON"),
        ("PARLEY_CORS_ORIGINS", '{"hush": 1}', "should be a valid tuple"),
        ("PARLEY_WEBHOOK_NETWORKS", '["hush"]', "should be a network such as 10.1.0.0/16"),
        ("PARLEY_MODEL_ENDPOINTS", "hush", "should be JSON"),
        ("PARLEY_MODEL_ENDPOINTS", '{"near": {"api_key": "hush"}}', "requires a `base_url`"),
    ],
)
def test_a_wrong_value_of_each_kind_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    """The variable, the expected value and the fix, but never the value, which may be a secret."""
    for name, address in NO_STORES.items():
        monkeypatch.setenv(name, address)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as told:
        read_settings()
    (problem,) = told.value.problems
    assert problem.place.startswith(variable)
    assert problem.message.startswith(said)
    assert "; correct it" in problem.message
    assert "hush" not in str(told.value)
    assert len(str(told.value).splitlines()) == 1


@pytest.mark.parametrize("variable", ["PARLEY_BROKER_URL", "OPENAI_BASE_URL", "PARLEY_FLOWER_URL"])
def test_an_address_may_be_left_empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str) -> None:
    """A deployment that must name a file uses an empty secret."""
    place(monkeypatch, tmp_path, **NO_STORES, **{variable: "\n"})
    found = {field.alias: getattr(read_settings(), name) for name, field in Settings.model_fields.items()}
    assert found[variable] is None


@pytest.mark.parametrize("role", list(Role))
def test_no_role_starts_with_a_wrong_value(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], role: Role
) -> None:
    for name, address in NO_STORES.items():
        monkeypatch.setenv(name, address)
    monkeypatch.setenv("PARLEY_LEASE_TTL_S", "soon")
    load_settings.cache_clear()
    assert run(["serve", role.value]) == 1
    assert capsys.readouterr().err == (
        "parley: PARLEY_LEASE_TTL_S: should be a valid number, unable to parse string as a number; "
        "correct it, or unset it for the default\n"
    )


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(
        DATABASE_URL="postgresql://x", REDIS_URL="redis://x", PARLEY_JWT_KEY="hush" * 8, OPENAI_API_KEY="hush"
    )  # type: ignore[call-arg]
    assert "hush" not in f"{settings!r} {settings}"


def test_redis_is_reached_by_tls() -> None:
    pool = connect("rediss://user:word@redis.example:6380/2?ssl_ca_certs=/ca.pem").connection_pool
    made = pool.make_connection()
    assert isinstance(made, SSLConnection)
    assert (made.host, made.port, made.db, made.username) == ("redis.example", 6380, 2, "user")


def test_postgresql_keeps_its_options() -> None:
    url = "postgresql://u:p@db:5433/parley?sslmode=verify-full&sslrootcert=/ca.pem"
    assert engine_url(url) == url.replace("postgresql://", "postgresql+psycopg://")


def celery_of(redis_url: str, **more: object) -> Celery:
    settings = Settings(DATABASE_URL="postgresql://x/y", REDIS_URL=redis_url, **more)  # type: ignore[arg-type]
    return create_app(settings, build_agent)


def test_workers_take_json_and_obey_nobody() -> None:
    """Neither pickle nor remote control through the broker (RT-22)."""
    app = celery_of("redis://redis.example/0")
    assert set(app.conf.accept_content) == set(app.conf.result_accept_content) == {"json"}
    assert {app.conf.task_serializer, app.conf.result_serializer, app.conf.event_serializer} == {"json"}
    assert app.conf.worker_enable_remote_control is False
    assert app.conf.task_create_missing_queues is True  # callbacks go to the sender's queue
    assert celery_of("redis://redis.example/0", PARLEY_REMOTE_CONTROL=True).conf.worker_enable_remote_control


def test_the_broker_and_the_results_are_reached_by_tls() -> None:
    app = celery_of("rediss://redis.example:6380/0?ssl_cert_reqs=required")
    with app.connection_for_write() as connection:
        assert connection.ssl
    assert app.backend.connparams["connection_class"].__name__ == "SSLConnection"
