"""Holds signals back while native code runs that none may interrupt.

The kernel writes a handler's frame below the stack pointer. oneDNN before 3.11.2 has
products (`gemm:jit`) that keep a pointer into the heap there, so the frame overwrites
what lies in the heap (https://github.com/uxlfoundation/oneDNN/issues/4845).
"""

import ctypes
import signal
from functools import cache

SET = "[16 x i64]"
"""A type of LLVM's that has room for a `sigset_t`."""

DECLARED = "declare i32 @pthread_sigmask(i32, ptr, ptr)"


def block(signals: str, before: str = "null") -> str:
    """LLVM's call that has signals wait; where the set of those before goes."""
    how = getattr(signal, "SIG_BLOCK", 0)
    return f"call i32 @pthread_sigmask(i32 {how}, ptr {signals}, ptr {before})"


def restore(before: str) -> str:
    how = getattr(signal, "SIG_SETMASK", 2)
    return f"call i32 @pthread_sigmask(i32 {how}, ptr {before}, ptr null)"


_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP")


@cache
def asynchronous() -> ctypes.Array[ctypes.c_int64]:
    """The set of all signals but for those that a thread's own code causes."""
    made = (ctypes.c_int64 * 16)()
    posix = ctypes.CDLL(None)
    posix.sigfillset(made)
    for name in _FAULTS:
        posix.sigdelset(made, getattr(signal, name))
    return made
