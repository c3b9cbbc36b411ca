"""Sentinel URLs in Parley's and Celery's form (RT-21)."""

from __future__ import annotations

import ssl

import pytest

from orchestrator.adapters.redis.address import for_celery, read_watched, sentinel_options, tls_options
from orchestrator.errors import ConfigurationError
from orchestrator.settings import read_settings
from tests.cases import for_each

WATCHED = "redis+sentinel://ada:p%40ss@one:26380,two/parley/3"
PLAIN = "redis://ada:p%40ss@one:6379/3"


def test_an_address_of_sentinels_is_read() -> None:
    watched = read_watched(WATCHED)
    assert watched is not None
    assert watched.sentinels == (("one", 26380), ("two", 26379))
    assert (watched.master, watched.database, watched.user, watched.password) == ("parley", 3, "ada", "p@ss")


def test_celery_is_told_the_same_in_its_own_form() -> None:
    assert for_celery(WATCHED) == "sentinel://ada:p%40ss@one:26380/3;sentinel://ada:p%40ss@two:26379/3"
    assert sentinel_options(WATCHED) == {"master_name": "parley"}


@pytest.mark.parametrize("url", [PLAIN, "rediss://one/0", "amqp://ada@one//"])
def test_all_other_addresses_stay_as_they_are(url: str) -> None:
    assert (read_watched(url), for_celery(url), sentinel_options(url)) == (None, url, {})


@for_each("url", ["redis+sentinel://one", "redis+sentinel:///parley", "redis+sentinel://one:x/parley"])
@for_each("name", ["REDIS_URL", "PARLEY_BROKER_URL"])
def test_an_address_that_cannot_be_meant_is_refused_with_its_form(name: str, url: str) -> None:
    given = {"DATABASE_URL": "postgresql://one/parley", "REDIS_URL": PLAIN, name: url}
    with pytest.raises(ConfigurationError, match=rf"{name}.*host:port/master/database"):
        read_settings(**given)


@for_each(
    ("url", "verified"),
    [
        ("rediss://:p@host:6380/0", True),
        ("rediss://:p@host:6380/0?ssl_ca_certs=/ca.pem", True),
        ("rediss://:p@host:6380/0?ssl_cert_reqs=required", False),
        (PLAIN, False),
    ],
)
def test_celery_verifies_where_an_address_does_not_say_how(url: str, verified: bool) -> None:
    assert tls_options(url) == ({"ssl_cert_reqs": ssl.CERT_REQUIRED} if verified else {})
