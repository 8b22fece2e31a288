"""Marked secrets, given in every place that takes one and then looked for in logs, pages, answers, metrics and the database."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Iterator
from random import Random
from typing import Any
from urllib.parse import quote

import httpx

from menuwatch.accounts.model import Role
from menuwatch.accounts.passwords import Passwords
from tests.attack.api import operations
from tests.attack.forms import routes
from tests.attack.installation import Installation, until
from tests.attack.report import Attack

_COMMANDS = (
    ("proxies", "list"), ("proxies", "list", "--json"), ("alerts", "list", "--json"), ("users", "list", "--json"),
    ("tokens", "list", "--json"), ("audit", "--json"), ("doctor",),
)  # fmt: skip


def run(attack: Attack) -> None:
    chance = attack.chance("secrets")
    marks = {name: f"{name}-{uuid.UUID(int=chance.getrandbits(128)).hex}" for name in (
        "proxy", "channel", "webhook", "signing", "mail", "service", "guessed", "password",
    )}  # fmt: skip
    keys = {
        name: base64.urlsafe_b64encode(Random(f"{attack.seed} {name}").randbytes(32)).decode()
        for name in ("seal", "sign")
    }
    environ: dict[str, Any] = {
        "SECRET_KEY": keys["seal"], "IMAGE_URL_KEY": keys["sign"], "SERPWATCH_TOKEN": marks["service"], "LOG_LEVEL": "debug",
        "MAIL_URL": f"mailtos://user:{marks['mail']}@127.0.0.1:9?from=a@example.org", "ALERT_TIMEOUT_SECONDS": "1",
    }  # fmt: skip
    with attack.installation(**environ) as target:
        planted = marks | keys | _plant(attack, target, marks)
        for place, text in _outputs(attack, target):
            found = [name for name, value in planted.items() if _holds(text, value)]
            attack.expect(not found, place, f"holds {', '.join(found)}")
    _first_password(attack)


def _holds(text: str, secret: str) -> bool:
    """Also as an address or JSON would have it."""
    return secret in text or quote(secret) in text or base64.b64encode(secret.encode()).decode() in text


def _plant(attack: Attack, target: Installation, marks: dict[str, str]) -> dict[str, str]:
    """Gives the server every secret that it takes, some of them with mistakes; returns those that it made itself."""
    made: dict[str, str] = {}
    with httpx.Client(base_url=target.address, headers=target.token(), timeout=60) as http:

        def send(path: str, body: object, *allowed: int) -> httpx.Response:
            answer = http.post(path, json=body)
            attack.expect(
                answer.status_code in allowed, f"planted: POST {path}", f"{answer.status_code}: {answer.text[:200]}"
            )
            return answer

        proxy = f"http://someone:{marks['proxy']}@127.0.0.1:9"
        send("/api/proxies", {"proxies": [proxy], "force": True}, 200, 201)
        send("/api/proxies", {"proxies": [f"http://someone:{marks['proxy']}@127.0.0.1:99999"]}, 200, 201, 400, 422)
        send("/api/proxies", {"proxies": [proxy.replace("9", "10")]}, 200, 201, 409, 422)
        channels = [
            {"kind": "webhook", "url": f"https://hooks.invalid/{marks['webhook']}", "secret": marks["signing"]},
            {"kind": "apprise", "url": f"jsons://someone:{marks['channel']}@hooks.invalid/x"},
        ]
        rule = {"name": "marked", "condition": "out_of_stock", "store_id": 1, "channels": channels}
        answer = send("/api/alerts", rule, 201)
        send("/api/alerts", rule | {"channels": [channels[0] | {"kind": marks["channel"]}]}, 422)
        http.post(f"/api/alerts/{answer.json().get('id', 1)}/test")
        tried = until(lambda: target.rows("SELECT count(*) FROM alert_deliveries WHERE attempts > 0")[0][0], 20)
        attack.figures["deliveries tried"] = tried
        token = send("/api/tokens", {"name": "marked", "scopes": ["read"]}, 201).json()
        made["token"] = token["secret"].rpartition("_")[2]
        given = send("/api/users", {"name": "marked", "role": "viewer"}, 201).json()
        first = given["one_time_password"]
        made["first password"] = first
        http.headers.pop("Authorization")
        http.headers["Sec-Fetch-Site"] = "same-origin"
        send("/api/session", {"name": "marked", "password": marks["guessed"]}, 401)
        send("/api/session", {"name": marks["guessed"], "password": first}, 401)
        send("/api/session", {"name": "marked", "password": first}, 200, 201, 204)
        made["session"] = http.cookies["menuwatch"]
        send("/api/session/password", {"current": first, "new": marks["password"]}, 200, 204)
        http.post(f"/api/crawl/webhook/{marks['guessed']}", json={})
        http.get(f"/alerts/{marks['guessed']}")
    return made


def _outputs(attack: Attack, target: Installation) -> Iterator[tuple[str, str]]:
    """(where, text) of everything that anybody may read."""
    ids = target.ids() | {"rule_id": str(target.rows("SELECT max(id) FROM alert_rules")[0][0])}
    cookie = target.session("looker", Role.ADMIN)
    paths = [(path, target.token()) for method, path, _ in operations() if method == "GET" and path != "/api/events"]
    pages = [(route.at(ids), cookie) for route in routes() if route.method == "GET"]
    ids |= {"user_id": "1", "proxy_id": str(target.rows("SELECT max(id) FROM proxies")[0][0])}
    with httpx.Client(base_url=target.address, timeout=60) as http:
        for path, headers in (*paths, *pages, ("/metrics", target.token())):
            case = f"GET {path}"
            if attack.begins(case):
                answer = http.get(re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], path), headers=headers)
                yield case, f"{answer.headers}\n{answer.text}"
    for words in _COMMANDS:
        if attack.begins(case := f"menuwatch {' '.join(words)}"):
            yield case, target.command(*words)[1]
    if attack.begins("the server's log"):
        yield "the server's log", target.log_text()
    if attack.begins("the database"):
        with target.database() as conn:
            names = conn.execute(
                "SELECT quote_ident(relname) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
            )
            for (name,) in names.fetchall():
                with conn.cursor().copy(f"COPY {name} TO STDOUT") as rows:
                    yield "the database", b"".join(rows).decode("utf-8", "replace")


def _first_password(attack: Attack) -> None:
    """No word of the log of a new installation opens the account that it made."""
    case = "log of a first start"
    if not attack.begins(case):
        return
    target = attack.template.beside(attack.folder / attack.part / "first" / "home")
    try:
        target.start()
        ((stored,),) = target.rows("SELECT password_hash FROM users WHERE name = 'admin'")
        words = set(re.findall(r"[^\s\"',;]{8,}", target.log_text()))
        passwords = Passwords(1024)
        found = [word for word in words if passwords._verify(stored, word.encode())]
        attack.expect(not found, case, "the first admin's password is in the server's log")
    finally:
        target.stop()
