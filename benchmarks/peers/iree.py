"""Measures IREE for the CPU: the sum of the transient allocations of a program.

IREE reads the StableHLO text. A program without loops has one transient allocation.
Results are separate allocations and do not count.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

COMMAND = "iree-compile"
OPTIONS = (
    "--iree-input-type=stablehlo",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--compile-to=stream",
)
SETTINGS = {
    "default": (),
    "least": ("--iree-stream-partitioning-favor=min-peak-memory",),
}
ALLOCATION = re.compile(
    r"stream\.resource\.alloca .*!stream\.resource<transient>\{(.*?)}"
)
CONSTANT = re.compile(r"%c(\d+)(_\d+)?")


def _version() -> str:
    process = subprocess.run([COMMAND, "--version"], capture_output=True, text=True)
    return process.stdout.split("version ")[1].split()[0]


VERSION = _version()


def measure(file: Path) -> Iterator[tuple[str, int]]:
    """Yields the bytes of a program with each of the settings that compiles it."""
    for label, options in SETTINGS.items():
        command = [COMMAND, str(file), *OPTIONS, *options]
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode == 0:
            yield label, _transient_bytes(process.stdout)


def _transient_bytes(text: str) -> int:
    total = 0
    for size in ALLOCATION.findall(text):
        constant = CONSTANT.fullmatch(size)
        if constant is None:
            raise ValueError(f"transient memory of a size that is not known: {size}")
        total += int(constant[1])
    return total
