"""Decides what of a program is stored, where, and until when.

    storage = storage_of(block)       for a block on tensors
    storage.places[value]             the buffer and the layout of a value
    storage.steps                     the actions on memory, operation by operation
    peaks(storage, alignment)         the most bytes that are live at once, by device
    during(storage, alignment)        the most bytes that are live in each operation
    at_peak(storage, alignment)       the operations in which the most bytes are live
    arenas(storage, **options)        the bytes of each device's arena
    at_least(storage, **options)      a lower bound of their sum, found in less time

`tgraph-bufferize` implements these decisions. Passes that must know what a program will
store before there are memrefs use the same analysis. (XLA's heap simulator computes a
module's minimum memory from the same alias analysis as the offset assignment.)

buffers.py    buffers, places in them, and actions on them
storage.py    the decisions for each operation of a block
lifetimes.py  live ranges of buffers, through loops and branches
arenas.py     predicts the arenas that plan-memory will make
"""

from .arenas import arenas, at_least
from .buffers import (
    SMALL_CONSTANT,
    Action,
    Allocate,
    At,
    Branch,
    Copy,
    Free,
    Global,
    Home,
    Loop,
    MakeView,
    Place,
    Run,
    Storage,
    TensorBuffer,
)
from .lifetimes import at_peak, during, peaks
from .storage import storage_of

__all__ = [
    "SMALL_CONSTANT",
    "Action",
    "Allocate",
    "At",
    "Branch",
    "Copy",
    "Free",
    "Global",
    "Home",
    "Loop",
    "MakeView",
    "Place",
    "Run",
    "Storage",
    "TensorBuffer",
    "arenas",
    "at_least",
    "at_peak",
    "during",
    "peaks",
    "storage_of",
]
