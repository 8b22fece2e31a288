"""Transforms per second of one core: our own beside sharp and Pillow, on the same pictures.

    python bench/images.py [--json] [--format webp|avif] [--rounds 5] [--times 20] [--side 1200] [--width 200] [--peers FOLDER]

The job, the same for everybody: a picture (JPEG, PNG and WebP, in turn) in memory becomes a WebP (quality 80) or AVIF (50) of
`--width` pixels, effort 2, in memory. Peers are fetched into a folder of their own, once: sharp by npm, Pillow by pip; one that
cannot be had is left out and said so. Rounds alternate between the contestants; figures are medians over the rounds, in
milliseconds of processor time, all threads of a contestant together, so that what else the machine does matters little.

    vs_sharp, vs_pillow    our rate over theirs, over the three formats together
    two_cores_vs_one       images per second of the server with two threads on two cores over those with one thread on one core; files
                           are found, made and kept, as for visitors, eight at once
    loops_vs_one           the same of an empty loop in two processes: what the second core adds on this machine
    cached_vs_transform    time of an answer that was kept on disk over that of one that is made, both through the whole of
                           `Pictures.find` and `Pictures.data`
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from menuwatch.images import vips
from menuwatch.images.cache import ImageCache
from menuwatch.images.files import ImageFiles
from menuwatch.images.params import Format, Params
from menuwatch.images.serving import ImageServer
from menuwatch.images.transform import transform

SHARP = """
const sharp = require("sharp"), fs = require("fs");
sharp.cache(false); sharp.concurrency(1);
const [, , format, width, times, ...files] = process.argv;
(async () => {
  const found = {};
  for (const file of files) {
    const source = fs.readFileSync(file);
    const once = () => sharp(source).resize(Number(width))[format]({ quality: format === "avif" ? 50 : 80, effort: 2 }).toBuffer();
    for (let i = 0; i < 3; i++) await once();
    const before = process.cpuUsage();
    for (let i = 0; i < Number(times); i++) await once();
    const used = process.cpuUsage(before);
    found[file] = (used.user + used.system) / 1e3 / Number(times);
  }
  console.log(JSON.stringify(found));
})();
"""

PILLOW = """
import io, json, sys, time
from PIL import Image
format, width, times, *files = sys.argv[1:]
width, times, found = int(width), int(times), {}
for file in files:
    source = open(file, "rb").read()
    def once():
        with Image.open(io.BytesIO(source)) as image:
            size = width, max(round(image.height * width / image.width), 1)
            image.draft("RGB", size)
            out = io.BytesIO()
            how = {"quality": 80, "method": 2} if format == "webp" else {"quality": 50, "speed": 8}
            image.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(out, format, **how)
    for _ in range(3): once()
    before = time.process_time()
    for _ in range(times): once()
    found[file] = (time.process_time() - before) * 1000 / times
print(json.dumps(found))
"""


def say(text: str) -> None:
    """Progress, which is no result."""
    print(text, file=sys.stderr, flush=True)


def pictures_of(folder: Path, side: int) -> list[Path]:
    """One photograph-like picture in three formats: soft shapes with grain."""
    lib = vips.lib()
    bands = [lib.Image.perlin(side, side, cell_size=side // 6, uchar=True, seed=seed) for seed in (1, 2, 3)]
    image = bands[0].bandjoin(bands[1:])
    grain = lib.Image.gaussnoise(side, side, mean=0, sigma=6, seed=7)
    image = (image + grain).cast("uchar").copy(interpretation="srgb")
    found = []
    for suffix, options in ((".jpg", {"Q": 90}), (".png", {}), (".webp", {"Q": 90})):
        path = folder / f"picture{suffix}"
        path.write_bytes(image.write_to_buffer(suffix, **options))
        found.append(path)
    return found


def ours(files: list[Path], target: Format, width: int, times: int) -> dict[str, float]:
    """Milliseconds of processor time for each file."""
    found = {}
    for file in files:
        source = file.read_bytes()
        for _ in range(3):
            transform(source, Params(w=width), target)
        before = time.process_time()
        for _ in range(times):
            transform(source, Params(w=width), target)
        found[str(file)] = (time.process_time() - before) * 1000 / times
    return found


def peers(folder: Path) -> dict[str, list[str]]:
    """Name → command, to be followed by width, times and files."""
    found: dict[str, list[str]] = {}
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        home = folder / "sharp"
        script = home / "bench.js"
        if not (home / "node_modules" / "sharp").is_dir():
            home.mkdir(parents=True, exist_ok=True)
            (home / "package.json").write_text('{"private": true}')
            done = subprocess.run([npm, "install", "--silent", "sharp"], cwd=home, capture_output=True, text=True)
            if done.returncode:
                say(f"sharp cannot be had: {done.stderr.strip()[-300:]}")
        if (home / "node_modules" / "sharp").is_dir():
            script.write_text(SHARP)
            found["sharp"] = [node, str(script)]
    else:
        say("sharp is left out: there is no node with npm")
    python = folder / "pillow" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "pillow")], check=True)
        done = subprocess.run([str(python), "-m", "pip", "install", "-qq", "pillow"], capture_output=True, text=True)
        if done.returncode:
            say(f"Pillow cannot be had: {done.stderr.strip()[-300:]}")
    if subprocess.run([str(python), "-c", "import PIL"], capture_output=True).returncode == 0:
        found["pillow"] = [str(python), "-c", PILLOW]
    return found


async def cached(files: list[Path], target: Format, width: int, times: int, folder: Path) -> tuple[float, float]:
    """(milliseconds of an answer that is made, of one that was kept)."""
    storage = ImageFiles(folder / "storage")
    made, kept = [], []
    for number, file in enumerate(files):
        path = f"products/az/shop/brand/{number}/image-{number:032x}{file.suffix}"
        storage.store(path, file.read_bytes())
        pictures = ImageServer(storage, ImageCache(folder / f"cache{number}", 100_000_000), threads=1)

        async def ask(size: int, pictures: ImageServer = pictures, path: str = path) -> float:
            before = time.perf_counter()
            await pictures.data(await pictures.find(path, Params(w=size), f"image/{target}"))
            return (time.perf_counter() - before) * 1000

        await ask(width - 1)
        made += [await ask(width + n) for n in range(times)]
        kept += [await ask(width + n) for _ in range(5) for n in range(times)]
    return statistics.median(made), statistics.median(kept)


async def per_second(files: list[Path], target: Format, width: int, times: int, folder: Path, cores: int) -> float:
    """Images that the server makes per second, in as many threads as it may use cores."""
    storage = ImageFiles(folder / "storage")
    paths = []
    for number, file in enumerate(files):
        paths.append(f"products/az/shop/brand/{number}/image-{number:032x}{file.suffix}")
        storage.store(paths[-1], file.read_bytes())
    pictures = ImageServer(storage, ImageCache(folder / "cache", 100_000_000), threads=cores)
    at_once = asyncio.Semaphore(8)

    async def ask(path: str, size: int) -> None:
        async with at_once:
            await pictures.data(await pictures.find(path, Params(w=size), f"image/{target}"))

    await asyncio.gather(*(ask(path, width - 1) for path in paths))
    started = time.perf_counter()
    await asyncio.gather(*(ask(path, width + n) for n in range(times) for path in paths))
    return times * len(paths) / (time.perf_counter() - started)


LOOP = "import time\nend, n = time.perf_counter() + 2, 0\nwhile time.perf_counter() < end:\n n += 1\nprint(n)"


def loops(cores: int) -> int:
    """Turns of an empty loop in two seconds, in one process for each core."""
    running = [subprocess.Popen([sys.executable, "-c", LOOP], stdout=subprocess.PIPE) for _ in range(cores)]
    return sum(int(process.communicate()[0]) for process in running)


def scaling(files: list[Path], options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """What a second core adds, medians of alternating rounds."""
    every, rates = os.sched_getaffinity(0), []
    used = sorted(every)[-2:]
    if len(used) < 2:
        return {}
    for number in range(options.rounds):
        row = []
        for cores in (1, 2):
            os.sched_setaffinity(0, used[:cores])
            place = folder / f"cores{number}-{cores}"
            row.append(asyncio.run(per_second(files, options.format, options.width, options.times, place, cores)))
            row.append(loops(cores))
        rates.append(row)
    os.sched_setaffinity(0, every)
    one, one_loop, two, two_loops = (statistics.median(column) for column in zip(*rates, strict=True))
    return {
        "images_per_second": round(one, 1), "images_per_second_two_cores": round(two, 1),
        "two_cores_vs_one": round(two / one, 2), "loops_vs_one": round(two_loops / one_loop, 2),
    }  # fmt: skip


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All figures."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(every)})
    with tempfile.TemporaryDirectory(prefix="menuwatch-bench-") as name:
        folder = Path(name)
        files = pictures_of(folder, options.side)
        found: dict[str, list[dict[str, float]]] = {"ours": []}
        commands = peers(options.peers)
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            found["ours"].append(ours(files, options.format, options.width, options.times))
            for peer, command in commands.items():
                done = subprocess.run(
                    [*command, options.format, str(options.width), str(options.times), *map(str, files)],
                    check=True, capture_output=True, text=True,
                )  # fmt: skip
                found.setdefault(peer, []).append(json.loads(done.stdout))
        made, kept = asyncio.run(cached(files, options.format, options.width, options.times, folder))
        os.sched_setaffinity(0, every)
        scaled = scaling(files, options, folder)
        figures: dict[str, Any] = {}
        for who, rounds in found.items():
            for file in files:
                figures[f"{who}_{file.suffix[1:]}_ms"] = round(statistics.median(row[str(file)] for row in rounds), 2)
    totals = {who: sum(figures[f"{who}_{kind}_ms"] for kind in ("jpg", "png", "webp")) for who in found}
    figures |= {f"vs_{who}": round(total / totals["ours"], 3) for who, total in totals.items() if who != "ours"}
    figures |= scaled
    figures |= {"made_ms": round(made, 2), "kept_ms": round(kept, 2), "cached_vs_transform": round(kept / made, 3)}
    figures["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    return figures


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description="Transforms per second beside sharp and Pillow.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--format", choices=["webp", "avif"], default="webp")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--side", type=int, default=1200)
    parser.add_argument("--width", type=int, default=200)
    parser.add_argument("--peers", type=Path, default=Path(tempfile.gettempdir()) / "menuwatch-bench-images")
    figures = measure(parser.parse_args())
    if "--json" in sys.argv:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
