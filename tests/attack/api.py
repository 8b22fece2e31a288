"""The API: who is let in, by openapi.json's own `x-permission`, and generated cases whose answers must be as it describes."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import hypothesis
import requests
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from menuwatch.accounts.model import ALLOWED, Permission, Role
from tests.accounts.test_closed import WEBHOOK, address_of_nothing
from tests.attack.installation import Installation
from tests.attack.report import Attack
from tests.browser.test_whole_api import ENDLESS, LEAKS, OUTWARD
from tests.conftest import ROOT

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
_AT_ONCE = 4
"""Cases of one operation in a row; then the next one has its turn, so that all are reached in whatever time there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and what they may do; `own`: whether they have an account of their own to change."""

    name: str
    headers: Mapping[str, str]
    may: frozenset[Permission] = frozenset()
    known: bool = True
    own: bool = False

    def let_in(self, needs: str) -> bool:
        """Whether an operation with that `x-permission` is theirs to use."""
        if needs == "signed in":
            return self.known
        if needs == "own account":
            return self.own
        return Permission(needs) in self.may


def run(attack: Attack) -> None:
    with attack.installation() as target:
        _callers(attack, target)
        _generated(attack, target)


def callers(target: Installation) -> list[Caller]:
    """Nobody, wrong tokens, each scope alone, and each role by token and by cookie."""
    made = [
        Caller(name="anonymous", headers={}, known=False),
        Caller(name="unknown token", headers={"Authorization": f"Bearer mw_1_{'0' * 64}"}, known=False),
        Caller(name="garbled token", headers={"Authorization": "Bearer mw_nonsense"}, known=False),
    ]
    for scope in Permission:
        headers = target.token(f"only-{scope}".replace(":", "-"), scopes=(scope,))
        made.append(
            Caller(name=f"scope {scope}", headers=headers, may=frozenset({scope}), own=scope is Permission.ACCOUNTS)
        )
    for role in Role:
        may = ALLOWED[role]
        headers = target.token(f"token-{role}", role=role)
        made.append(Caller(name=f"{role} by token", headers=headers, may=may, own=Permission.ACCOUNTS in may))
        cookie = target.session(f"cookie-{role}", role)
        made.append(
            Caller(name=f"{role} by cookie", headers=cookie | {"Sec-Fetch-Site": "same-origin"}, may=may, own=True)
        )
        abroad = cookie | {"Sec-Fetch-Site": "cross-site"}
        made.append(Caller(name=f"{role} by cookie from another site", headers=abroad, may=may, own=True))
    return made


def operations() -> Iterator[tuple[str, str, str | None]]:
    """(method, path, x-permission), None for what is open."""
    document = json.loads((ROOT / "openapi.json").read_text())
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            is_open = operation.get("security") == []
            yield method.upper(), path, None if is_open else operation["x-permission"]


def _callers(attack: Attack, target: Installation) -> None:
    everybody = callers(target)
    with httpx.Client(base_url=target.address, timeout=30) as http:
        for (method, path, needs), caller in itertools.product(operations(), everybody):
            case = f"{caller.name}: {method} {path}"
            cookie = "cookie" in caller.name
            # The webhook has a secret of its own, and a session that was ended is no principal any more.
            if (method, path) in (WEBHOOK, ("DELETE", "/api/session")) or not attack.begins(case):
                continue
            with http.stream(method, address_of_nothing(path), headers=caller.headers) as answer:
                if path != "/api/events":
                    answer.read()
            let_in = answer.status_code not in (401, 403)
            expected = needs is None or caller.let_in(needs)
            if cookie and "another site" in caller.name and method != "GET" and needs is not None:
                expected = False
            if needs is None and path == "/api/session":
                expected = let_in  # logging in: without a name and a password nobody is
            attack.expect(
                let_in == expected and answer.status_code < 500, case,
                f"{answer.status_code}, but x-permission is {needs}", f"{method} {address_of_nothing(path)}",
            )  # fmt: skip


def _generated(attack: Attack, target: Installation) -> None:
    schema = schemathesis.openapi.from_path(ROOT / "openapi.json")
    found = [result.ok() for result in schema.get_all_operations() if isinstance(result, Ok)]
    chosen = [one for one in found if one.definition.raw["operationId"] not in OUTWARD | ENDLESS]
    strategies = {
        (operation.label, mode): operation.as_strategy(generation_mode=mode)
        for operation, mode in itertools.product(chosen, (GenerationMode.POSITIVE, GenerationMode.NEGATIVE))
    }
    session = requests.Session()
    for turn in range(attack.most):
        ids = target.ids()
        for (label, mode), strategy in strategies.items():
            case = f"{label} {mode.value} #{turn}"
            if attack.late:
                return
            if attack.only not in case:
                continue
            # Each time with a token of its own: some operations take tokens and users away.
            known = turn % 5 != 4
            headers = target.token(f"for-{label}".translate({ord(c): "-" for c in " /{}"})[:60]) if known else {}
            _some(attack, case, strategy, target.address, session, headers, ids if turn % 2 else {})


def _some(
    attack: Attack, name: str, strategy: Any, address: str, session: requests.Session, headers: dict[str, str], ids: dict[str, str]
) -> None:  # fmt: skip
    """A few cases of one operation; with `ids`, about things that exist."""

    @hypothesis.seed(zlib.crc32(f"{attack.seed} {name}".encode()))
    @hypothesis.settings(
        max_examples=_AT_ONCE, database=None, deadline=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(case=strategy)
    def ask(case: schemathesis.Case[Any]) -> None:
        if isinstance(case.path_parameters, dict):
            case.path_parameters |= {one: ids[one] for one in case.path_parameters if one in ids}
        attack.cases += 1
        try:
            answer = case.call(base_url=address, headers=headers, session=session, timeout=60)
        except requests.exceptions.RequestException as error:
            attack.expect(False, name, f"no whole answer: {error}", f"{case.method} {case.formatted_path} {case.query}")
            return
        answered = f"{answer.status_code // 100}xx"
        attack.figures[answered] = attack.figures.get(answered, 0) + 1
        sent = case.as_curl_command(headers={"Authorization": "Bearer TOKEN"}, base_url=address)
        try:
            # With `fields`, items have only these; the description is of whole ones.
            whole = "fields" not in (case.query or {})
            case.validate_response(
                answer, checks=[one for one in CHECKS if whole or one is not response_schema_conformance]
            )
        except FailureGroup as group:
            attack.expect(False, name, "; ".join(str(one) for one in group.exceptions), sent)
        text = answer.content[:200_000].decode("utf-8", "replace")
        leaks = [leak for leak in LEAKS if leak in text]
        attack.expect(not leaks, name, f"the answer holds {leaks}", sent)
        if not headers and case.operation.definition.raw.get("security") != []:
            attack.expect(answer.status_code >= 400, name, f"{answer.status_code} without a token", sent)

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        return
