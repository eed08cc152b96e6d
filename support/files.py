"""Writes files atomically: as a whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A stream whose contents replace those of the file at the end of the block.

    If the block fails, the file stays unchanged. A target that is not a regular file
    (`/dev/null`, a pipe) is written to directly. Raises `OSError` with `path`.
    """
    path = os.fspath(path)
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as stream:
            yield stream
        return
    try:  # resolves links, so that they stay links
        with _replacing(Path(os.path.realpath(path))) as stream:
            yield stream
    except OSError as error:  # names the temporary file
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from None


@contextmanager
def _replacing(target: Path) -> Generator[BinaryIO]:
    with tempfile.NamedTemporaryFile(
        dir=target.parent, prefix=f".{target.name}.", delete=False
    ) as file:
        try:
            yield cast(BinaryIO, file)
            file.close()
            if target.exists():
                shutil.copymode(target, file.name)
            else:
                umask = os.umask(0)  # no call reads it without setting it
                os.umask(umask)
                os.chmod(file.name, 0o666 & ~umask)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise
