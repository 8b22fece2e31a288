"""A server as it is started: it counts who looks at its site, and its log and its database know nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import psycopg

from tests.geo import mmdb_file
from tests.visitors.conftest import BROWSER, CHROME, LONDON

SERVER = [sys.executable, "-m", "menuwatch.cli.main", "server", "--port", "0"]


def _environment(database_url: str, home: Path, geo: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "MENUWATCH_HOME": str(home),
        "PYTHONUNBUFFERED": "1",
        "GEOIP_DATABASE": str(geo),
        "TRUSTED_PROXIES": "127.0.0.1",
    }


def test_a_view_is_written_at_the_latest_when_the_server_ends(database_url: str, tmp_path: Path) -> None:
    geo = tmp_path / "geo"
    mmdb_file.write(geo, {"81.2.69.0/24": mmdb_file.city("GB", "England", "London")})
    server = subprocess.Popen(
        SERVER,
        env=_environment(database_url, tmp_path, geo),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stderr is not None
        said = []
        for line in server.stderr:
            said.append(line)
            if "listening on" in line:
                break
        address = said[-1].partition("listening on ")[2].split()[0]
        answer = httpx.get(address + "/", headers={**BROWSER, "X-Forwarded-For": f"8.8.8.8, {LONDON}"}, trust_env=False)
        assert answer.status_code == 200, answer.text
        assert "set-cookie" not in answer.headers
        httpx.get(address + "/", headers={**BROWSER, "DNT": "1"}, trust_env=False)
        httpx.get(address + "/healthz", headers=BROWSER, trust_env=False)
    finally:
        server.terminate()
        _, rest = server.communicate(timeout=90)
    assert server.returncode == 0
    log = "".join(said) + rest
    assert LONDON not in log
    assert CHROME not in log
    with psycopg.connect(database_url) as conn:
        assert conn.execute(
            "SELECT country, region, city, kind, views, uniques, arrivals FROM visitor_days"
        ).fetchall() == [("GB", "England", "London", "home", 1, 1, 1)]


def test_a_database_of_places_that_cannot_be_used_stops_the_start(database_url: str, tmp_path: Path) -> None:
    geo = tmp_path / "GeoLite2-City.tar.gz"
    geo.write_bytes(b"\x1f\x8b\x08\x00")
    found = subprocess.run(
        SERVER, env=_environment(database_url, tmp_path, geo), capture_output=True, text=True, timeout=60
    )
    assert found.returncode == 2
    line = found.stderr.splitlines()[-1]
    assert line.startswith(f"menuwatch: invalid GEOIP_DATABASE='{geo}': it is packed (gzip): unpack it")
