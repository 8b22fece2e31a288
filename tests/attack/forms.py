"""Dashboard and public site: which role and which origin a form takes, and what fuzzed fields and parameters do to every page."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urljoin, urlsplit
from xml.etree import ElementTree

import httpx
from fastapi import APIRouter
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from menuwatch.accounts.model import ALLOWED, Permission, Role
from menuwatch.dashboard import pages as screens
from menuwatch.site import pages as site_pages
from menuwatch.web.forms import FormFields
from menuwatch.web.routing import include_package
from tests.attack.installation import Installation
from tests.attack.report import Attack
from tests.attack.vectors import Page, encoded, form, mutated
from tests.dashboard.test_closed import requirements

OURS: tuple[dict[str, str], ...] = (
    {"Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "{origin}"},
    {"Referer": "{origin}/admin/tasks"},
)
ABROAD: tuple[dict[str, str], ...] = (
    {},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "SAME-ORIGIN, cross-site", "Origin": "{origin}"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "{origin}"},
    {"Origin": "null"},
    {"Origin": "https://evil.invalid"},
    {"Origin": "{origin}.evil.invalid"},
    {"Origin": "{origin}1"},
    {"Origin": "http://evil.invalid", "Referer": "{origin}/admin"},
    {"Referer": "https://evil.invalid/?{origin}/"},
    {"Referer": "http://{host}@evil.invalid/"},
)
_BY_TOKEN = re.compile(r"/alerts/\{token\}|/feeds/")
"""Whoever holds the address of a shopper's alert may use it, from a mail program too."""
_LOG_OUT = "/admin/logout"
_ENDLESS = "/admin/live"
"""A stream: it names topics, and goes on for as long as it is asked to."""


def _with_dependencies(dependant: Dependant) -> Iterator[Dependant]:
    """The dependant and all that it depends on."""
    yield dependant
    for inner in dependant.dependencies:
        yield from _with_dependencies(inner)


@dataclass(slots=True, kw_only=True)
class Route:
    """An address that pages are at or forms are sent to. `needs` is empty for what is open, None for what the site has."""

    method: str
    path: str
    needs: frozenset[Permission | str] | None
    names: list[str]
    usual: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def at(self, ids: Mapping[str, str]) -> str:
        """An address; what is not in `ids` is something that does not exist."""

        def value(found: re.Match[str]) -> str:
            store = self.path.startswith("/s/")
            return ids.get("store_id" if store and found[1] == "address" else found[1], "999999")

        return re.sub(r"\{(\w+)(?::\w+)?\}", value, self.path)

    def matches(self, path: str) -> bool:
        """Whether that address is this route's."""
        return re.fullmatch(re.sub(r"\\\{.+?\\\}", "[^/]+", re.escape(self.path)), path) is not None

    def lets_in(self, role: Role | None) -> bool:
        """Whether that role, None for nobody, may use it from a page of ours."""
        if not self.needs:
            return True
        allowed = ALLOWED[role] if role is not None else frozenset()
        return role is not None and all(one in allowed for one in self.needs if isinstance(one, Permission))


def run(attack: Attack) -> None:
    with attack.installation() as target:
        found, ids = list(routes()), target.ids()
        with httpx.Client(base_url=target.address, timeout=60) as http:
            _learn(target, http, found, ids)
            _roles_and_origins(attack, target, http, [one for one in found if one.method == "POST"])
            _fuzz(attack, target, http, found, ids)


def routes() -> Iterator[Route]:
    """Of the dashboard and the site, but for the one that does not end."""
    needs = requirements()
    dashboard, site = (include_package(APIRouter(), package) for package in (screens, site_pages))
    for routes, prefix in ((dashboard.routes, "/admin"), (site.routes, "")):
        for route in (route for route in routes if isinstance(route, APIRoute)):
            for method in (route.methods or set()) if prefix + route.path != _ENDLESS else ():
                names = []
                for dependant in _with_dependencies(route.dependant):
                    fields = dependant.body_params if method == "POST" else dependant.query_params
                    names += [field.alias for field in fields]
                    names += dependant.call.names if isinstance(dependant.call, FormFields) else ()
                takes = needs.get((method, route.path), set()) if prefix else None
                yield Route(
                    method=method, path=prefix + route.path, names=names,
                    needs=None if takes is None else frozenset(takes),
                )  # fmt: skip


def _learn(target: Installation, http: httpx.Client, routes: list[Route], ids: dict[str, str]) -> None:
    """Fields and parameters that only the pages name, and what they usually hold. An alert of a shopper gives an address to try."""
    http.headers = httpx.Headers(target.session("reader", Role.ADMIN) | {"Sec-Fetch-Site": "same-origin"})
    asked = http.post(f"/p/{ids['address']}/watch", data={"condition": "any_drop", "by": "feed"})
    ids["token"] = asked.headers.get("location", "/none").rsplit("/", 1)[1]
    for route in [one for one in routes if one.method == "GET"]:
        answer = http.get(route.at(ids), follow_redirects=True)
        here = answer.url.path
        page = Page(answer.text) if "html" in answer.headers.get("content-type", "") else Page("")
        sent = [(one.method, urljoin(here, one.action or here), one.fields) for one in page.forms]
        sent += [("GET", urljoin(here, link), {}) for link in page.links]
        for method, address, fields in sent:
            parts = urlsplit(address)
            usual = fields | dict(parse_qsl(parts.query))
            for one in routes:
                if one.method == method and one.matches(parts.path):
                    one.usual |= usual
                    one.names += [name for name in usual if name not in one.names]


def _roles_and_origins(attack: Attack, target: Installation, http: httpx.Client, routes: list[Route]) -> None:
    """Nothing is sent but the request itself, to what does not exist: who is let in finds nothing to do."""
    host = urlsplit(target.address).netloc
    sessions: dict[Role | None, dict[str, str]] = {role: target.session(f"form-{role}", role) for role in Role}
    with target.database() as conn:
        for route, role, origin in itertools.product(routes, (None, *Role), (*OURS, *ABROAD)):
            case = f"{route} as {role or 'anonymous'}, " + (
                ", ".join(": ".join(one) for one in origin.items()) or "no origin"
            )
            if (route.path == _LOG_OUT and origin in OURS) or not attack.begins(case):
                continue
            sent = {name: value.format(origin=target.address, host=host) for name, value in origin.items()}
            http.headers = httpx.Headers(sent | sessions.get(role, {}))
            before = conn.execute("SELECT count(*) FROM audit_log").fetchone() if origin in ABROAD else None
            answer = http.post(route.at({"address": "999999-x"}))
            let_in = _let_in(route, answer)
            if _BY_TOKEN.search(route.path):
                expected = True
            elif origin in ABROAD:
                expected = route.path == _LOG_OUT and role is None
            else:
                # Without a name and a password nobody is let in, and some tries later it is too many tries.
                expected = route.lets_in(role) and route.path != "/admin/login"
            attack.expect(
                let_in == expected and answer.status_code < 500, case,
                f"{answer.status_code}, {'let in' if let_in else 'refused'}", f"POST {route.at({})} {sent}",
            )  # fmt: skip
            if before is not None and not expected:
                kept = conn.execute("SELECT count(*) FROM audit_log").fetchone() == before
                attack.expect(kept, case, "it was refused and still left an entry in the audit log")


def _let_in(route: Route, answer: httpx.Response) -> bool:
    """Whether the request came through to what the route does."""
    to_login = answer.headers.get("location", "").partition("?")[0].endswith("/admin/login")
    return answer.status_code not in (401, 403, 429) and (not to_login or route.path == _LOG_OUT)


def _fuzz(attack: Attack, target: Installation, http: httpx.Client, routes: list[Route], ids: dict[str, str]) -> None:
    def log_in() -> None:
        http.headers = httpx.Headers(target.session("fuzzer", Role.ADMIN) | {"Sec-Fetch-Site": "same-origin"})
        http.cookies.clear()

    log_in()
    for turn, route in itertools.product(range(attack.most), routes):
        case = f"{route} #{turn}"
        if attack.late:
            return
        if route.path == _LOG_OUT or not attack.begins(case):
            continue
        chance = attack.chance(case)
        fields = mutated(chance, route.names, route.usual)
        address, body = route.at(ids), form(fields)
        try:
            if route.method == "GET":
                query = "&".join(f"{encoded(name)}={encoded(value)}" for name, value in fields)
                address = f"{address}?{query[:30_000]}"
                answer = http.get(address)
            else:
                kind = chance.choice(
                    ("application/x-www-form-urlencoded",) * 8 + ("multipart/form-data", "application/json")
                )
                answer = http.post(address, content=body, headers={"Content-Type": kind})
        except httpx.HTTPError as error:
            attack.expect(False, case, f"no answer: {error!r}", f"{route.method} {address} {body[:300]!r}")
            continue
        _judge(attack, case, answer, f"{route.method} {address[:300]} {body[:300]!r}")
        if answer.headers.get("location", "").startswith("/admin/login"):
            log_in()


def _judge(attack: Attack, case: str, answer: httpx.Response, sent: str) -> None:
    status, kind = answer.status_code, answer.headers.get("content-type", "")
    attack.figures[f"{status // 100}xx"] = attack.figures.get(f"{status // 100}xx", 0) + 1
    # Without a key, and while it is busy, the server says that it is unavailable: that is an answer as described.
    attack.expect(status < 500, case, f"{status}: {answer.text[:200]}", sent)
    there = answer.headers.get("location", "/")
    ours = there.startswith("/") and not there.startswith(("//", "/\\")) and "\t" not in there
    attack.expect(ours, case, f"it leads elsewhere: {there[:200]}", sent)
    if "html" in kind:
        attack.expect(
            not (found := Page(answer.text).injected), case, f"markup of the request is on the page: {found}", sent
        )
    elif "xml" in kind and status < 400:
        try:
            ElementTree.fromstring(answer.content)
        except ElementTree.ParseError as error:
            attack.expect(False, case, f"XML that cannot be parsed: {error}", sent)
