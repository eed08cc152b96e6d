"""What of a program is stored, where, and until when: decided here, once.

    storage = storage_of(block)       of a block on tensors, its operations in order
    storage.places[value]             where a value lies
    storage.steps                     what is done to memory, operation by operation
    peaks(storage, alignment)         the most bytes that live at once, by device
    during(storage, alignment)        the same for each operation
    arenas(storage, **options)        the bytes of each device's arena
    at_least(storage, **options)      a bound of these that is found in less time

`tgraph-bufferize` writes down what it says; who has to know what a program will store,
before there are memrefs, asks it too. (XLA's heap simulator computes a module's minimum
memory from the same alias analysis as the run that assigns offsets.)

buffers.py    buffers, places in them, and what is done to them
storage.py    what becomes of each operation of a block
lifetimes.py  when buffers are live, through loops and branches
arenas.py     what plan-memory will make of that
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
from .lifetimes import during, peaks
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
    "during",
    "peaks",
    "storage_of",
]
