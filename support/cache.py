"""Machine code and plans on disk, for all processes of a user.

What is found there is run, so it has to be the user's: folders and files that belong to
someone else, or that others can write to, are not touched, and a warning says so. Each
file starts with a hash of its name and the rest, so a damaged one, or one under another
name, counts as none. Files are moved into place when complete, so that several
processes may write at a time. Those that were not used for longest go where there are
too many; each process looks for that once.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE, S_IWGRP, S_IWOTH

from .remarks import warn

DIGEST = 32  # bytes

MOST = 1 << 28
"""The bytes that files may have together."""

SUFFIXES = (".o", ".in", ".plan")
"""Of machine code, of what names the file that a function is in, and of plans: other
files in the folder stay."""

_warned: set[str] = set()


def read(name: str) -> bytes | None:
    """What is in the file of this name, if there is one to be trusted."""
    folder = _folder()
    if folder is None or not _is_trusted(folder, os.stat):
        return None
    try:
        file = os.open(folder / name, os.O_RDONLY | _NO_LINKS)
    except OSError:
        return None
    with os.fdopen(file, "rb") as stream:
        if not _is_trusted(folder / name, lambda _: os.fstat(file)):
            return None
        data = stream.read()
    contents = data[DIGEST:]
    if data[:DIGEST] != _digest(name, contents):
        return None
    _note_use(folder / name)
    return contents


def write(name: str, contents: bytes) -> None:
    """Does nothing where the folder cannot be written to, or is not to be trusted."""
    folder = _folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_trusted(folder, os.stat):
            _trim(folder)
            _replace(folder / name, _digest(name, contents) + contents)
    except OSError:
        return


def _note_use(file: Path) -> None:
    with suppress(OSError):
        os.utime(file)


@cache
def _trim(folder: Path) -> None:
    """Deletes what was not used for longest, until the rest is no more than `MOST`."""
    with os.scandir(folder) as entries:
        ours = [
            (entry.stat(), entry.path)
            for entry in entries
            if entry.name.endswith(SUFFIXES)
        ]
    left = sum(found.st_size for found, _ in ours)
    for found, path in sorted(ours, key=lambda each: (each[0].st_mtime_ns, each[1])):
        if left <= MOST:
            return
        Path(path).unlink(missing_ok=True)
        left -= found.st_size


_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def _folder() -> Path | None:
    """`TENSORPLAN_CACHE`, or a folder where the platform has the user's caches; None
    if that is 0, or for a user without a home."""
    if given := os.environ.get("TENSORPLAN_CACHE"):
        return None if given == "0" else Path(given)
    try:
        if sys.platform == "win32":
            base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            base = Path.home() / "Library" / "Caches"
        else:
            base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        return None
    return Path(base) / "tensorplan"


def _is_trusted(path: Path, stat: Callable[[Path], os.stat_result]) -> bool:
    """Whether it is the user's alone to write, as far as the platform tells. What is
    not there is not."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        fault = _fault(stat(path))
    except OSError:
        return False
    if fault and str(path) not in _warned:
        _warned.add(str(path))
        warn(f"{path} {fault}: it is not used as a cache")
    return not fault


def _fault(found: os.stat_result) -> str:
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, expected {os.geteuid()}"
    mode = S_IMODE(found.st_mode)
    if others := mode & (S_IWGRP | S_IWOTH):
        return f"has mode {mode:o}, expected {mode & ~others:o}: others can write to it"
    return ""


def _digest(name: str, contents: bytes) -> bytes:
    return sha256(f"{name}\n".encode() + contents).digest()


def _replace(file: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
