"""Allocators of device memory, behind one interface.

base.py        Allocator: the interface
report.py      blocks, statistics, dumps, the lack of memory
regions.py     what an allocator takes from its sub-allocator
host.py        the sub-allocator of host memory
bfc.py         best fit with coalescing, as in TensorFlow; bfc_dump.py its dump
buddy.py       powers of two, as in XDL
slab.py        small blocks in bitmaps, as in XDL
slab_buddy.py  both, by size, as in XDL
"""

from tensorplan.runtime.allocators.base import NULL, Allocator, InvalidAddressError
from tensorplan.runtime.allocators.bfc import BFC
from tensorplan.runtime.allocators.bfc_dump import BFCDump, Bin
from tensorplan.runtime.allocators.buddy import Buddy
from tensorplan.runtime.allocators.host import HostMemory
from tensorplan.runtime.allocators.regions import Regions, SubAllocator
from tensorplan.runtime.allocators.report import (
    Block,
    Dump,
    OutOfMemoryError,
    Statistics,
)
from tensorplan.runtime.allocators.slab import Slab
from tensorplan.runtime.allocators.slab_buddy import SlabBuddy

__all__ = [
    "ALLOCATORS",
    "BFC",
    "NULL",
    "Allocator",
    "BFCDump",
    "Bin",
    "Block",
    "Buddy",
    "Dump",
    "HostMemory",
    "InvalidAddressError",
    "OutOfMemoryError",
    "Regions",
    "Slab",
    "SlabBuddy",
    "Statistics",
    "SubAllocator",
]

ALLOCATORS = {kind.name: kind for kind in (BFC, Buddy, Slab, SlabBuddy)}
"""By the names that options take."""
