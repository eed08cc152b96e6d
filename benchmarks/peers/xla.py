"""XLA for the CPU, as jaxlib has it: the temporary buffer that it reports.

From the StableHLO text. Results and donated arguments are no part of it, nor what
kernels take for themselves.
"""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from in_xla import compiled

VERSION = version("jaxlib")

SETTINGS = {
    "default": {},
    "memory": {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"},
}


def measure(file: Path) -> Iterator[tuple[str, int]]:
    """The bytes that a program needs in the order of each scheduler."""
    text = file.read_text()
    for label, settings in SETTINGS.items():
        statistics = compiled(text, settings).get_compiled_memory_stats()
        yield label, int(statistics.temp_size_in_bytes)
