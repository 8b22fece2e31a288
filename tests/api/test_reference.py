"""The description of the API: what lies in the repository is what the code says, and people can read it offline."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from menuwatch.api import openapi, reference
from menuwatch.api.app import bare_app
from menuwatch.api.routes import health, payloads, products, stores, tasks
from tests.api.shop import Shop
from tests.conftest import ROOT


def test_the_file_is_what_the_code_says() -> None:
    file = ROOT / "openapi.json"
    said = openapi.text(bare_app().openapi())
    assert file.read_text(encoding="utf-8") == said, "run `python -m menuwatch.api.describe` and commit openapi.json"


def test_everything_is_described() -> None:
    document = bare_app().openapi()
    undescribed = []
    ids = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            ids.append(operation["operationId"])
            for key in ("summary", "description", "tags"):
                if not operation.get(key):
                    undescribed.append(f"{method} {path}: {key}")
            undescribed += [
                f"{method} {path}: {p['name']}" for p in operation.get("parameters", ()) if not p.get("description")
            ]
            assert "default" in operation["responses"] or path in ("/healthz", "/readyz", "/metrics")
            assert "422" not in operation["responses"], "problems have one form"
    for name, schema in document["components"]["schemas"].items():
        if not schema.get("description"):
            undescribed.append(name)
        undescribed += [
            f"{name}.{field}" for field, spec in schema.get("properties", {}).items() if not spec.get("description")
        ]
    assert undescribed == []
    assert len(ids) == len(set(ids))
    for module in (health, payloads, products, stores, tasks):
        for route in module.router.routes:
            assert route.name in ids, "operation ids are the functions' names"


class _Page(HTMLParser):
    VOID = frozenset({"meta", "link", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src"):
                self.targets.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"


async def test_the_reference_page_loads_nothing_and_leads_nowhere_wrong(shop: Shop) -> None:
    answer = await shop.http.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    page = _Page()
    page.feed(answer.text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert not [t for t in page.targets if t.startswith(("http:", "https:", "//"))]
    assert not re.search(r"@import|url\(", answer.text)
    for target in page.targets:
        if target.startswith("#"):
            assert target[1:] in page.ids, target
        elif target.startswith("/"):
            assert (await shop.http.get(target)).status_code == 200, target
    for methods in shop.description["paths"].values():
        for operation in methods.values():
            assert operation["operationId"] in page.ids
    assert (await shop.http.get("/openapi.json")).json() == shop.description


def test_text_in_the_description_cannot_become_markup() -> None:
    document = bare_app().openapi()
    document["paths"]["/healthz"]["get"]["summary"] = "<script>alert(1)</script> & `<b>`"
    page = reference.render(document)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; <code>&lt;b&gt;</code>" in page
