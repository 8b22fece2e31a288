"""Whether a backup is what it was: every content read and hashed."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from menuwatch.backup.folder import Folder, hash_of
from menuwatch.backup.manifest import Manifest
from menuwatch.backup.progress import Step, Told, nobody


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong. `kind` is missing, damaged, or extra (nothing is wrong but that it is not needed); `path` is what it
    is a fault of: a file of the installation, a table, or a file of the folder."""

    kind: str
    path: str
    object: str
    detail: str


def faults(folder: Folder, manifest: Manifest, told: Told = nobody) -> Iterator[Fault]:
    """Everything that is wrong with what the manifest names."""
    owners: dict[str, str] = {}
    for table in manifest.tables:
        owners.setdefault(table.sha256, f"table {table.name}")
    for file in manifest.files:
        owners.setdefault(file.sha256, file.path)
    for number, (sha256, size) in enumerate(manifest.objects().items(), 1):
        place = folder.place(sha256)
        where = str(place.relative_to(folder.root))
        told(Step(what="Reading the backup", done=number, total=len(owners)))
        try:
            found = place.stat().st_size
            if found != size:
                detail = f"it has {found:,} bytes of {size:,}"
            elif hash_of(place) != sha256:
                detail = "its content is not what was backed up (sha256)"
            else:
                continue
            yield Fault(kind="damaged", path=owners[sha256], object=where, detail=detail)
        except FileNotFoundError:
            yield Fault(kind="missing", path=owners[sha256], object=where, detail=f"{where} is not there")
        except OSError as error:
            yield Fault(
                kind="damaged", path=owners[sha256], object=where, detail=f"it cannot be read: {error.strerror}"
            )


def extras(folder: Folder, manifest: Manifest) -> Iterator[Fault]:
    """Contents that the manifest does not name: of a newer backup that was not finished, as a rule."""
    needed = manifest.objects()
    for place in folder.objects():
        if place.name not in needed:
            where = str(place.relative_to(folder.root))
            yield Fault(
                kind="extra", path=where, object=where, detail="the backup does not need it; the next one removes it"
            )
