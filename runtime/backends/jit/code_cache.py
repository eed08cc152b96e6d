"""Machine code on disk, for all processes of a user.

What is found there is run, so it has to be the user's: folders and files that belong to
someone else, or that others can write to, are not touched, and a warning says so. Each
file starts with a hash of its key and the rest, so a damaged one, or one under another
key's name, counts as none. Files are moved into place when complete, so that several
processes may write at a time.
"""

import os
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from stat import S_IMODE, S_IWGRP, S_IWOTH

from ....remarks import warn

DIGEST = 32  # bytes

_warned: set[str] = set()


def read(key: str) -> bytes | None:
    """The code for a key, if there is some to be trusted."""
    folder = _folder()
    if folder is None or not _is_trusted(folder, os.stat):
        return None
    try:
        file = os.open(folder / f"{key}.o", os.O_RDONLY | _NO_LINKS)
    except OSError:
        return None
    with os.fdopen(file, "rb") as stream:
        if not _is_trusted(folder / f"{key}.o", lambda _: os.fstat(file)):
            return None
        data = stream.read()
    code = data[DIGEST:]
    return code if data[:DIGEST] == _digest(key, code) else None


def write(key: str, code: bytes) -> None:
    """Does nothing where the folder cannot be written to, or is not to be trusted."""
    folder = _folder()
    if folder is None:
        return
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_trusted(folder, os.stat):
            _replace(folder / f"{key}.o", _digest(key, code) + code)
    except OSError:
        return


_NO_LINKS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def _folder() -> Path | None:
    """`TENSORPLAN_CACHE`, or a folder where the platform has the user's caches; None
    for a user without a home."""
    if given := os.environ.get("TENSORPLAN_CACHE"):
        return Path(given)
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
        warn(f"{path} {fault}: code is compiled without this cache")
    return not fault


def _fault(found: os.stat_result) -> str:
    if found.st_uid != os.geteuid():
        return f"belongs to user {found.st_uid}, expected {os.geteuid()}"
    mode = S_IMODE(found.st_mode)
    if others := mode & (S_IWGRP | S_IWOTH):
        return f"has mode {mode:o}, expected {mode & ~others:o}: others can write to it"
    return ""


def _digest(key: str, code: bytes) -> bytes:
    return sha256(f"{key}\n".encode() + code).digest()


def _replace(file: Path, data: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(temporary, file)
    except BaseException:
        os.unlink(temporary)
        raise
