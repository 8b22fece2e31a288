"""Hostile files through `menuwatch replay`, mutated pictures, and replaced archive files; memory and processor time are measured."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import psutil

from menuwatch.config.settings import Settings
from menuwatch.pipeline.recording_reader import LARGEST_FILE
from tests.attack import pictures
from tests.attack.archives import GOOD, archive_damages, hostile
from tests.attack.installation import Installation
from tests.attack.report import Attack
from tests.chaos.worker_processes import ROOT

MEMORY = 4 * Settings().fetch_max_bytes
"""Bytes that one answer may cost beyond what the process needs anyway."""
LARGER = frozenset({"zeros.json.gz", "bomb.tar.gz"})
"""More than an answer: files of many menus, which have a limit of their own."""
PICTURE_MEMORY = 700_000_000
"""The same for one picture: 50 million pixels of four bytes, as decoded and as converted, and the encoder's share."""
SECONDS = 60.0
"""Processor time that one file may cost."""
_LINE = re.compile(
    r"menuwatch: |\d{4}-\d\d-\d\dT\S+ \[warning  ?\] |\d[\d,]* |over all menus$|after the last one$|  |\(?no id\)?"
)
"""How a line begins that `replay` prints."""
_ESCAPES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(slots=True)
class Cost:
    """What a process took: memory at its peak in bytes, processor time in seconds, and its exit code (None: ended by us)."""

    peak: int = 0
    cpu: float = 0.0
    code: int | None = None


def watched(process: subprocess.Popen[bytes], *, peak: int, cpu: float, seconds: float) -> Cost:
    """Waits for the process, and ends it where it takes far more than is allowed: the machine has other work."""
    cost, deadline = Cost(), time.monotonic() + seconds
    seen = psutil.Process(process.pid)
    while (code := process.poll()) is None:
        with contextlib.suppress(psutil.Error, OSError):
            status = Path(f"/proc/{process.pid}/status")
            # The kernel's own peak, where it says it: a moment between two looks is not missed.
            said = status.read_text().partition("VmHWM:")[2].split() if status.exists() else []
            cost.peak = max(cost.peak, int(said[0]) * 1024 if said else seen.memory_info().rss)
            cost.cpu = max(cost.cpu, sum(seen.cpu_times()[:2]))
        if cost.peak > 2 * peak or cost.cpu > 1.5 * cpu or time.monotonic() > deadline:
            process.kill()
            process.wait()
            return cost
        time.sleep(0.02)
    cost.code = code
    return cost


def run(attack: Attack) -> None:
    with attack.installation() as target:
        _replays(attack, target)
        _archive(attack, target)
    _pictures(attack)


def _replays(attack: Attack, target: Installation) -> None:
    folder = attack.folder / attack.part / "outer" / "inner"
    folder.mkdir(parents=True)
    usual = 0
    chosen = [(name, make) for name, make in hostile(attack.chance) if attack.begins(f"replay {name}")]
    for name, make in [("usual.json", GOOD.__bytes__), *chosen] if chosen else ():
        case, content = f"replay {name}", make()
        (folder / name).write_bytes(content)
        before = _outside(folder)
        output = attack.folder / attack.part / f"{name}.out"
        process = target.launch(
            "replay", name, "--store", "hostile", output=output, cwd=folder, environ={"PYTHONPATH": str(ROOT)}
        )
        cost = watched(process, peak=usual + MEMORY if usual else 2**33, cpu=SECONDS, seconds=4 * SECONDS)
        usual = usual or cost.peak
        said = output.read_text(errors="replace")
        sent = f"menuwatch replay {name} ({len(content):,} bytes)"
        figures = f"{(cost.peak - usual) / 1e6:,.0f} MB more than usual and {cost.cpu:.0f} s of processor time"
        most = LARGEST_FILE * 1.1 if name in LARGER else MEMORY
        held = cost.peak - usual <= most and cost.cpu <= SECONDS and cost.code is not None
        attack.expect(held, case, f"{figures}{'' if cost.code is not None else ', then ended by us'}", sent)
        if cost.code is not None:
            attack.expect(cost.code in (0, 1, 2), case, f"exit code {cost.code}: {said[-300:]}", sent)
        lines = said.splitlines()
        odd = [line for line in lines if not _LINE.match(line)]
        attack.expect(not odd, case, f"not a line of ours: {odd[:3]}", sent)
        attack.expect(not _ESCAPES.search(said.replace("\n", "")), case, f"control characters: {said[:200]!r}", sent)
        attack.expect(_outside(folder) == before, case, "there are files outside of the folder now", sent)
        (folder / name).unlink()
        grown = max(cost.peak - usual, 0) // 1_000_000
        attack.figures["replay MB"] = max(attack.figures.get("replay MB", 0), grown)


def _outside(folder: Path) -> set[Path]:
    """Files that a replay must not add to."""
    return {*folder.parent.rglob("*"), *folder.parent.parent.glob("*escaped*"), *Path("/tmp").glob("*escaped*")}


def _archive(attack: Attack, target: Installation) -> None:
    """Each kind of damage to the first file of a store that has several: what the API, `verify` and `rebuild` make of it."""
    ((payload, path, slug, others),) = target.rows(
        "SELECT min(p.id), min(p.path), min(d.slug), count(*) FROM raw_crawl_payloads p JOIN dispensaries d ON d.id = p.dispensary_id"
        " WHERE d.slug <> 'hostile' AND p.status = 'ok' GROUP BY d.id ORDER BY count(*) DESC, d.id LIMIT 1"
    )
    file = target.home / "storage" / path
    good = file.read_bytes()
    ways: list[tuple[str, ...]] = [("verify",), ("rebuild", slug), ("rebuild", "--all")]
    for damage, content in archive_damages(file).items():
        case = f"archive file replaced by {damage}"
        if not attack.begins(case):
            continue
        file.write_bytes(content)
        grown = _read_over_api(attack, target, case, f"/api/payloads/{payload}/data", f"/admin/payloads/{payload}")
        attack.expect(grown <= MEMORY, case, f"GET /api/payloads/ID/data: the server grew by {grown / 1e6:,.0f} MB")
        for words in ways if damage == "garbage" else ways[:2]:
            output = attack.folder / attack.part / f"{damage} {words[-1]}.out"
            cost = watched(target.launch(*words, output=output), peak=2 * MEMORY, cpu=SECONDS, seconds=4 * SECONDS)
            said, command = output.read_text(errors="replace"), " ".join(words)
            attack.expect(
                cost.code == 1, case, f"{command}: exit code {cost.code}, {cost.peak / 1e6:,.0f} MB: {said[-300:]}"
            )
            attack.expect("Traceback" not in said, case, f"{command}: a trace: {said[-300:]}")
            if words[0] == "rebuild":
                named = Path(path).name in said.replace("\n", "")
                attack.expect(
                    named and said.count("\n") > 1, case, f"{command} names no file, or stops there: {said[-300:]}"
                )
        file.write_bytes(good)
    case = "archive file replaced by itself"
    if not attack.begins(case):
        return
    for words in ways:
        code, said = target.command(*words)
        attack.expect(code == 0, case, f"{' '.join(words)}: exit code {code}: {said[-300:]}")
    attack.figures["payloads of the damaged store"] = others


def _read_over_api(attack: Attack, target: Installation, case: str, *paths: str) -> int:
    """Bytes by which the server grew meanwhile."""
    assert target.process is not None
    server, stop, headers = psutil.Process(target.process.pid), Event(), target.token()
    before, peak = server.memory_info().rss, [0]

    def watch() -> None:
        while not stop.wait(0.01):
            peak[0] = max(peak[0], server.memory_info().rss)

    watching = Thread(target=watch)
    watching.start()
    for path in paths:
        answer = target.get(path, headers=headers, timeout=60.0)
        said = "no answer" if answer is None else f"{answer.status_code}: {answer.text[:200]}"
        # That the file is damaged is the answer as described; it is no fault of the server's that it cannot send it.
        described = answer is not None and (answer.status_code < 500 or "/problems/payload-damaged" in answer.text)
        attack.expect(described, case, f"GET {path}: {said}")
    stop.set()
    watching.join()
    return max(peak[0] - before, 0)


def _pictures(attack: Attack) -> None:
    """Mutations in one process after the other: one that dies names the picture that it died of."""
    source = pictures.sources()
    made = [f"picture {name}" for name, _ in pictures.made(source)]
    for name in made:
        if attack.only in name:
            _picture_child(attack, name, most=0)
    if not attack.only or any(attack.only.startswith(f"picture {kind}") for kind in source):
        _picture_child(attack, attack.only, most=5 * attack.most)


def _picture_child(attack: Attack, only: str, *, most: int) -> None:
    seconds = max(attack.deadline - time.monotonic(), 5.0)
    base = attack.folder / attack.part
    base.mkdir(parents=True, exist_ok=True)
    with (base / "pictures.out").open("w+b") as out, (base / "pictures.err").open("w+b") as err:
        words = [sys.executable, "-m", "tests.attack.pictures", str(attack.seed), str(seconds), str(most), only]
        process = subprocess.Popen(words, cwd=ROOT, stdout=out, stderr=err)
        cost = watched(process, peak=PICTURE_MEMORY + 200_000_000, cpu=seconds + SECONDS, seconds=seconds + 2 * SECONDS)
    lines = (base / "pictures.out").read_text().splitlines()
    last = [
        line for line in (base / "pictures.err").read_text(errors="replace").splitlines() if line.startswith("picture ")
    ]
    for line in lines:
        found = json.loads(line)
        if "case" in found:
            attack.expect(False, found["case"], found["wrong"], f"{found['bytes']} bytes, {found['hex']}")
        else:
            attack.cases += found["cases"]
            attack.figures["pictures"] = attack.figures.get("pictures", 0) + found["cases"]
    case = last[-1] if last else "pictures"
    attack.expect(cost.code == 0, case, f"the process ended with {cost.code}, at {cost.peak / 1e6:,.0f} MB")
    attack.expect(cost.peak <= PICTURE_MEMORY + 150_000_000, case, f"{cost.peak / 1e6:,.0f} MB at the peak")
    attack.figures["picture MB"] = max(attack.figures.get("picture MB", 0), cost.peak // 1_000_000)
