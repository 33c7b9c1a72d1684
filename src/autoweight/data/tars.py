"""An index of a tar archive of images: where each lies, and what its label is; made once, and kept beside the archive.

Files with the same stem belong together: `000123.jpg` has its label in `000123.cls`. Where there is none, the folder
around an image, inside the archive, names its class.
"""

import os
import tarfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autoweight.data.decoding import ENDINGS
from autoweight.errors import first_line

_VERSION = 1
_LABEL = ".cls"
_BLOCK = 512


class TarIndex(NamedTuple):
    """The images of an archive, in its order."""

    names: NDArray[np.str_]
    labels: NDArray[np.str_]
    offsets: NDArray[np.int64]
    sizes: NDArray[np.int64]
    complaints: NDArray[np.str_]
    """What is wrong with the archive, each as part of a sentence."""


class _Member(NamedTuple):
    name: str
    offset: int
    size: int


def index_of(shard: Path) -> TarIndex:
    """The index that lies beside an archive, where it fits; else a new one, kept there if that is allowed."""
    place = shard.with_name(f"{shard.name}.index.npz")
    status = shard.stat()
    stamp = np.array([_VERSION, status.st_size, status.st_mtime_ns])
    known = _read(place, stamp)
    if known is None:
        known = _made(shard)
        _keep(place, stamp, known)
    return known


def _made(shard: Path) -> TarIndex:
    members, complaints = _members(shard)
    groups: dict[str, list[_Member]] = defaultdict(list)
    for member in members:
        groups[_stem(member.name)].append(member)
    found: list[tuple[_Member, str]] = []
    with shard.open("rb") as file:
        for group in groups.values():
            complaint, samples = _samples(group, file)
            found += samples
            complaints += [f"{shard} holds {complaint}"] if complaint else []
    if not found and not complaints:
        complaints.append(f"{shard} holds no image")
    return TarIndex(
        np.array([image.name for image, _ in found], dtype=str),
        np.array([label for _, label in found], dtype=str),
        np.array([image.offset for image, _ in found], dtype=np.int64),
        np.array([image.size for image, _ in found], dtype=np.int64),
        np.array(complaints, dtype=str),
    )


def _samples(group: list[_Member], file: BinaryIO) -> tuple[str, list[tuple[_Member, str]]]:
    """What is wrong with the files of one stem, if something is, and their images with their labels."""
    images = [member for member in group if PurePosixPath(member.name).suffix.lower() in ENDINGS]
    labels = [member for member in group if member.name.endswith(_LABEL)]
    if not images:
        return f"{group[0].name}, which belongs to no image", []
    if labels and len(images) > 1:
        return f"{len(images)} images for the one label {labels[0].name}", []
    told = _text(file, labels[0]) if labels else PurePosixPath(images[0].name).parent.name
    if not told:
        return f"{images[0].name} without a label: it needs a {_LABEL} file, or a folder named after its class", []
    return "", [(image, told) for image in images]


def _members(shard: Path) -> tuple[list[_Member], list[str]]:
    """The files of an archive up to where it can be read."""
    members: list[_Member] = []
    try:
        with tarfile.open(shard, "r:") as tar:
            for member in tar:
                name = PurePosixPath(member.name)
                if member.isreg() and not name.name.startswith("."):
                    members.append(_Member(str(name), member.offset_data, member.size))
            end = tar.offset
    except (tarfile.TarError, OSError) as error:
        why = first_line(error)
        if not members and "end of data" not in why:
            return [], [f"{shard} is no tar archive that can be read ({why})"]
        whole = [member for member in members if member.offset + member.size <= shard.stat().st_size]
        return whole, [_cut_off(shard, whole)]
    return members, [] if _ends(shard, end) else [_cut_off(shard, members)]


def _cut_off(shard: Path, members: list[_Member]) -> str:
    return f"{shard} is cut off{f' after {members[-1].name}' if members else ''}"


def _ends(shard: Path, end: int) -> bool:
    """Whether the zeros with which archives end are there."""
    with shard.open("rb") as file:
        file.seek(end)
        return file.read(_BLOCK) == bytes(_BLOCK)


def _stem(name: str) -> str:
    path = PurePosixPath(name)
    return str(path.parent / path.name.partition(".")[0])


def _text(file: BinaryIO, member: _Member) -> str:
    file.seek(member.offset)
    return file.read(member.size).decode(errors="replace").strip()


def _read(place: Path, stamp: NDArray[np.int64]) -> TarIndex | None:
    try:
        with place.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            return TarIndex(*(file[name] for name in TarIndex._fields)) if (file["stamp"] == stamp).all() else None
    except Exception:  # none there, or half a file: it is made anew
        return None


def _keep(place: Path, stamp: NDArray[np.int64], index: TarIndex) -> None:
    """Save an index in one move, as other ranks may be doing the same; where the folder is read-only, do without."""
    partial = place.with_name(f".{place.name}.{os.getpid()}.npz")
    with suppress(OSError):
        try:
            np.savez(partial, stamp=stamp, **index._asdict())
            partial.replace(place)
        finally:
            partial.unlink(missing_ok=True)
