"""The program that makes a report of the raw stream that nsys records."""

from __future__ import annotations

from pathlib import Path

from stallscope.profiler.doctor.surroundings import Surroundings, elsewhere

_IMPORTERS = (
    "/usr/lib/nsight-systems/host-*/QdstrmImporter",
    "/opt/nvidia/nsight-systems*/*/host-linux-*/QdstrmImporter",
)


def own_importer(nsys: Path) -> Path | None:
    """Return the importer that nsys itself finds.

    It looks beside its own folder, links resolved: seen with Debian's 2022.4, which installs the
    importer elsewhere and then reports "binary … not found".
    """
    return next(nsys.resolve().parent.parent.glob("host-linux-*/QdstrmImporter"), None)


def other_importer(place: Surroundings, nsys: Path) -> Path | None:
    """Return an importer where distributions put it: beside this nsys, else anywhere."""
    prefixes = [parent / "lib" for parent in nsys.resolve().parents if parent.name == "usr"]
    local = (path for prefix in prefixes for path in prefix.glob("nsight-systems/host-*/Qdstrm*"))
    return next((p for p in (*local, *elsewhere(place, *_IMPORTERS)) if p.is_file()), None)
