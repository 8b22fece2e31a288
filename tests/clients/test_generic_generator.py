"""A client that openapi-python-client, a generator for any API, makes of openapi.json."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.api.shop import Shop, item
from tests.clients.conftest import Address

ROOT = Path(__file__).resolve().parents[2]
GENERATOR = ".venv/client-generator"

PROGRAM = """
import importlib, json, pkgutil, sys
import made
from made import AuthenticatedClient
from made.api.catalog import list_products
from made.api.stores import list_stores
from made.models import ProblemDetails

modules = [importlib.import_module(one.name) for one in pkgutil.walk_packages(made.__path__, "made.")]
client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
stores = list_stores.sync(client=client)
products = list_products.sync(client=client, store=[stores.items[0].id], price_max=20.0)
refused = list_stores.sync(client=client, miles=5)
assert isinstance(refused, ProblemDetails), refused
json.dump(
    {
        "modules": len(modules),
        "stores": [store.name for store in stores.items],
        "products": [[product.name, product.price] for product in products.items],
        "refused": refused.errors[0].parameter,
    },
    sys.stdout,
)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_generated_client_has_no_gaps_and_works(shop: Shop, address: Address, tmp_path: Path) -> None:
    plain = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    make = ["make", "--no-print-directory", f"PYTHON={sys.executable}", f"{GENERATOR}/.ready"]
    await asyncio.to_thread(subprocess.run, make, cwd=ROOT, env=plain, check=True)
    programs = ROOT / GENERATOR / "bin"
    # It formats what it made with the ruff that it finds there.
    env = plain | {"PATH": f"{programs}{os.pathsep}{plain['PATH']}"}

    command = [programs / "openapi-python-client", "generate", "--path", ROOT / "openapi.json", "--meta", "none",
               "--output-path", tmp_path / "made", "--fail-on-warning"]  # fmt: skip
    made = await asyncio.to_thread(subprocess.run, command, env=env, capture_output=True, text=True, timeout=300)
    output = made.stdout + made.stderr
    assert made.returncode == 0, output
    assert "warning" not in output.lower(), output
    assert "unable" not in output.lower(), output

    store = await shop.store("green-leaf", state="NM")
    menu = [item("a", "Apple", options=[("1/8oz", "19.50", 5)]), item("b", "Berry", options=[("1g", 21, 1)])]
    await shop.crawl(store, 1, menu)
    program = [programs / "python", "-c", PROGRAM, address.url, address.token]
    ran = await asyncio.to_thread(
        subprocess.run, program, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.pop("modules") > 500
    assert found == {"stores": ["Green-Leaf"], "products": [["Apple", 19.5]], "refused": "miles"}
