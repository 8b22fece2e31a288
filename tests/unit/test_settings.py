"""What is said of a variable that cannot be used. Expected bounds are those of docs/reference/settings.md or plain sense."""

from __future__ import annotations

import pytest

from menuwatch.config.environment import fields
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.platforms.registry import platforms

NUMERIC = [
    variable for variable, _, field in fields(Settings) if str(field.type).removesuffix(" | None") in ("int", "float")
]


def refusal(variable: str, text: str) -> str:
    with pytest.raises(Refused) as caught:
        platforms(Settings.from_env({variable: text}))
    return str(caught.value)


def test_numbers_are_found() -> None:
    assert {"HOST_RATE", "POD_ORDINAL", "METRICS_PORT", "STALE_AFTER_MINUTES", "FETCH_MAX_BYTES"} <= set(NUMERIC)


@pytest.mark.parametrize("variable", NUMERIC)
@pytest.mark.parametrize("text", ["abc", "-1e9", "10 apples", "nan"])
def test_no_number_is_named_with_what_is_wrong_and_an_example_that_works(variable: str, text: str) -> None:
    said = refusal(variable, text)
    assert said.startswith(f"invalid {variable}={text!r}: ")
    assert "could not convert" not in said
    assert "invalid literal" not in said
    _, _, example = said.rpartition(f", for example {variable}=")
    Settings.from_env({variable: example})


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        (
            "HOST_RATE",
            "abc",
            "not a number; expected a number of requests a second from 0.000001 to 1000000, for example HOST_RATE=2",
        ),
        ("HOST_RATE", "0", "too small; expected a number of requests a second from 0.000001 to 1000000"),
        ("HOST_RATE", "2,5", "not a number (write it without a comma, with a point)"),
        ("FETCH_TIMEOUT_SECONDS", "30s", "not a number (the unit is always seconds: omit it)"),
        ("POLL_INTERVAL_MS", "5 s", "not a whole number (the unit is always ms: omit it)"),
        (
            "POLL_INTERVAL_MS",
            "5,000",
            "not a whole number (write it without a comma); expected a whole number of ms",
        ),
        ("POLL_INTERVAL_MS", "5.5", "not a whole number; expected a whole number of ms from 10 to 3600000"),
        ("STALE_AFTER_MINUTES", "1441", "too large; expected a number of minutes from 0.01 to 1440"),
        ("SUSPECT_SHARE", "40%", "not a number; expected a number from 0 to 1, for example SUSPECT_SHARE=0.4"),
        ("DUTCHIE_HASHES", "{", "must be a JSON object of operation name to hash"),
        ("DUTCHIE_HASHES", '["x"]', "must be a JSON object of operation name to hash"),
        ("PORT", "99999", "too large; expected a whole number from 0 to 65535, for example PORT=8640"),
        ("PORT", "http", "not a whole number; expected a whole number from 0 to 65535"),
        ("MAX_CONCURRENT_TASKS", "0", "too small; expected a whole number from 1 to 500"),
        ("DUTCHIE_BASE_URL", "dutchie.com", "must start with http:// or https://"),
        ("SERPWATCH_URL", "https://[v1.x]", "no host, or a port"),
        ("CJ_BASE_URL", "http://[::1", "no host, or a port"),
        ("WEEDMAPS_BASE_URL", "https:///x", "no host, or a port"),
        ("PUBLIC_URL", "https://menus.example:99999", "no host, or a port"),
    ],
)
def test_what_is_said(variable: str, text: str, says: str) -> None:
    assert f"invalid {variable}={text!r}: {says}" in refusal(variable, text)


def test_bounds_themselves_are_taken() -> None:
    found = Settings.from_env({"POLL_INTERVAL_MS": "10", "HOST_RATE": "1000000", "SUSPECT_SHARE": " 1 "})
    assert (found.poll_interval_ms, found.host_rate, found.suspect_share) == (10, 1_000_000.0, 1.0)


@pytest.mark.parametrize(
    ("variable", "such"), [("PRODUCT_HISTORY_DAYS", ", or 0 (forever)"), ("TASK_HISTORY_DAYS", "")]
)
def test_what_figures_look_back_on_is_kept(variable: str, such: str) -> None:
    """Whichever of the two is set."""
    assert refusal(variable, "6") == (
        f"invalid {variable}='6': analytics needs 7 days (ANALYTICS_WINDOW_DAYS): "
        f"use 7 or more{such}, for example {variable}=7"
    )
    for days in ("7", "36500"):
        Settings.from_env({variable: days})
    Settings.from_env({variable: "6", "ANALYTICS_WINDOW_DAYS": "6"})
    with pytest.raises(Refused, match=f"invalid {variable}='91': analytics needs 92 days"):
        Settings.from_env({"TASK_HISTORY_DAYS": "92", variable: "91", "ANALYTICS_WINDOW_DAYS": "92"})


def test_history_that_is_kept_for_good_is_long_enough() -> None:
    wide = {"ANALYTICS_WINDOW_DAYS": "92", "TASK_HISTORY_DAYS": "92"}
    assert Settings.from_env({**wide, "PRODUCT_HISTORY_DAYS": "0"}).product_history_days == 0


def test_another_process_reads_the_same_settings() -> None:
    given = {
        "MENUWATCH_HOME": "/somewhere/else",
        "DUTCHIE_BASE_URL": "http://127.0.0.1:4321",
        "DUTCHIE_HASHES": '{"FilteredProducts": "' + "a" * 64 + '"}',
        "WORKER_ROLE": "payload_fetch,product_refresh",
        "TRUSTED_PROXIES": "127.0.0.1,10.0.0.0/8",
        "HOST_RATE": "0.125",
        "WORKERS_MAX": "3",
        "IMAGE_HOSTS": "a.example,b.example",
    }
    settings = Settings.from_env(given)
    said = settings.to_env({"PATH": "/bin", "HOST_RATE": "7", "PORT": "99"})
    assert Settings.from_env(said) == settings
    assert said["PATH"] == "/bin"
    assert "PORT" not in said, "what was set for this process, and not in the settings, is not passed on"
    assert Settings().to_env({}) == {}
