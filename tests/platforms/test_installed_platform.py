"""A platform in a package of its own: written by `platforms new`, installed by pip without an index, known to every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from menuwatch.core.errors import Refused
from menuwatch.platforms.new_package import write_package

_MAIN = "from menuwatch.cli.main import main; main()"


@dataclass
class Installation:
    """Menuwatch with the packages in `site` beside its own."""

    database_url: str
    folder: Path

    @property
    def site(self) -> Path:
        return self.folder / "site"

    def install(self, package: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
        offline = ["--no-deps", "--no-build-isolation", "--upgrade", "--target", str(self.site), str(package)]
        done = subprocess.run([*pip, *offline], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A process of its own: only a new one sees what was installed."""
        env = {
            **os.environ,
            "PYTHONPATH": str(self.site),
            "DATABASE_URL": self.database_url,
            "MENUWATCH_HOME": str(self.folder / "home"),
        }
        command = [sys.executable, "-c", _MAIN, *words]
        return subprocess.run(
            command, env=env, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False
        )

    def json(self, *words: str, code: int = 0) -> object:
        done = self.run(*words, "--json")
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def installation(database_url: str, tmp_path: Path) -> Installation:
    return Installation(database_url, tmp_path)


def listed(installation: Installation) -> dict[str, dict[str, object]]:
    rows = installation.json("platforms", "list")
    assert isinstance(rows, list)
    return {row["platform"]: row for row in rows}


@pytest.mark.slow
def test_a_package_is_installed_and_used(installation: Installation) -> None:
    made = installation.run("platforms", "new", "acme_menus")
    assert made.returncode == 0, made.stderr
    root = installation.folder / "menuwatch-acme_menus"
    own_tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert own_tests.returncode == 0, own_tests.stdout
    assert "skipped" not in own_tests.stdout

    installation.install(root)
    sample = str(root / "tests" / "sample.json")
    assert installation.run("migrate").returncode == 0
    row = listed(installation)["acme_menus"]
    assert (row["package"], row["stores"], row["normalizer_version"], row["problem"]) == (
        "menuwatch-acme_menus 0.1.0",
        0,
        1,
        None,
    )
    report = installation.json("platforms", "check", "acme_menus", sample)
    assert isinstance(report, dict)
    assert (report["items"], report["products"], report["dropped"], report["unread"]) == (3, 3, [], [])
    assert {field["use"] for field in report["fields"]} == {"used", "kept", "ignored"}
    replayed = installation.json("replay", sample)
    assert isinstance(replayed, dict)
    assert (replayed["products"], replayed["new"]) == (3, 3)
    again = installation.json("replay", sample)
    assert isinstance(again, dict)
    assert (again["products"], again["new"], again["changed"]) == (3, 0, 0)
    assert listed(installation)["acme_menus"]["stores"] == 1
    config = installation.run("config", "--json").stdout
    assert "ACME_MENUS_BASE_URL" in config

    # A package that cannot be loaded: its platform is out of order, and says why; all others work.
    (root / "src" / "menuwatch_acme_menus" / "adapter.py").write_text("import no_such_module\n", encoding="utf-8")
    installation.install(root)
    row = listed(installation)["acme_menus"]
    assert (row["stores"], row["requested"]) == (1, False)
    assert "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'" in str(row["problem"])
    assert listed(installation)["dutchie"]["problem"] is None
    refused = installation.run("platforms", "check", "acme_menus", sample)
    assert refused.returncode == 2
    assert "platform 'acme_menus' of the package menuwatch-acme_menus 0.1.0 cannot be loaded" in refused.stderr
    stores = installation.run("stores", "list", "--json")
    assert stores.returncode == 0
    assert [store["platform"] for store in json.loads(stores.stdout)] == ["acme_menus"]
    assert "its stores are not crawled" in stores.stderr


@pytest.mark.parametrize(
    "name", ["", "Acme", "1acme", "acme-menus", "acme__menus", "_acme", "../acme", "acme/x", "class", "x" * 41, "ä"]
)
def test_invalid_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="use lower-case letters"):
        write_package(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_known_names_and_folders(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is a platform 'weedmaps' already"):
        write_package("weedmaps", tmp_path)
    (tmp_path / "menuwatch-acme").mkdir()
    with pytest.raises(Refused, match="exists already"):
        write_package("acme", tmp_path)


def test_the_package_keeps_the_style_of_this_project(tmp_path: Path) -> None:
    write_package("acme_menus", tmp_path)
    root = Path(__file__).resolve().parents[2]
    for words in (
        ["check", "--isolated", "--select", "E,F,B,UP,RUF", "--line-length", "135"],
        ["format", "--check", "--isolated", "--line-length", "120"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "--quiet", str(tmp_path)],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
