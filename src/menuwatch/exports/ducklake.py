"""A DuckLake catalog of Parquet files that exist: one database file, by which DuckDB finds all files of each table.

The paths in it are relative to the dataset, so that it can be copied: see docs/how-to/open-data.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from menuwatch.exports.datapackage import DataFile, Texts, sql_type
from menuwatch.exports.dataset import DATASET

INSTALL = "pip install 'menuwatch[ducklake]'"


def is_installed() -> bool:
    """Whether DuckDB is there, and the extension for its version."""
    return _extension() is not None


def connect() -> Any:
    """A DuckDB connection in memory with the extension, which is loaded from where it is installed."""
    import duckdb

    # Nothing is downloaded, and nothing is taken from a folder of the user.
    db = duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False})
    db.execute(f"LOAD {_text(str(_extension()))}")
    return db


def _extension() -> Path | None:
    try:
        import duckdb
        import duckdb_extension_ducklake  # type: ignore[import-untyped]
    except ImportError:
        return None
    package = Path(duckdb_extension_ducklake.__path__[0])
    path = package / "extensions" / f"v{duckdb.__version__}" / "ducklake.duckdb_extension"
    return path if path.is_file() else None


def write_catalogue(
    out: Path, root: Path, data_path: str, files: Mapping[str, Sequence[DataFile]], texts: Texts
) -> None:
    """Writes the catalog of the files below `root` to `out`; `data_path` is where readers find them by default."""
    # DuckDB leaves what was overwritten in free blocks of a file, where paths of this machine would stay: `out` is a copy.
    draft = out.with_suffix(".draft")
    db = connect()
    try:
        db.execute(
            f"ATTACH {_text(f'ducklake:{draft}')} AS lake (DATA_PATH {_text(f'{root}/')}, META_BLOCK_SIZE 16384)"
        )
        db.execute("BEGIN")
        for table in DATASET:
            columns = ", ".join(f'"{column.name}" {sql_type(column.kind)}' for column in table.columns)
            db.execute(f"CREATE TABLE lake.{table.name} ({columns})")
            db.execute(f"COMMENT ON TABLE lake.{table.name} IS {_text(table.meaning)}")
            for name, meaning in texts[table.name].items():
                db.execute(f'COMMENT ON COLUMN lake.{table.name}."{name}" IS {_text(meaning)}')
        db.execute("COMMIT")
        db.execute("BEGIN")
        for table in DATASET:
            for file in files[table.name]:
                if file.rows:
                    db.execute("CALL ducklake_add_data_files('lake', ?, ?)", [table.name, os.fspath(root / file.path)])
        db.execute("COMMIT")
        db.execute("DETACH lake")
        db.execute(f"ATTACH {_text(str(draft))} AS catalogue")
        db.execute("USE catalogue")
        db.execute(
            "UPDATE ducklake_data_file SET path = substr(path, ?), path_is_relative = true", [len(f"{root}/") + 1]
        )
        db.execute("UPDATE ducklake_table SET path = ''")
        db.execute("UPDATE ducklake_schema SET path = ''")
        db.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", [data_path])
        db.execute("CHECKPOINT catalogue")
        db.execute(f"ATTACH {_text(str(out))} AS final (BLOCK_SIZE 16384)")
        db.execute("COPY FROM DATABASE catalogue TO final")
        db.execute("DETACH final")
    finally:
        db.close()


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
