"""Loads oneDNN's C library (version 3) through ctypes, and wraps its objects.

The package `onednn-cpu-gomp` installs the library in the environment's `lib` folder;
`TENSORPLAN_ONEDNN` names another file. The library runs with one OpenMP thread, because
each thread of the process's team (jit/team.py) computes a part. OpenMP reads this
setting only once, while it is loaded.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_int32, c_int64, c_size_t
from ctypes import c_void_p as pointer
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from ....support import processor

MAX_DIMS = 12
CPU, IN_ORDER, ANY_LAYOUT, USER_SCRATCHPAD = 1, 1, 1, 1

_ELEMENTS = {"bfloat16": 2, "float32": 3}
"""Element types (`dnnl_bf16`, ...), by NumPy's names."""

_LEVELS = {"x86-64-v3": 0x07, "x86-64-v4": 0x27}
"""oneDNN's instruction sets for `processor.LEVELS`: AVX2, AVX-512."""

_dims = c_int64 * MAX_DIMS
_FUNCTIONS: dict[str, Sequence[Any]] = {
    "get_effective_cpu_isa": (),
    "set_max_cpu_isa": (c_int,),
    "engine_create": (pointer, c_int, c_size_t),
    "stream_create": (pointer, pointer, c_int),
    "memory_desc_create_with_strides": (pointer, c_int, _dims, c_int, _dims),
    "memory_desc_create_with_tag": (pointer, c_int, _dims, c_int, c_int),
    "memory_desc_clone": (pointer, pointer),
    "memory_desc_get_size": (pointer,),
    "memory_desc_equal": (pointer, pointer),
    "memory_create": (pointer, pointer, pointer, pointer),
    "post_ops_create": (pointer,),
    "post_ops_append_sum": (pointer, c_float, c_int32, c_int),
    "post_ops_append_eltwise": (pointer, c_int, c_float, c_float),
    "post_ops_append_binary": (pointer, c_int, pointer),
    "primitive_attr_create": (pointer,),
    "primitive_attr_set_post_ops": (pointer, pointer),
    "primitive_attr_set_scratchpad_mode": (pointer, c_int),
    "matmul_primitive_desc_create": (pointer,) * 7,
    "reorder_primitive_desc_create": (pointer,) * 6,
    "convolution_forward_primitive_desc_create": (
        *(pointer, pointer, c_int, c_int, pointer, pointer, pointer, pointer),
        *(_dims, _dims, _dims, _dims, pointer),
    ),
    "convolution_backward_data_primitive_desc_create": (
        *(pointer, pointer, c_int, pointer, pointer, pointer),
        *(_dims, _dims, _dims, _dims, pointer, pointer),
    ),
    "convolution_backward_weights_primitive_desc_create": (
        *(pointer, pointer, c_int, pointer, pointer, pointer, pointer),
        *(_dims, _dims, _dims, _dims, pointer, pointer),
    ),
    "primitive_desc_query": (pointer, c_int, c_int, pointer),
    "primitive_desc_query_md": (pointer, c_int, c_int),
    "primitive_create": (pointer, pointer),
    "memory_set_data_handle": (pointer, pointer),
    "primitive_execute": (pointer, pointer, c_int, pointer),
    "memory_desc_destroy": (pointer,),
    "memory_destroy": (pointer,),
    "post_ops_destroy": (pointer,),
    "primitive_attr_destroy": (pointer,),
    "primitive_desc_destroy": (pointer,),
    "primitive_destroy": (pointer,),
}
_RESULTS = {"memory_desc_get_size": c_size_t, "primitive_desc_query_md": pointer}


class Refused(Exception):
    """oneDNN does not support a primitive, or it is not worth using."""


class Handle:
    """An object of the library, which is destroyed with the handle."""

    __slots__ = ("_destroy", "value")

    def __init__(self, value: int, destroy: Callable[[int], object]):
        self.value = value
        self._destroy = destroy

    def __del__(self) -> None:
        self._destroy(self.value)


class Library:
    def __init__(self) -> None:
        before = os.environ.get("OMP_NUM_THREADS")
        os.environ["OMP_NUM_THREADS"] = "1"
        try:
            library = ctypes.CDLL(_path())
        finally:
            if before is None:
                del os.environ["OMP_NUM_THREADS"]
            else:
                os.environ["OMP_NUM_THREADS"] = before
        self._functions: dict[str, Any] = {}
        for name, types in _FUNCTIONS.items():
            function = library[f"dnnl_{name}"]
            function.argtypes = types
            function.restype = _RESULTS.get(name, c_int)
            self._functions[name] = function
        read = library["dnnl_version"]
        read.restype = ctypes.POINTER(c_int * 3)
        self.version = ".".join(map(str, read().contents))
        if (level := processor.level()) is not None:
            self.do("set_max_cpu_isa", _LEVELS[level])
        self._engine = pointer()
        self._stream = pointer()
        self.do("engine_create", byref(self._engine), CPU, 0)
        self.do("stream_create", byref(self._stream), self._engine, IN_ORDER)
        self.engine, self.stream = self._engine.value or 0, self._stream.value or 0
        execute = self._functions["primitive_execute"]
        self.execute = ctypes.cast(execute, pointer).value or 0
        """The address of `dnnl_primitive_execute`."""

    def do(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status. Raises `Refused` for an error."""
        status = self._functions[name](*arguments)
        if status:
            raise Refused(f"dnnl_{name} returned status {status}")

    def function(self, name: str) -> Any:
        return self._functions[name]

    def get(self, name: str, *arguments: Any) -> Any:
        return self._functions[name](*arguments)

    def make(self, kind: str, function: str, *arguments: Any) -> Handle:
        """A new object of a kind (`memory`, `primitive`, ...)."""
        made = pointer()
        self.do(function, byref(made), *arguments)
        return Handle(made.value or 0, self._functions[f"{kind}_destroy"])

    def describe(
        self, shape: Sequence[int], element: str, strides: Sequence[int] | None
    ) -> Handle:
        """A descriptor of memory with `strides` in elements. If they are None, the
        primitive chooses the layout."""
        name = f"memory_desc_create_with_{'tag' if strides is None else 'strides'}"
        layout = ANY_LAYOUT if strides is None else _dims(*strides)
        arguments = len(shape), _dims(*shape), _ELEMENTS[element], layout
        return self.make("memory_desc", name, *arguments)

    def implementation(self, description: Handle) -> str:
        """The name of a primitive's implementation: "brgemm:avx512_core", "ref:any"."""
        text = c_char_p()
        self.do("primitive_desc_query", description.value, 8, 0, byref(text))
        return (text.value or b"").decode()


def dims(values: Sequence[int]) -> Any:
    return _dims(*values)


def _path() -> str:
    named = os.environ.get("TENSORPLAN_ONEDNN")
    if named:
        return named
    name = "libdnnl.so.3"
    installed = Path(sys.prefix) / "lib" / name
    return str(installed) if installed.exists() else name


_lock = Lock()


def library() -> Library:
    """The library of the process. There is one, because objects of one library cannot
    be used in another.

    Raises `OSError` if there is none, `Refused` if it cannot run.
    """
    with _lock:
        return _loaded()


@cache
def _loaded() -> Library:
    return Library()
