"""Blocks signals while native code runs that signals must not interrupt.

The kernel writes the frame of a signal handler below the stack pointer. oneDNN before
3.11.2 has products (`gemm:jit`) whose stack pointer points into the heap, so the frame
overwrites data in the heap (https://github.com/uxlfoundation/oneDNN/issues/4845).
"""

import ctypes
import signal
from functools import cache

SET = "[16 x i64]"
"""An LLVM type with room for a `sigset_t`."""

DECLARED = "declare i32 @pthread_sigmask(i32, ptr, ptr)"


def block(signals: str, before: str = "null") -> str:
    """LLVM IR that blocks `signals`, and stores the previous mask in `before`."""
    how = getattr(signal, "SIG_BLOCK", 0)
    return f"call i32 @pthread_sigmask(i32 {how}, ptr {signals}, ptr {before})"


def restore(before: str) -> str:
    how = getattr(signal, "SIG_SETMASK", 2)
    return f"call i32 @pthread_sigmask(i32 {how}, ptr {before}, ptr null)"


_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP")


@cache
def asynchronous() -> ctypes.Array[ctypes.c_int64]:
    """The set of all signals except those that a thread's own code causes."""
    made = (ctypes.c_int64 * 16)()
    posix = ctypes.CDLL(None)
    posix.sigfillset(made)
    for name in _FAULTS:
        posix.sigdelset(made, getattr(signal, name))
    return made
