"""The documentation says what is there: every setting, every command."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from menuwatch.cli.main import app
from menuwatch.config.environment import describe
from menuwatch.config.platforms import PlatformSettings
from menuwatch.config.settings import variables
from menuwatch.fetch import retry_policy as reaction
from menuwatch.mcp import reference as ai_tools
from menuwatch.platforms.registry import built_in, with_settings

ROOT = Path(__file__).resolve().parents[2]


def _table(name: str) -> dict[str, list[str]]:
    text = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    rows = [  # a cell that is code from end to end is compared without its quotes
        [re.sub(r"^`([^`]*)`$", r"\1", cell.strip()) for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    return {row[0]: row[1:] for row in rows}


def test_every_setting_is_documented_with_its_default() -> None:
    documented = _table("settings.md")
    settings = [*variables(), *describe(PlatformSettings, "<PLATFORM>_")]
    assert list(documented) == [variable for variable, _, _ in settings]
    for variable, default, meaning in settings:
        assert documented[variable] == [default, meaning]


def test_every_platform_with_settings_is_named() -> None:
    text = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    section = text.partition("\n## Platforms\n")[2]
    named = re.findall(r"`([A-Z][A-Z0-9_]*)`", section.partition("\n|")[0])
    expected = [adapter.name.upper() for adapter in built_in() if adapter in with_settings()]
    assert named == expected, "the first paragraph of docs/reference/settings.md, Platforms, lists them in this order"


def _commands() -> set[str]:
    group = typer.main.get_command(app)
    names = set()
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        names |= {f"{name} {sub}" for sub in inner} if inner else {name}
    return names


def test_every_command_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## `menuwatch ([a-z -]+)`", text, re.MULTILINE)) == _commands()


def test_the_reference_of_tools_for_ai_clients_is_that_of_the_program() -> None:
    text = (ROOT / "docs" / "reference" / "ai-tools.md").read_text(encoding="utf-8")
    assert text == ai_tools.page(), "run: python -m menuwatch.mcp.reference docs/reference/ai-tools.md"


def test_every_verdict_is_explained_as_it_is_acted_on() -> None:
    text = (ROOT / "docs" / "explanation" / "politeness.md").read_text(encoding="utf-8")
    lines = ["| " + " | ".join((f"`{row[0]}`", *row[1:])) + " |" for row in reaction.rows()]
    assert "| " + " | ".join(reaction.COLUMNS) + " |" in text
    assert [line for line in lines if line not in text] == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http://", "https://")) and not (page.parent / target).exists():
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert broken == []
