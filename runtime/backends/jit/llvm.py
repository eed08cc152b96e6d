"""Compiles LLVM IR to functions of this process by llvmlite, with a cache on disk.

Functions that are needed together become one module, because setting up LLVM's passes
for a module takes as long as compiling a small function. The cache (support/cache.py)
is shared by all programs. Its keys are hashes of the IR, the versions of the compiler,
and the processor.
"""

import functools
import os
from collections.abc import Iterable, Sequence
from ctypes import CFUNCTYPE, c_int, c_void_p
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from threading import Lock, RLock
from typing import Any, NamedTuple

from ....support import cache, processor
from ....version import VERSION
from . import externals

_compiler: "Compiler | None" = None
_lock = Lock()


@functools.cache
def is_available() -> bool:
    """Whether this process can compile native code."""
    if os.environ.get("TENSORPLAN_NATIVE") == "0":
        return False
    try:
        return compiler().has_fma
    except (ImportError, OSError, RuntimeError):
        return False


def compiler() -> "Compiler":
    """The compiler of the process. Raises `ImportError` without a recent llvmlite."""
    global _compiler
    with _lock:
        if _compiler is None:
            _compiler = Compiler()
        return _compiler


class Host(NamedTuple):
    """The target of machine code."""

    triple: str
    features: str
    """In LLVM's syntax: "+avx2,+fma,-amx"."""


def _name(digest: str) -> str:
    return f"tensorplan_{digest}"


class Compiler:
    def __init__(self) -> None:
        llvm: Any = import_module("llvmlite.binding")
        if llvm.llvm_version_info < (20,):
            raise ImportError("llvmlite is too old, expected 0.45 or later")
        self._llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
        host: dict[str, bool] = llvm.get_host_cpu_features()
        if (level := processor.level()) is not None:
            cpu = level
            allowed = processor.LEVELS[level]
            host = {name: has and name in allowed for name, has in host.items()}
        self.has_fma: bool = bool(host.get("fma") or host.get("neon"))
        listed = [f"{'+' if host[name] else '-'}{name}" for name in sorted(host)]
        if host.get("avx512f"):  # by default LLVM halves some processors' vectors
            listed.append("-prefer-256-bit")
        features = ",".join(listed)
        self.host = Host(triple, features)
        target = llvm.Target.from_triple(triple)
        self._machine, self._quick_machine = (
            target.create_target_machine(cpu=cpu, features=features, opt=opt, jit=True)
            for opt in (2, 0)
        )
        versions = VERSION, import_module("llvmlite").__version__
        host_is = (*llvm.llvm_version_info, triple, cpu, features)
        self.setting = "\n".join(map(str, (*versions, *host_is)))
        """The compiler's versions and the processor."""
        self._passes = llvm.create_new_module_pass_manager()
        self._passes.add_always_inliner_pass()  # see inlining.py
        self._passes.add_sroa_pass()  # slots to registers; the rest needs no passes
        self._passes.add_instruction_combine_pass()
        empty = llvm.parse_assembly("")
        empty.triple = triple
        self._engine = llvm.create_mcjit_compiler(empty, self._machine)
        self.lock = RLock()
        self._functions: dict[str, Function] = {}
        self._texts: dict[tuple[str, bool], Function] = {}
        self._objects: dict[str, ObjectFile] = {}
        self._linked: set[str] = set()

    def function(self, text: str, quick: bool = False) -> "Function":
        """The function that `text` defines under the name `{name}`, which takes a
        pointer and returns an `i32`. With `quick`, it is compiled without optimization:
        for functions that mainly call others or wait."""
        if (known := self._texts.get((text, quick))) is not None:
            return known
        digest = sha256(f"{self.setting}\n{quick}\n{text}".encode()).hexdigest()
        function = self._texts[text, quick] = self.linked(digest)
        function.text, function.quick = text, quick
        return function

    def linked(self, digest: str, code: "ObjectFile | None" = None) -> "Function":
        """The function with this digest: a known one, or one from an object file."""
        return self._functions.setdefault(digest, Function(self, digest, code))

    def make(self, functions: Iterable["Function"]) -> None:
        """Compiles all functions that have no machine code yet."""
        with self.lock:
            new: dict[bool, dict[str, Function]] = {False: {}, True: {}}
            for function in functions:
                if function.known is None:
                    function.known = self._cached(function.digest)
                if function.known is None:
                    new[function.quick][function.digest] = function
            for together in filter(None, new.values()):
                self._make(list(together.values()))

    def link(self, function: "Function") -> int:
        """Loads a function's code into this process, once; returns its address."""
        with self.lock:
            name, code = function.code
            if name not in self._linked:
                for routine in externals.declared_in(code):
                    self._llvm.add_symbol(
                        f"{externals.PREFIX}{routine}", externals.address_of(routine)
                    )
                self._engine.add_object_file(self._llvm.ObjectFileRef.from_data(code))
                self._engine.finalize_object()
                self._linked.add(name)
            address: int = self._engine.get_function_address(_name(function.digest))
            if not address:
                raise LookupError(f"no function {function.digest} in its object file")
            return address

    def _cached(self, digest: str) -> "ObjectFile | None":
        """The object file on disk that contains a function, or None."""
        name = (cache.read(f"{digest}.in") or digest.encode()).decode()
        if name not in self._objects:
            if (code := cache.read(f"{name}.o")) is None:
                return None
            self._objects[name] = ObjectFile(name, code)
        return self._objects[name]

    def _make(self, functions: Sequence["Function"]) -> None:
        """Compiles functions together, and caches them."""
        digests = [function.digest for function in functions]
        name = digests[0]
        if len(digests) > 1:
            name = sha256("\n".join(digests).encode()).hexdigest()
        code = ObjectFile(name, self._compile(functions))
        cache.write(f"{name}.o", code.code)
        for function in functions:
            function.known = code
            if len(digests) > 1:
                cache.write(f"{function.digest}.in", name.encode())

    def _compile(self, functions: Sequence["Function"]) -> bytes:
        llvm = self._llvm
        texts = (f.text.replace("{name}", _name(f.digest)) for f in functions)
        module, *others = map(llvm.parse_assembly, texts)
        for other in others:
            module.link_in(other)
        machine = self._quick_machine if functions[0].quick else self._machine
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        tuning = llvm.PipelineTuningOptions()
        self._passes.run(module, llvm.create_pass_builder(machine, tuning))
        return machine.emit_object(module)


class ObjectFile(NamedTuple):
    """The machine code of functions that were compiled together."""

    name: str
    code: bytes


class Function:
    """A native function. It is compiled on first use: measuring the workspace of a
    kernel needs no code."""

    def __init__(self, compiler: Compiler, digest: str, known: ObjectFile | None):
        self.digest = digest
        """A hash of the IR, the compiler and the processor."""
        self.text = ""
        """The LLVM IR; empty if the function comes from an object file."""
        self.quick = False
        """Whether it is compiled without optimization."""
        self.known = known
        """The object file that contains the function, if it is compiled."""
        self._compiler = compiler  # keeps the code alive

    @property
    def code(self) -> ObjectFile:
        """The object file that contains the function."""
        self._compiler.make([self])
        assert self.known is not None
        return self.known

    @cached_property
    def address(self) -> int:
        """The address of the machine code."""
        return self._compiler.link(self)

    @cached_property
    def entry(self) -> Any:
        """The function for ctypes; it takes an array of words."""
        return CFUNCTYPE(c_int, c_void_p)(self.address)
