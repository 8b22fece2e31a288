"""The description of the API: what lies in the repository is what the code says, and people can read it offline."""

from __future__ import annotations

import re
from html import escape

from menuwatch.api import openapi
from menuwatch.api.app import bare_app
from menuwatch.api.problems import Problem
from menuwatch.api.routes import health, payloads, products, stores, tasks
from tests.api.shop import Shop
from tests.conftest import ROOT


def test_the_file_is_what_the_code_says() -> None:
    file = ROOT / "openapi.json"
    said = openapi.text(bare_app().openapi())
    assert file.read_text(encoding="utf-8") == said, (
        "run `python -m menuwatch.api.export_openapi` and commit openapi.json"
    )


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
        # A field whose name says it all has no description; one that has says more than the name.
        undescribed += [
            f"{name}.{field}"
            for field, spec in schema.get("properties", {}).items()
            if spec.get("description", "none")
            in ("", "Its name.", "Done.", "Rows.", "By name.", "What.", "When.", "All of them.")
        ]
    assert undescribed == []
    assert len(ids) == len(set(ids))
    for module in (health, payloads, products, stores, tasks):
        for route in module.router.routes:
            assert route.name in ids, "operation ids are the functions' names"


async def test_the_viewer_loads_its_own_files_alone(shop: Shop) -> None:
    page = await shop.http.get("/docs")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<style|<script>|\son\w+=|\sstyle=|https?:|//", page.text)
    files = re.findall(r'(?:src|href)="(docs/static/[^"]+)"', page.text)
    assert [name.rsplit("/", 1)[1] for name in files] == ["docs.css", "docs.js"]
    for name in files:
        file = await shop.http.get(f"/{name}")
        assert (file.status_code, file.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    assert (await shop.http.get("/docs/static/x/nothing.js")).status_code == 404
    assert (await shop.http.get("/openapi.json")).json() == shop.description


async def test_every_type_of_problem_has_a_page(shop: Shop) -> None:
    for kind in Problem.__subclasses__():
        page = await shop.http.get(f"/problems/{kind.slug()}")
        assert page.status_code == 200
        assert f"<h1>{escape(kind.title)}</h1>" in page.text
        assert "<style" not in page.text
        (style,) = re.findall(r'href="\.\./(docs/static/[^"]+)"', page.text)
        assert (await shop.http.get(f"/{style}")).status_code == 200
