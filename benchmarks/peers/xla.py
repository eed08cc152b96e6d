"""Measures XLA for the CPU (of jaxlib): the temporary buffer that it reports.

XLA reads the StableHLO text. The buffer excludes results, donated arguments, and memory
that kernels allocate.
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
    """Yields the bytes that a program needs with each scheduler."""
    text = file.read_text()
    for label, settings in SETTINGS.items():
        statistics = compiled(text, settings).get_compiled_memory_stats()
        yield label, int(statistics.temp_size_in_bytes)
