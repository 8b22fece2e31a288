"""Where an installation lies, and how its server is reached and logged in to."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from menuwatch.core import setting_values as values
from menuwatch.core.environment import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundSettings:
    """What every process has: data, the server's address, logins, logs."""

    home: Path = setting(
        "MENUWATCH_HOME",
        lambda: Path(".menuwatch"),
        values.path,
        "Data folder: embedded database and storage live in it.",
    )
    database_url: str | None = setting(
        "DATABASE_URL", None, str, "PostgreSQL 15 or newer, as a URL. Unset: an embedded server in the data folder."
    )
    storage_path: Path | None = setting(
        "STORAGE_PATH", None, values.path, "Root of archive and images. Unset: `storage` in the data folder."
    )
    archive_level: int = setting(
        "ARCHIVE_LEVEL",
        2,
        values.whole(1, 9),
        "How tightly archived answers are compressed: 1 is fastest, 9 smallest; up to 3 costs little time.",
    )
    host: str = setting("HOST", "127.0.0.1", str, "Address that the server listens on.")
    port: int = setting("PORT", 8640, values.whole(0, 65535), "Port that the server listens on; 0 takes a free one.")
    public_url: str | None = setting(
        "PUBLIC_URL",
        None,
        values.public_url,
        "Address at which people reach the server, with the path below which it lies, if any. Unset: `http://HOST:PORT`. With "
        "https, logins are kept to it.",
        example="https://example.org/menus",
    )
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...] = setting(
        "TRUSTED_PROXIES",
        (),
        values.networks,
        "Addresses and networks of proxies in front, comma-separated, whose X-Forwarded-For is believed. Unset: nobody's.",
        example="127.0.0.1,10.0.0.0/8",
    )
    session_hours: float = setting(
        "SESSION_HOURS",
        12.0,
        values.number(0.01, 720, "hours"),
        "Hours without a request after which a login ends.",
    )
    session_days: float = setting(
        "SESSION_DAYS",
        14.0,
        values.number(0.01, 365, "days"),
        "Days after which a login ends in any case.",
    )
    password_memory_kib: int = setting(
        "PASSWORD_MEMORY_KIB",
        65_536,
        values.whole(1024, 4_194_304, "KiB"),
        "Memory that hashing one password takes, KiB: the more, the harder a stolen hash is to guess. Two are hashed at a time.",
    )
    geoip_database: Path | None = setting(
        "GEOIP_DATABASE",
        None,
        values.path,
        "Database of where addresses are, MaxMind format or IP2Location BIN, for figures of visitors. Unset: nobody is placed.",
    )
    log_format: str = setting("LOG_FORMAT", "console", str, "`console` for people, `json` for machines.")
    log_level: str = setting("LOG_LEVEL", "info", str, "`debug`, `info`, `warning` or `error`.")
