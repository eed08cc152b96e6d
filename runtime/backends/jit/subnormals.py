"""How a thread computes with subnormal numbers, those smaller than the normal ones.

    before = switch(FLUSHED)        # subnormal operands and results count as zero
    switch(before)

A product with a subnormal number takes a hundred cycles or more on many processors, so
XLA computes without them. Each thread has its own mode; a new one computes with them,
as IEEE 754 says. `MODE` is LLVM IR for threads that run no Python code.
"""

import platform
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any, TypeVar

from .llvm import compiler, is_available

_T = TypeVar("_T")

_X86 = """define internal i64 @mode() {
  %word = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %word)
  %narrow = load i32, ptr %word
  %mode = zext i32 %narrow to i64
  ret i64 %mode
}
define internal void @set_mode(i64 %mode) {
  %word = alloca i32
  %narrow = trunc i64 %mode to i32
  store i32 %narrow, ptr %word
  call void @llvm.x86.sse.ldmxcsr(ptr %word)
  ret void
}
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)"""

_ARM = """define internal i64 @mode() {
  %mode = call i64 @llvm.aarch64.get.fpcr()
  ret i64 %mode
}
define internal void @set_mode(i64 %mode) {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)"""

_OTHER = """define internal i64 @mode() {
  ret i64 0
}
define internal void @set_mode(i64 %mode) {
  ret void
}"""

FLUSHED, MODE = {
    **dict.fromkeys(("x86_64", "AMD64"), (0x8040, _X86)),
    **dict.fromkeys(("aarch64", "arm64"), (1 << 24, _ARM)),
}.get(platform.machine(), (0, _OTHER))
"""The bits of the mode that are set while a thread computes without subnormal numbers,
and LLVM IR of `mode()`, the mode of a thread, and `set_mode(mode)`."""

_SWITCH = f"""define i32 @{{name}}(ptr %bits) {{
  %mode = call i64 @mode()
  %others = and i64 %mode, {~FLUSHED}
  %wanted = ptrtoint ptr %bits to i64
  %new = or i64 %others, %wanted
  call void @set_mode(i64 %new)
  %before = and i64 %mode, {FLUSHED}
  %narrow = trunc i64 %before to i32
  ret i32 %narrow
}}
{MODE}"""


def switch(bits: int) -> int:
    """Sets the mode of the caller's thread to `FLUSHED` or 0. Returns the one before,
    or 0 without native code: then nothing changes."""
    return _entry()(bits) if is_available() else 0


@cache
def _entry() -> Any:
    return compiler().function(_SWITCH, quick=True).entry


def current() -> int:
    """The mode of the caller's thread: `FLUSHED` or 0."""
    mode = switch(0)
    switch(mode)
    return mode


@contextmanager
def flushing(is_wanted: bool) -> Generator[None]:
    """Within the block, the caller's thread computes without subnormal numbers if
    `is_wanted`."""
    before = switch(FLUSHED) if is_wanted else None
    try:
        yield
    finally:
        if before is not None:
            switch(before)


def with_subnormals(function: Callable[..., _T]) -> Callable[..., _T]:
    """The function, computing with subnormal numbers, as other Python code does."""

    @wraps(function)
    def called(*args: Any) -> _T:
        before = switch(0)
        try:
            return function(*args)
        finally:
            switch(before)

    return called
