"""Finds the plans in a file or a folder, and reads them by their format.

for path in plan_files("dump"):
    plan = read(path)
"""

import errno
from collections.abc import Sequence
from pathlib import Path

from ...support.foreign_plan import ForeignPlan
from . import executorch, inductor, iree, litert, minimalloc, torch_snapshot, xla

OTHERS = (
    xla.ASSIGNMENT,
    *executorch.ENDINGS,
    *inductor.ENDINGS,
    *iree.ENDINGS,
    *litert.ENDINGS,
    *torch_snapshot.ENDINGS,
)
"""Suffixes of files that only other compilers and frameworks write."""


def plan_files(path: str) -> Sequence[Path]:
    """The path, or the files with plans in a folder, sorted by name. If two files are
    one plan, only the first is returned.

    Raises `OSError` for a folder without plans, and for a missing path.
    """
    folder = Path(path)
    if not folder.is_dir():
        folder.stat()
        return [inductor.first_file(folder)]
    found = {
        inductor.first_file(file)
        for file in folder.iterdir()
        if file.name.endswith((*OTHERS, *minimalloc.ENDINGS))
    }
    if not found:
        reason = f"a folder without plans, expected *{xla.ASSIGNMENT}, *.pte, ..."
        raise OSError(errno.ENOENT, reason, path)
    return sorted(found)


def read(path: Path) -> ForeignPlan:
    """The plan in a file; for XLA and Inductor, it may be either of two files.

    Raises `ForeignPlanError` for a file that is not a plan, and `OSError`.
    """
    if path.name.endswith(minimalloc.ENDINGS):
        return minimalloc.read_file(path)
    if path.name.endswith(executorch.ENDINGS):
        return executorch.read_file(path)
    if path.name.endswith(inductor.ENDINGS):
        return inductor.read_file(path)
    if path.name.endswith(iree.ENDINGS):
        return iree.read_file(path)
    if path.name.endswith(litert.ENDINGS):
        return litert.read_file(path)
    if path.name.endswith(torch_snapshot.ENDINGS):
        return torch_snapshot.read_file(path)
    return xla.read_file(path)
