"""Values that would be taken and then match nothing, or be of no use, stop the start: in one line, without a secret."""

from __future__ import annotations

import os

import pytest

from menuwatch.cli import startup as process
from menuwatch.config.environment import fields
from menuwatch.config.platforms import PlatformSettings, platform_settings
from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.ops.installation import settings_as_env, settings_shown
from menuwatch.platforms.registry import platforms, settings_of
from menuwatch.platforms.weedmaps.adapter import Weedmaps
from menuwatch.storefront.watches.sender import WatchSender

SECRET = "Hunter2Secret"
HASH = "a" * 64
NUMBERS = ["x", "-1000000000000", "1e400", "99999999999999999999", "0x10", "5;6", "1 2"]
URLS = [
    "dutchie.com", "ftp://dutchie.com", "http://", "https:///path", "https://host:99999", "https://a b", "https://host?q=1", "https://[",
    f"https://user:{SECRET}@host", "https://host#x",
]  # fmt: skip
HOSTS = [
    "*",
    "*.",
    "*com",
    "**.example.com",
    "a.*.com",
    "https://example.com",
    "example.com/x",
    "exa mple.com",
    "a..b",
    ",",
    " ",
    "ü.example",
]
KEYS = ["x", ",", SECRET, "A" * 44, f"{SECRET}," * 2]
TEXTS = [" ", "a\tb", "x" * 201]
LISTS = [",", " , "]
WORDS = ["x", "JSON", "1", " "]
LABELS = ["-a", "A_b", "a" * 64, " "]

BAD: dict[str, list[str]] = {
    "DATABASE_URL": ["sqlite://x", f"http://u:{SECRET}@h/d", "postgres", "postgresql://[", " "],
    "PUBLIC_URL": [*URLS, "https://host/a b", "https://host:0"],
    "TRUSTED_PROXIES": [*LISTS, "10.0.0.1/8", "*", "localhost", "10.0.0.0/33"],
    "STORAGE_DRIVER": [*WORDS, "S3", "gcs"],
    "S3_BUCKET": ["a", "Menus", "menus/payloads", "s3://menus", " "],
    "S3_ENDPOINT": [*URLS, f"https://key:{SECRET}@host", "https://host/bucket", "https://host?x=1"],
    "S3_PREFIX": ["a b", "../x", "a//b", ".x"],
    "LOG_FORMAT": WORDS,
    "LOG_LEVEL": ["trace", "INFO", " "],
    "WORKER_ROLE": [",", "crawler", "payload_fetch,x"],
    "WORKER_ID": TEXTS,
    "POD_NAME": TEXTS,
    "SCALER": WORDS,
    "K8S_NAMESPACE": LABELS,
    "K8S_WORKER_STATEFULSET": LABELS,
    "DUTCHIE_BASE_URL": URLS,
    "DUTCHIE_GRAPHQL_PATH": [" ", "/a b", "https://host/graphql"],
    "DUTCHIE_HASHES": ["{", "[]", '{"FilteredProducts": 1}', '{"FilteredProducts": "abc"}', f'{{"x": "{HASH.upper()}"}}'],
    "DUTCHIE_ROBOTS": WORDS,
    "WEEDMAPS_BASE_URL": URLS,
    "WEEDMAPS_ROBOTS": WORDS,
    "WEEDMAPS_APP_ID": [" ", "a b", "ü"],
    "WEEDMAPS_API_KEY": [" ", f"{SECRET} x", f"{SECRET}\tx", "ü"],
    "CJ_BASE_URL": URLS,
    "CJ_ROBOTS": WORDS,
    "SERPWATCH_TOKEN": [" ", f"{SECRET} x", f"{SECRET}\tx", "ü"],
    "SERPWATCH_URL": URLS,
    "CRAWL_RESULT_HOSTS": HOSTS,
    "IMAGE_HOSTS": HOSTS,
    "SECRET_KEY": KEYS,
    "IMAGE_URL_KEY": KEYS,
    "NTFY_SERVER": ["ntfy.sh", "https://", f"https://u:{SECRET}@ntfy.sh", "https://ntfy.sh/topic", "ftp://ntfy.sh"],
    "MAIL_URL": ["x", "mailto:", "mailtos://", f"smtp://u:{SECRET}@h", f"mailtos://u:{SECRET}@", f"mailtos://u:{SECRET}@h:99999", " "],
}  # fmt: skip
LATER = {
    "IMAGE_PRESETS": "the server, when it sets up pictures",
    "GEOIP_DATABASE": "the server, when it opens the file",
    "PROFILES_FILE": "the process, when it reads the file",
    "HOST": "the server, when it binds",
    "METRICS_HOST": "the worker, when it binds",
    "MENUWATCH_HOME": "any text is a path",
    "STORAGE_PATH": "any text is a path",
}
"""Refused (or not) by what uses them; not by reading them."""

FIELDS = {variable: field for variable, _, field in fields(Settings)} | {
    variable: field for variable, _, field in fields(PlatformSettings, "WEEDMAPS_")
}
NUMERIC = {name for name, spec in FIELDS.items() if str(spec.type).removesuffix(" | None") in ("int", "float")}


def test_every_setting_is_in_the_table() -> None:
    assert set(FIELDS) == set(BAD) | set(LATER) | NUMERIC


@pytest.mark.parametrize("variable", sorted(set(BAD) | NUMERIC))
def test_what_is_of_no_use_is_refused(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for known in FIELDS:
        monkeypatch.delenv(known, raising=False)
    taken = []
    for text in BAD.get(variable, NUMBERS):
        monkeypatch.setenv(variable, text)
        try:
            process.load_settings()
        except Refused as refused:
            said = str(refused)
            assert said.removeprefix("invalid ").startswith(variable), said
            assert "\n" not in said
            assert SECRET not in said
        else:
            taken.append(text)
    assert taken == []
    assert os.environ[variable]


@pytest.mark.parametrize("variable", ["IMAGE_HOSTS", "CRAWL_RESULT_HOSTS"])
def test_hosts_are_taken_as_they_match(variable: str) -> None:
    text = "images.example.com, *.Example.org,127.0.0.1:8080,[::1]:9,localhost,xn--bcher-kva.example,a_b.example"
    found = Settings.from_env({variable: text})
    taken = found.image_hosts if variable == "IMAGE_HOSTS" else found.crawl_result_hosts
    assert taken == tuple(part.strip().lower() for part in text.split(","))
    with pytest.raises(Refused, match=r"\*\.example\.com"):
        Settings.from_env({variable: "*"})


@pytest.mark.parametrize("url", ["mailtos://u:{}@mail.example.org?mode=nonsense", "mailto://u:{}@ho_st!/"])
def test_what_the_mailer_cannot_use_is_refused(url: str) -> None:
    settings = Settings.from_env({"MAIL_URL": url.format(SECRET)})
    with pytest.raises(Refused, match=r"^invalid MAIL_URL") as refused:
        WatchSender(None, settings)  # type: ignore[arg-type]
    assert SECRET not in str(refused.value)


def test_a_mail_server_is_taken() -> None:
    for url in (
        "mailtos://menus:x@mail.example.org?from=menus@example.org",
        "mailto://127.0.0.1:2525?from=a@b.example",
    ):
        WatchSender(None, Settings.from_env({"MAIL_URL": url}))  # type: ignore[arg-type]


def test_what_only_together_is_of_no_use() -> None:
    with pytest.raises(Refused, match=r"^invalid WORKERS_MIN='9'"):
        Settings.from_env({"WORKERS_MIN": "9", "WORKERS_MAX": "3"})
    with pytest.raises(
        Refused, match=r"^invalid CRAWL_GAP_MIN_SECONDS='20.0': it exceeds CRAWL_GAP_MAX_SECONDS \(15.0\)"
    ):
        Settings.from_env({"CRAWL_GAP_MIN_SECONDS": "20"})
    settings = Settings.from_env({"DUTCHIE_HASHES": f'{{"FiltredProducts": "{HASH}"}}'})
    with pytest.raises(Refused, match="'FiltredProducts'; the operations are FilteredProducts, "):
        platforms(settings)


def test_a_platform_that_is_never_requested_takes_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUTCHIE_PLUS_BASE_URL", "https://shop.example")
    with pytest.raises(
        Refused, match=r"^invalid DUTCHIE_PLUS_BASE_URL='https://shop.example': .* recorded responses only"
    ):
        process.load_settings()


def test_only_platforms_of_shops_own_sites_take_those() -> None:
    assert platform_settings("joint", {"base_url": "own"}, own_sites=True).base_url == "own"
    with pytest.raises(Refused, match=r"^invalid WEEDMAPS_BASE_URL='own': must start with http"):
        platforms(Settings.from_env({"WEEDMAPS_BASE_URL": "own"}))
    with pytest.raises(Refused, match=r"or JOINT_BASE_URL=own to request each shop at its own site$"):
        platform_settings("joint", {"base_url": "shop.example"}, own_sites=True)


def test_keys_of_platforms_are_never_shown() -> None:
    given = {"WEEDMAPS_BASE_URL": "https://api.example", "WEEDMAPS_API_KEY": SECRET}
    settings = Settings.from_env(given)
    shown = {setting.variable: setting.value for setting in settings_shown(settings)}
    assert (shown["WEEDMAPS_BASE_URL"], shown["WEEDMAPS_API_KEY"]) == ("https://api.example", "set")
    lines = settings_as_env(settings)
    assert "WEEDMAPS_BASE_URL=https://api.example" in lines
    assert SECRET not in repr(settings) + repr(shown) + "".join(lines) + repr(settings_of(settings, Weedmaps))


def test_platforms_of_a_command_are_those_of_its_processes() -> None:
    """The simulator's addresses win over the environment's: a demo requests no real platform."""
    real = {
        "WEEDMAPS_BASE_URL": "https://real.example",
        "JANE_BASE_URL": "https://jane.example",
        "DUTCHIE_BASE_URL": "https://d.example",
    }
    settings = Settings.from_env(
        real, dutchie_base_url="http://127.0.0.1:1", platforms={"weedmaps": {"base_url": "http://127.0.0.1:2"}}
    )
    passed = settings.to_env(real)
    assert {name: text for name, text in passed.items() if name in real} == {
        "DUTCHIE_BASE_URL": "http://127.0.0.1:1",
        "WEEDMAPS_BASE_URL": "http://127.0.0.1:2",
    }
