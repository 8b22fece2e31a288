"""What a robots.txt allows, by RFC 9309: expected values are the standard's, worked out by hand."""

from __future__ import annotations

import time

import pytest

from menuwatch.config.settings import Settings
from menuwatch.core.errors import Refused
from menuwatch.fetch.robots import STALE_SECONDS, Answer, Decision, Known, Policy, Rules, decide, describe, refusal
from menuwatch.pipeline.registry import platform_policies, robots_policy
from menuwatch.platforms.registry import platforms as platforms_of

API = "https://menus.example/api-3/graphql?operationName=Menu&variables=%7B%7D"


def ruling(text: str, url: str = API) -> str | None:
    return Rules(text).forbids(url)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", None),
        ("User-agent: *\nDisallow:\n", None),
        ("User-agent: *\nDisallow: /\n", "Disallow: /"),
        ("User-agent: *\nDisallow: /api-3/\nDisallow: /\n", "Disallow: /api-3/"),
        ("User-agent: *\nDisallow: /admin\n", None),
        # The longest rule wins, Allow where they are equally long (section 2.2.2).
        ("User-agent: *\nDisallow: /api-3/\nAllow: /api-3/graphql\n", None),
        ("User-agent: *\nAllow: /api-3/\nDisallow: /api-3/graphql\n", "Disallow: /api-3/graphql"),
        ("User-agent: *\nDisallow: /api-3/graphql\nAllow: /api-3/graphql\n", None),
        # * and $ (section 2.2.3), the query included.
        ("User-agent: *\nDisallow: /*?operationName=\n", "Disallow: /*?operationName="),
        ("User-agent: *\nDisallow: /api-3/graphql$\n", None),
        ("User-agent: *\nDisallow: /*/graphql # not for you\n", "Disallow: /*/graphql"),
        # Others' groups say nothing to us; agents that follow each other share one; groups for one agent are put together.
        ("User-agent: googlebot\nDisallow: /\n", None),
        ("User-agent: googlebot\nDisallow: /api-3/graphql\n\nUser-agent: *\nDisallow: /api\n", "Disallow: /api"),
        ("User-agent: googlebot\nUser-agent: *\nDisallow: /api\n", "Disallow: /api"),
        ("User-agent: *\nUser-agent: googlebot\nDisallow: /api\n", "Disallow: /api"),
        (
            "User-agent: *\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: *\nDisallow: /api\n",
            "Disallow: /api",
        ),
        ("USER-AGENT: *\r\nDISALLOW: /api\r\n", "Disallow: /api"),
        ("Disallow: /\n", None),
        ("<!doctype html><html><body>Our shop: /</body></html>", None),
        ("\x01\x02 binary: Disallow /", None),
    ],
)
def test_whether_an_address_is_forbidden_and_by_which_line(text: str, rule: str | None) -> None:
    assert ruling(text) == rule


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        ("User-agent: *\nDisallow: /x\n", None),
        ("User-agent: *\nCrawl-delay: 2.5\n", 2.5),
        ("User-agent: *\nRequest-rate: 1/5\n", 5.0),
        ("User-agent: *\nRequest-rate: 30/1m\n", 2.0),
        ("User-agent: *\nCrawl-delay: 1\nRequest-rate: 1/10s\n", 10.0),
        ("User-agent: bingbot\nCrawl-delay: 9\n", None),
        ("User-agent: *\nCrawl-delay: -1\n", None),
        ("User-agent: *\nCrawl-delay: soon\n", None),
        ("User-agent: *\nCrawl-delay: 1e300\n", 86_400.0),
        ("User-agent: *\nCrawl-delay: 0\n", 0.0),
    ],
)
def test_the_delay_that_is_asked_for(text: str, delay: float | None) -> None:
    assert Rules(text).delay == delay


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (200, "User-agent: *\nDisallow: /\n"),
        (206, "User-agent: *\nDisallow: /\n"),
        (401, ""),
        (403, ""),
        (404, ""),
        (410, ""),
        (429, None),
        (500, None),
        (503, None),
        (302, None),
        (None, None),
    ],
)
def test_what_an_answer_is_taken_for(status: int | None, text: str | None) -> None:
    assert Answer(status=status, body=b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n").text == text


def test_half_a_mebibyte_is_read_and_no_line_in_part() -> None:
    filler = b"# " + b"x" * 97 + b"\n"
    head = b"User-agent: *\nDisallow: /admin\n" + filler * 5119
    assert 500 * 1024 - 100 < len(head) < 500 * 1024
    body = head + b"Disallow: /" + b"a" * 200 + b"\nDisallow: /api\n"
    text = Answer(status=200, body=body).text
    assert text is not None
    assert text.encode() == head, "the line that the limit cuts would forbid more than it says"


def test_a_huge_one_is_read_in_reasonable_time() -> None:
    lines = [f"Disallow: /{number:06}/*/x$" for number in range(26_000)]
    body = "\n".join(("User-agent: *", *lines, "Disallow: /api"))
    before = time.process_time()
    assert ruling(Answer(status=200, body=body.encode()).text or "") is None, "it stands behind 500 KiB"
    assert ruling("\n".join(("User-agent: *", *lines[:15_000], "Disallow: /api"))) == "Disallow: /api"
    assert time.process_time() - before < 5


FORBIDDING = Known(rules=Rules("User-agent: *\nDisallow: /api-3/\n"), age=0.0)


@pytest.mark.parametrize(
    ("policy", "known", "url", "decision"),
    [
        (Policy(), FORBIDDING, API, Decision("forbidden", "Disallow: /api-3/")),
        (Policy(), FORBIDDING, "https://menus.example/other", Decision("allowed")),
        (Policy(respect=False), FORBIDDING, API, Decision("allowed")),
        (Policy(), Known(), API, Decision("unknown")),
        (Policy(respect=False), Known(), API, Decision("allowed")),
        (Policy(), Known(), "https://menus.example/robots.txt", Decision("allowed")),
        (Policy(), Known(rules=Rules(""), age=STALE_SECONDS - 1), API, Decision("allowed")),
        (Policy(), Known(rules=Rules(""), age=STALE_SECONDS), API, Decision("unknown")),
    ],
)
def test_the_decision(policy: Policy, known: Known, url: str, decision: Decision) -> None:
    assert decide(policy, known, url) == decision


def test_what_people_are_told() -> None:
    assert refusal(Policy(), API, "Disallow: /api-3/") == (
        "menus.example forbids /api-3/graphql to crawlers: 'Disallow: /api-3/' in its robots.txt. "
        "DUTCHIE_ROBOTS=ignore overrides this and requires the site's permission"
    )
    rules = b"User-agent: *\nDisallow: /a\nDisallow: /b\nCrawl-delay: 10\n"
    assert describe(Answer(status=200, body=rules)) == "its robots.txt forbids 2 paths and sets a crawl delay of 10 s"
    assert describe(Answer(status=200)) == "its robots.txt forbids nothing"
    assert describe(Answer(status=404)) == "it has no robots.txt (HTTP 404): everything is allowed"
    assert describe(Answer(status=503)) == "its robots.txt could not be read: HTTP 503"


def test_each_platform_has_a_policy_of_its_own_and_keeps_to_the_rules_unless_told() -> None:
    where = {"DUTCHIE_BASE_URL": "https://menus.example", "WEEDMAPS_BASE_URL": "https://maps.example:8443"}

    def policies(**said: str) -> dict[str, Policy]:
        settings = Settings.from_env({**where, **said})
        platforms = platforms_of(settings)
        policy = robots_policy(platforms, settings)
        asked = {host for platform in platforms.values() for host in platform.hosts}
        return {host: policy(host) or Policy() for host in (*sorted(asked), "elsewhere.example")}

    kept = Policy(respect=True, setting="DUTCHIE_ROBOTS"), Policy(respect=True, setting="WEEDMAPS_ROBOTS")
    assert policies()["menus.example"] == kept[0]
    assert policies()["maps.example:8443"] == kept[1]
    ignoring = policies(DUTCHIE_ROBOTS="ignore")
    assert [host for host, policy in ignoring.items() if not policy.respect] == ["menus.example"]


def test_shops_own_sites_have_the_policy_of_their_platform() -> None:
    settings = Settings(platforms={"joint": {"base_url": "own", "robots": "ignore"}, "dovetail": {"base_url": "own"}})
    platforms = platforms_of(settings)
    assert robots_policy(platforms, settings)("www.shop.example") is None
    policies = platform_policies(platforms, settings)
    assert policies["joint"] == Policy(respect=False, setting="JOINT_ROBOTS")
    assert policies["dovetail"] == Policy(respect=True, setting="DOVETAIL_ROBOTS")


def test_a_policy_that_is_none_is_refused_at_the_start() -> None:
    with pytest.raises(Refused, match=r"invalid DUTCHIE_ROBOTS='maybe': use one of: respect, ignore"):
        Settings.from_env({"DUTCHIE_ROBOTS": "maybe"})
