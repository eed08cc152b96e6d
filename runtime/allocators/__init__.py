"""Allocators of device memory, behind one interface.

base.py        Allocator: the interface
report.py      blocks, statistics, dumps, errors when memory runs out
regions.py     the memory that an allocator takes from its sub-allocator
host.py        the sub-allocator of host memory
bfc.py         best fit with coalescing, as in TensorFlow; bfc_dump.py its dump
buddy.py       powers of two, as in XDL
slab.py        small blocks in bitmaps, as in XDL
slab_buddy.py  both, by size, as in XDL
"""

from .base import NULL, Allocator, InvalidAddressError
from .bfc import BFC
from .bfc_dump import BFCDump, Bin
from .buddy import Buddy
from .host import HostMemory
from .regions import Regions, SubAllocator
from .report import AllocatorBlock, Dump, OutOfMemoryError, Statistics
from .slab import Slab
from .slab_buddy import SlabBuddy

__all__ = [
    "ALLOCATORS",
    "BFC",
    "NULL",
    "Allocator",
    "AllocatorBlock",
    "BFCDump",
    "Bin",
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
"""Allocators by the names that options take."""
