"""What an answer, or the lack of one, means. Expected values follow RFC 9110, libcurl's codes and what real block pages carry."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menuwatch.core.http import Expect
from menuwatch.fetch.classify import (
    Blame,
    RequestOutcome,
    TransportError,
    Verdict,
    classify,
    classify_error,
    classify_response,
    retry_after,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
JSON = b'{"data": {}}'
CLOUDFLARE = (
    b'<!DOCTYPE html><title>Just a moment...</title><script src="/cdn-cgi/challenge-platform/h/b/orchestrate"></script>'
)
DATADOME = b'<html><script src="https://ct.captcha-delivery.com/c.js"></script></html>'
INCAPSULA = b'<html><iframe src="/_Incapsula_Resource?SWUDNSAI=31"></iframe></html>'


def verdict(status: int, headers: dict[str, str] | None = None, body: bytes = JSON, expect: Expect = "json") -> Verdict:
    return classify_response(status, headers or {}, body, expect=expect, now=NOW).verdict


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (200, Verdict.OK), (204, Verdict.OK), (304, Verdict.OK), (302, Verdict.OK), (404, Verdict.OK), (401, Verdict.OK),
        (403, Verdict.BLOCKED), (451, Verdict.BLOCKED),
        (429, Verdict.RATE_LIMITED),
        (400, Verdict.CLIENT_BUG), (405, Verdict.CLIENT_BUG), (413, Verdict.CLIENT_BUG), (422, Verdict.CLIENT_BUG),
        (408, Verdict.TARGET_DOWN), (500, Verdict.TARGET_DOWN), (502, Verdict.TARGET_DOWN), (503, Verdict.TARGET_DOWN),
        (520, Verdict.TARGET_DOWN), (525, Verdict.TARGET_DOWN),
    ],
)  # fmt: skip
def test_status(status: int, expected: Verdict) -> None:
    assert verdict(status) is expected


@pytest.mark.parametrize("body", [CLOUDFLARE, DATADOME, INCAPSULA], ids=["cloudflare", "datadome", "incapsula"])
@pytest.mark.parametrize("status", [200, 403, 429, 503])
def test_a_challenge_page_is_one_whatever_its_status(status: int, body: bytes) -> None:
    assert verdict(status, {"retry-after": "10"}, body) is Verdict.CHALLENGE


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_no_refusal_of_the_identity(status: int) -> None:
    assert verdict(status, body=b'{"message":"Invalid Application-ID or API key","status":403}') is Verdict.CLIENT_BUG
    assert (
        verdict(status, body=b' {"status": 403, "message": "Index not allowed with this API key"}')
        is Verdict.CLIENT_BUG
    )


@pytest.mark.parametrize(
    "body",
    [
        b'{"errors":[{"message":"Forbidden"}]}',
        b'{"message":"Forbidden"}',
        b"<html><body>Your API key is blocked</body></html>",
        b'<script>{"message":"Invalid API key"}</script>',
        b"Sorry, you have been blocked",
    ],
)
def test_other_refusals_are_of_the_identity(body: bytes) -> None:
    assert verdict(403, body=body) is Verdict.BLOCKED


def test_a_challenge_may_be_named_in_a_header_or_a_redirect() -> None:
    assert verdict(403, {"cf-mitigated": "challenge"}, b"") is Verdict.CHALLENGE
    assert verdict(202, {"x-amzn-waf-action": "challenge"}, b"") is Verdict.CHALLENGE
    assert verdict(403, {"x-datadome": "protected"}, b"{}") is Verdict.CHALLENGE
    assert verdict(302, {"location": "https://geo.captcha-delivery.com/captcha/"}, b"") is Verdict.CHALLENGE
    assert verdict(302, {"location": "https://menus.example/stores"}, b"") is Verdict.OK


@pytest.mark.parametrize(
    "body",
    [
        b'{"url":"https://geo.captcha-delivery.com/captcha/?initialCid=AHrlqAAAAAMA"}',
        b'<html><body><script>window._pxAppId = "PXabc123";</script><div id="px-captcha"></div></body></html>',
        b'<META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"><iframe src="/_Incapsula_Resource?CWUDNSAI=23">Incapsula incident ID: 1',
        b'<html><form><div class="h-captcha" data-sitekey="x"></div></form></html>',
    ],
    ids=["datadome", "perimeterx", "incapsula", "hcaptcha"],
)
def test_what_the_services_answer_with_a_refusal_is_a_challenge(body: bytes) -> None:
    assert verdict(403, {}, body) is Verdict.CHALLENGE


def test_a_page_in_good_health_may_carry_the_same_scripts() -> None:
    """Sites behind such services load them on every page."""
    assert verdict(200, {}, CLOUDFLARE, expect="html") is Verdict.OK
    assert verdict(200, {"x-datadome": "protected"}, b'{"data": {"a": 1}}') is Verdict.OK
    assert verdict(429, {"x-datadome": "protected"}, b"{}") is Verdict.RATE_LIMITED
    assert verdict(200, {}, b'{"note": "hcaptcha.com"}') is Verdict.OK


@pytest.mark.parametrize(
    "script",
    [
        b'<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>',
        b'<script src="/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e6fffd425f7e032f3"></script>',
        b"<script>window._pxAppId='PX1';</script>",
        b'<script src="https://js.datadome.co/tags.js"></script>',
        b'<form><div class="g-recaptcha"></div></form>',
    ],
    ids=["cloudflare", "incapsula", "perimeterx", "datadome", "recaptcha"],
)
def test_a_storefront_in_place_of_data_is_no_challenge_for_the_scripts_it_always_has(script: bytes) -> None:
    page = b"<!DOCTYPE html><html><head><title>Order online</title>" + script + b"</head><body></body></html>"
    assert verdict(200, {}, page) is Verdict.SCHEMA_CHANGED
    assert verdict(200, {}, page, expect="html") is Verdict.OK


def test_the_script_alone_in_a_page_that_nobody_should_index_is_one() -> None:
    page = (
        b'<html><META NAME="robots" CONTENT="noindex,nofollow"><script src="/_Incapsula_Resource?SWJIYLWA=5"></script>'
    )
    assert verdict(200, {}, page) is Verdict.CHALLENGE


@pytest.mark.parametrize(
    "body",
    [b"", b" \r\n\t", b"null", b"{}", b"[]", b" { } ", b'{"data":null}', b'{ "data" : null }\n', b"\xef\xbb\xbf[]"],
)
@pytest.mark.parametrize("status", [200, 204, 206])
def test_nothing_where_data_was_due_is_suspect(status: int, body: bytes) -> None:
    classification = classify_response(status, {}, body, expect="json", now=NOW)
    assert (classification.verdict, classification.blame) == (Verdict.EMPTY_SUSPECT, Blame.TARGET)
    assert classify_response(status, {}, body, expect="any", now=NOW).verdict is Verdict.OK


@pytest.mark.parametrize(
    "body",
    [
        b'{"data":{"a":null}}',
        b'{"errors":[{"message":"x"}],"data":null}',
        b" [1]",
        b'\xef\xbb\xbf{"data":{}}',
        b'{"data":' + b" " * 5000 + b"null}",
    ],
)
def test_what_else_an_answer_in_json_holds_is_for_whoever_asked_to_say(body: bytes) -> None:
    assert verdict(200, {}, body) is Verdict.OK


@pytest.mark.parametrize(
    ("expect", "body", "headers", "expected"),
    [
        ("json", b"<html>maintenance</html>", {}, Verdict.SCHEMA_CHANGED),
        ("json", b"upstream request timeout", {}, Verdict.SCHEMA_CHANGED),
        ("json", b"\x89PNG\r\n\x1a\n", {}, Verdict.SCHEMA_CHANGED),
        ("json", b")]}',\n{}", {}, Verdict.SCHEMA_CHANGED),
        ("image", b"", {}, Verdict.EMPTY_SUSPECT),
        ("image", b"<!DOCTYPE html><html></html>", {"content-type": "image/png"}, Verdict.SCHEMA_CHANGED),
        ("image", b'{"error":"not found"}', {}, Verdict.SCHEMA_CHANGED),
        ("image", b"\x89PNG\r\n\x1a\n", {}, Verdict.OK),
        ("image", b"\xff\xd8\xff\xe0", {"content-type": "text/html"}, Verdict.OK),
        ("image", b"<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'/>", {}, Verdict.OK),
        ("html", b"", {}, Verdict.OK),
        ("html", b"{}", {}, Verdict.OK),
        ("any", b"", {}, Verdict.OK),
    ],
)
def test_another_form_than_was_asked_for(
    expect: Expect, body: bytes, headers: dict[str, str], expected: Verdict
) -> None:
    classification = classify_response(200, headers, body, expect=expect, now=NOW)
    assert classification.verdict is expected
    assert classification.blame is (Blame.NONE if expected is Verdict.OK else Blame.TARGET)


@pytest.mark.parametrize("status", [302, 304, 404, 401])
def test_only_a_whole_answer_with_success_is_held_to_its_form(status: int) -> None:
    assert verdict(status, {}, b"") is Verdict.OK
    assert verdict(status, {}, b"<html>no such store</html>") is Verdict.OK


def test_the_thirteen_verdicts_of_the_issue() -> None:
    assert {str(each) for each in Verdict} == {
        "ok", "rate_limited", "blocked", "challenge", "empty_suspect", "schema_changed", "proxy_config", "proxy_down",
        "target_down", "path_reset", "tls_untrusted", "too_large", "client_bug",
    }  # fmt: skip


def test_one_function_judges_answers_and_faults_alike() -> None:
    assert classify(RequestOutcome(now=NOW, status=403)).verdict is Verdict.BLOCKED
    assert classify(RequestOutcome(now=NOW, error=TransportError(code=5))).verdict is Verdict.PROXY_DOWN
    assert classify(RequestOutcome(now=NOW, status=200, start=b'{"a"', size=90_000)).verdict is Verdict.OK


def test_marks_deep_in_a_body_are_not_looked_for() -> None:
    assert verdict(403, {}, b"<" + b" " * 10_000 + CLOUDFLARE) is Verdict.BLOCKED


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("86400", 86400.0),  # a day is meant as a day
        ("2592000", 2_592_000.0),  # and a month as a month
        ("Tue, 01 Mar 2036 12:00:00 GMT", 3653 * 86_400.0),
        ("9" * 400, 36_500 * 86_400.0),  # what no calendar holds
        ("Sat, 01 Mar 9999 12:00:00 GMT", 36_500 * 86_400.0),
        ("Sun, 99 Mar 2026 12:00:00 GMT", None),
        ("nan", None),
        ("1e3", None),
        ("Sun, 01 Mar 2026 12:01:30 GMT", 90.0),
        ("Sunday, 01-Mar-26 12:00:30 GMT", 30.0),  # the obsolete form of RFC 850
        ("Sun Mar  1 12:00:05 2026", 5.0),  # and that of asctime
        ("-5", None),
        ("Sun, 01 Mar 2026 11:59:00 GMT", None),
        ("soon", None),
        ("", None),
        ("1.5", None),
        ("٣", None),
        (None, None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW) == seconds


def test_a_wait_is_taken_from_429_and_makes_503_a_rate_limit() -> None:
    limited = classify_response(429, {"retry-after": "30"}, b"", expect="json", now=NOW)
    assert (limited.verdict, limited.retry_after, limited.blame) == (Verdict.RATE_LIMITED, 30.0, Blame.NONE)
    assert classify_response(429, {}, b"", expect="json", now=NOW).retry_after is None
    assert classify_response(503, {"retry-after": "5"}, b"", expect="json", now=NOW).retry_after == 5.0
    assert classify_response(503, {"retry-after": "-5"}, b"", expect="json", now=NOW).verdict is Verdict.TARGET_DOWN


def test_a_date_to_wait_for_is_read_by_the_clock_of_whoever_named_it() -> None:
    """Ours is a quarter of an hour ahead of the host's, or behind it."""
    until = {"retry-after": "Sun, 01 Mar 2026 12:10:00 GMT", "date": "Sun, 01 Mar 2026 12:00:00 GMT"}
    for ours in (datetime(2026, 3, 1, 12, 15, tzinfo=UTC), datetime(2026, 3, 1, 11, 45, tzinfo=UTC)):
        assert classify_response(429, until, b"", expect="json", now=ours).retry_after == 600.0
    assert classify_response(429, {**until, "date": "soon"}, b"", expect="json", now=NOW).retry_after == 600.0


FAULTS = [
    (TransportError(code=5), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=7), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=7, connect_code=407), Verdict.PROXY_CONFIG, Blame.PROXY),
    (TransportError(code=7, connect_code=403), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=7, connect_code=429), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=7, connect_code=503), Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    (TransportError(code=7, connect_code=504), Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    (TransportError(code=7, connect_code=502), Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    (TransportError(code=28), Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    (TransportError(code=28, connect_code=200), Verdict.TARGET_DOWN, Blame.TARGET),
    (TransportError(code=28, connect_code=200, sent=True), Verdict.TARGET_DOWN, Blame.TARGET),
    (TransportError(code=28, sent=True), Verdict.TARGET_DOWN, Blame.TARGET),
    (TransportError(code=56), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=56, connect_code=200, sent=True), Verdict.PATH_RESET, Blame.NONE),
    (TransportError(code=52, sent=True), Verdict.PATH_RESET, Blame.NONE),
    (TransportError(code=18, sent=True), Verdict.PATH_RESET, Blame.NONE),
    (TransportError(code=35, connect_code=200), Verdict.PATH_RESET, Blame.NONE),
    (TransportError(code=35), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=35, in_tls=True), Verdict.PATH_RESET, Blame.NONE),
    (TransportError(code=35, in_proxy_tls=True), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=60, in_proxy_tls=True), Verdict.TLS_UNTRUSTED, Blame.PROXY),
    (TransportError(code=60, in_tls=True), Verdict.TLS_UNTRUSTED, Blame.PROXY_OR_TARGET),
    (TransportError(code=28, in_tls=True), Verdict.TARGET_DOWN, Blame.TARGET),
    (TransportError(code=28, in_proxy_tls=True), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=28, connections=0), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=28, connections=0, sent=True), Verdict.TARGET_DOWN, Blame.TARGET),
    (
        TransportError(code=56, sent=True, message="Too large response headers: 327802 > 307200"),
        Verdict.TOO_LARGE,
        Blame.TARGET,
    ),
    (TransportError(code=1, sent=True), Verdict.TARGET_DOWN, Blame.TARGET),
    (TransportError(code=1), Verdict.CLIENT_BUG, Blame.US),
    (TransportError(code=8), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=97, proxy_error=2), Verdict.PROXY_CONFIG, Blame.PROXY),
    (TransportError(code=97, proxy_error=33), Verdict.PROXY_CONFIG, Blame.PROXY),
    (TransportError(code=97, proxy_error=12), Verdict.PROXY_CONFIG, Blame.PROXY),
    (TransportError(code=97, proxy_error=20), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=97, proxy_error=23), Verdict.PROXY_DOWN, Blame.PROXY),
    (TransportError(code=97, proxy_error=22), Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    (TransportError(code=97, proxy_error=21), Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    (TransportError(code=97, proxy_error=19), Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    (TransportError(code=97, proxy_error=24), Verdict.PROXY_DOWN, Blame.PROXY_OR_TARGET),
    (TransportError(code=60, connect_code=200), Verdict.TLS_UNTRUSTED, Blame.PROXY_OR_TARGET),
    (TransportError(code=63, sent=True), Verdict.TOO_LARGE, Blame.TARGET),
    (
        TransportError(code=92, sent=True, message="HTTP/2 stream 1: ENHANCE_YOUR_CALM"),
        Verdict.RATE_LIMITED,
        Blame.NONE,
    ),
    (
        TransportError(code=56, sent=True, connections=6, message="Connection died, tried 5 times before giving up"),
        Verdict.RATE_LIMITED,
        Blame.NONE,
    ),
    (TransportError(code=92, sent=True, message="HTTP/2 stream 1: INTERNAL_ERROR"), Verdict.PATH_RESET, Blame.NONE),
    (TransportError(code=3), Verdict.CLIENT_BUG, Blame.US),
    (TransportError(code=0), Verdict.CLIENT_BUG, Blame.US),
]


@pytest.mark.parametrize(("error", "expected", "blame"), FAULTS)
def test_fault(error: TransportError, expected: Verdict, blame: Blame) -> None:
    classification = classify_error(error)
    assert (classification.verdict, classification.blame) == (expected, blame)
    assert classification.reason


@given(st.integers(0, 120), st.sampled_from([0, 200, 403, 407, 502, 503]), st.integers(0, 40), st.booleans())
def test_every_fault_has_a_verdict_and_once_the_request_is_out_no_proxy_is_blamed(
    code: int, connect_code: int, proxy_error: int, sent: bool
) -> None:
    classification = classify_error(
        TransportError(code=code, connect_code=connect_code, proxy_error=proxy_error, sent=sent)
    )
    assert classification.verdict is not Verdict.OK
    if sent and connect_code in (0, 200) and code not in (5, 97):
        assert classification.blame is not Blame.PROXY


@given(st.integers(100, 599), st.binary(max_size=200), st.sampled_from(["json", "html", "image", "any"]))
def test_every_answer_has_a_verdict_and_none_blames_the_proxy(status: int, body: bytes, expect: Expect) -> None:
    classification = classify_response(status, {}, body, expect=expect, now=NOW)
    assert classification.blame not in (Blame.PROXY, Blame.PROXY_OR_TARGET)
    assert (classification.verdict is Verdict.OK) <= (status < 500)
