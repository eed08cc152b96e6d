"""A disk cache of machine code and plans, shared by all processes of a user.

The cached code is run, so files must belong to the user: folders and files that belong
to someone else, or that others can write to, are not used, and a warning says so. Each
file starts with a hash of its name and contents, so a damaged or renamed file counts as
missing. Files are moved into place when complete, so several processes may write at the
same time. The least recently used files are deleted if the cache grows too large; each
process checks this once.
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
"""The limit on the total size of the files, in bytes."""

SUFFIXES = (".o", ".in", ".plan")
"""The suffixes of machine code, of indices from functions to machine code files, and of
plans. Other files in the folder are left alone."""

_warned: set[str] = set()


def read(name: str) -> bytes | None:
    """The contents of the cached file `name`; None if it is missing or not trusted."""
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
    """Writes a file, unless the folder is not writable or not trusted."""
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
    """Deletes the least recently used files until the others take at most `MOST`."""
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
    """`TENSORPLAN_CACHE`, or the platform's cache folder of the user. None if the
    variable is 0, or for a user without a home folder."""
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
    """Whether only the user can write to `path`, as far as the platform tells. False if
    `path` does not exist."""
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
