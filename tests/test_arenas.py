"""Tests arenas that are arguments, globals or fixed addresses: their sizes, the values
that programs compute in them, and the faults that plan-check finds."""

import json
import re
from io import StringIO
from itertools import cycle, product
from random import Random
from typing import Any, cast

import mlir_programs
import pytest
from memref_programs import caller, memref_program
from memref_programs import run as run_memrefs
from modules import run
from plan_checks import refused, unproved
from upstream import with_each_mlir
from xdsl.dialects import memref
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.dlti import TargetDeviceSpecAttr, TargetSystemSpecAttr
from xdsl.dialects.func import FuncOp
from xdsl.printer import Printer

import tensorplan
from tensorplan.dialects.target_memory import TARGET
from tensorplan.dialects.tgraph.base import AnyMemRef
from tensorplan.frontends.mlir_text import parse_module
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.runtime.backends.mlir.executable import Tools

M = "memref<16xf32>"
BASE = 0x4000_0000
FORMS = {
    "argument": PlanMemory(arena="argument"),
    "global": PlanMemory(arena="global"),
    "address": PlanMemory(arena="address"),
}
each_form = pytest.mark.parametrize("form", FORMS)

LEAF = f"""
func.func private @leaf(%x: {M}, %r: {M}) {{
  %a = memref.alloc() : {M}
  "memref.copy"(%x, %a) : ({M}, {M}) -> ()
  %b = memref.alloc() : {M}
  "memref.copy"(%a, %b) : ({M}, {M}) -> ()
  "memref.copy"(%b, %r) : ({M}, {M}) -> ()
  memref.dealloc %a : {M}
  memref.dealloc %b : {M}
  func.return
}}"""
TREE = f"""{LEAF}
func.func private @middle(%x: {M}, %r: {M}) {{
  %a = memref.alloc() : {M}
  func.call @leaf(%x, %a) : ({M}, {M}) -> ()
  func.call @leaf(%a, %r) : ({M}, {M}) -> ()
  memref.dealloc %a : {M}
  func.return
}}
func.func @root(%x: {M}, %r: {M}) {{
  %a = memref.alloc() : {M}
  func.call @middle(%x, %a) : ({M}, {M}) -> ()
  %b = memref.alloc() : {M}
  func.call @leaf(%a, %b) : ({M}, {M}) -> ()
  memref.dealloc %a : {M}
  func.call @middle(%b, %r) : ({M}, {M}) -> ()
  memref.dealloc %b : {M}
  func.return
}}"""


def bytes_of(module: ModuleOp, name: str) -> int:
    """The size in bytes of the only arena of a function."""
    (func,) = (
        op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == name
    )
    sources = {v.source: v for v in func.walk() if isinstance(v, memref.ViewOp)}
    ((source, _),) = sources.items()
    return cast(AnyMemRef, source.type).get_shape()[0]


@each_form
def test_frames_of_callees_share_bytes(form: str) -> None:
    module = run(program(TREE), FORMS[form])
    assert bytes_of(module, "leaf") == 128
    assert bytes_of(module, "middle") == 64 + 128
    assert bytes_of(module, "root") == 64 + 192  # @leaf's frame and %b lie in 192
    assert not any(isinstance(op, memref.AllocOp) for op in module.walk())


FEW = ("line_07", "flow_07", "flow_16")
"""Programs that run in all forms of arenas; the others run in one form each."""


def programs_and_forms() -> list[Any]:
    names = sorted(path.stem for path in (mlir_programs.HERE / "programs").iterdir())
    in_turn = zip(names, cycle(FORMS), strict=False)
    others = [pair for pair in in_turn if pair[0] not in FEW]
    return [
        *(pytest.param(*pair) for pair in product(FEW, FORMS)),
        *(pytest.param(*pair, marks=pytest.mark.thorough) for pair in others),
    ]


MAIN = {
    "argument": """
func.func @main() {{
  %arena = memref.alloc() {{alignment = 64 : i64}} : memref<{bytes}xi8>
  func.call @root(%arena) : (memref<{bytes}xi8>) -> ()
  memref.dealloc %arena : memref<{bytes}xi8>
  func.return
}}""",
    "global": """
func.func @main() {{
  func.call @root() : () -> ()
  func.return
}}""",
    "address": """
llvm.func @mmap(!llvm.ptr, i64, i32, i32, i32, i64) -> !llvm.ptr
func.func @main() {{
  %at = arith.constant {base} : i64
  %address = llvm.inttoptr %at : i64 to !llvm.ptr
  %bytes = arith.constant {bytes} : i64
  %read_write = arith.constant 3 : i32
  %private_anonymous_fixed = arith.constant 1048610 : i32
  %none = arith.constant -1 : i32
  %zero = arith.constant 0 : i64
  %0 = llvm.call @mmap(%address, %bytes, %read_write, %private_anonymous_fixed, %none,
    %zero) : (!llvm.ptr, i64, i32, i32, i32, i64) -> !llvm.ptr
  func.call @root() : () -> ()
  func.return
}}""",
}
"""For each form of arena, functions that provide the arena of @root and call it."""


def program(text: str, base: int = BASE) -> ModuleOp:
    """The module on a target whose only memory starts at address `base`."""
    module = parse_module(text, "test.mlir", tensorplan.context())
    ram = {"capacity": 1 << 16, "base": base, "alignment": 64, "space": ""}
    memory = {
        name: StringAttr("") if value == "" else IntegerAttr(cast(int, value), i64)
        for name, value in ram.items()
    }
    spec = TargetSystemSpecAttr({"ram": TargetDeviceSpecAttr(cast(Any, memory))})
    module.attributes[TARGET] = spec
    return module


def text_of(module: ModuleOp, more: str) -> str:
    """The text of a module with the functions of `more` added, without attributes of
    DLTI, which mlir-runner does not know."""
    del module.attributes[TARGET]
    for op in list(program(more).body.block.ops):
        op.detach()
        module.body.block.add_op(op)
    stream = StringIO()
    Printer(stream, print_generic_format=True).print_op(module)
    return stream.getvalue()


@pytest.mark.skipif(not mlir_programs.LIBRARIES, reason="no libmlir_runner_utils")
@with_each_mlir
@pytest.mark.parametrize(("name", "form"), programs_and_forms())
def test_values_in_each_form_of_arena(name: str, form: str, tools: Tools) -> None:
    text = (mlir_programs.HERE / "programs" / f"{name}.mlir").read_text()
    module = program(text)
    for op in module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            op.sym_name = StringAttr("root")
    module = run(module, FORMS[form])
    expected = json.loads((mlir_programs.HERE / "expected.json").read_text())
    main = MAIN[form].format(bytes=bytes_of(module, "root"), base=BASE)
    assert mlir_programs.run_natively(tools, text_of(module, main)) == expected[name]


@pytest.mark.parametrize("form", ["argument", "global"])
@pytest.mark.parametrize(
    "seed",
    [pytest.param(n, marks=pytest.mark.thorough if n > 8 else ()) for n in range(40)],
)
def test_contents_after_random_programs_with_calls(seed: int, form: str) -> None:
    random = Random(f"arenas {seed}")
    size = random.randrange(3, 12)
    text = f"{memref_program(random, size)}\n{caller()}"
    module = program(text)
    planned = run(module, FORMS[form])
    roots = [
        next(
            op for op in m.ops if isinstance(op, FuncOp) and op.sym_name.data == "root"
        )
        for m in (module, planned)
    ]
    for path in range(3):
        before, after = (run_memrefs(root, path, 10**5) for root in roots)
        for number, bytes_ in before.items():
            pairs = zip(bytes_, after[number], strict=True)
            assert all(x is None or x == y for x, y in pairs)


ROWS = "memref<?x8xf32>"
SYMBOLIC = f"""
func.func @root(%x: {ROWS}, %r: {ROWS}) {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : {ROWS}
  %a = memref.alloc(%n) : {ROWS}
  memref.copy %x, %a : {ROWS} to {ROWS}
  %s = memref.alloc() : memref<4x8xf32>
  %b = memref.alloc(%n) : {ROWS}
  memref.copy %a, %b : {ROWS} to {ROWS}
  memref.dealloc %a : {ROWS}
  %v = memref.load %b[%c0, %c0] : {ROWS}
  memref.store %v, %s[%c0, %c0] : memref<4x8xf32>
  %c = memref.alloc(%n) : {ROWS}
  memref.copy %b, %c : {ROWS} to {ROWS}
  memref.dealloc %b : {ROWS}
  memref.copy %c, %r : {ROWS} to {ROWS}
  %w = memref.load %s[%c0, %c0] : memref<4x8xf32>
  memref.store %w, %r[%c0, %c0] : {ROWS}
  memref.dealloc %c : {ROWS}
  memref.dealloc %s : memref<4x8xf32>
  func.return
}}"""
SYMBOLIC_MAIN = f"""
func.func private @printMemrefF32(memref<*xf32>) attributes {{llvm.emit_c_interface}}
func.func private @rows(%n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %x = memref.alloc(%n) : {ROWS}
  %r = memref.alloc(%n) : {ROWS}
  scf.for %i = %c0 to %n step %c1 {{
    scf.for %j = %c0 to %c8 step %c1 {{
      %k = arith.muli %i, %c8 : index
      %m = arith.addi %k, %j : index
      %l = arith.index_cast %m : index to i64
      %v = arith.sitofp %l : i64 to f32
      memref.store %v, %x[%i, %j] : {ROWS}
    }}
  }}
  %bytes = func.call @root_arena_size(%x, %r) : ({ROWS}, {ROWS}) -> index
  %arena = memref.alloc(%bytes) {{alignment = 64 : i64}} : memref<?xi8>
  func.call @root(%x, %r, %arena) : ({ROWS}, {ROWS}, memref<?xi8>) -> ()
  %any = memref.cast %r : {ROWS} to memref<*xf32>
  func.call @printMemrefF32(%any) : (memref<*xf32>) -> ()
  memref.dealloc %arena : memref<?xi8>
  memref.dealloc %x : {ROWS}
  memref.dealloc %r : {ROWS}
  func.return
}}
func.func @main() {{
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  func.call @rows(%c3) : (index) -> ()
  func.call @rows(%c9) : (index) -> ()
  func.return
}}"""


@pytest.mark.skipif(not mlir_programs.LIBRARIES, reason="no libmlir_runner_utils")
@with_each_mlir
def test_arena_of_symbolic_size(tools: Tools) -> None:
    """The caller gets the size of the arena from the size function, to which it passes
    the arguments of the program."""
    module = run(program(SYMBOLIC), FORMS["argument"])
    (said,) = unproved(str(module))
    assert "in ram, whose capacity is not proved to suffice: sizes have no" in said
    printed = mlir_programs.run_natively(tools, text_of(module, SYMBOLIC_MAIN))
    numbers = [float(n) for line in printed for n in re.findall(r"[\d.]+", line)]
    assert numbers == [float(n) for n in (*range(24), *range(72))]


PAIR = f"""{LEAF}
func.func @root(%x: {M}, %r: {M}) {{
  %a = memref.alloc() : {M}
  func.call @leaf(%x, %a) : ({M}, {M}) -> ()
  func.call @leaf(%a, %r) : ({M}, {M}) -> ()
  "memref.copy"(%a, %r) : ({M}, {M}) -> ()
  memref.dealloc %a : {M}
  func.return
}}"""
FRAME = "%leaf_arena = memref.view %arena[%c0]"
FAULTS = {
    "a frame beyond the arena": (
        *("argument", "%leaf_arena_1 = memref.view %arena[%c0]"),
        "%leaf_arena_1 = memref.view %arena[%c128]",
        r"%leaf_arena lies in bytes \[128, 256\), expected within",
    ),
    "a live buffer in a frame": (
        *("global", "%a = memref.view %arena[%c128]", "%a = memref.view %arena[%c0_9]"),
        r"func.call uses buffer %a, whose bytes \[0, 64\) now belong to buffer",
    ),
    "an arena that is too small": (
        *("argument", "memref<192xi8>", "memref<160xi8>"),
        r"lies in bytes \[128, 192\), expected within the arena's \[0, 160\)",
    ),
    "a frame that is aligned to less": (
        *(
            "global",
            "memref<192xi8> {tgraph.arena = 64",
            "memref<192xi8> {tgraph.arena = 32",
        ),
        "func.call passes an arena with alignment 32, expected a multiple of 64",
    ),
    "a size function that returns too little": (
        *("argument", "arith.constant 192", "arith.constant 191"),
        "@root_arena_size returns 191, expected 192 bytes or more for %arena",
    ),
    "a size function that returns what is not known": (
        *("argument", "arith.constant 192 : index", '"test.size"() : () -> index'),
        "@root_arena_size returns unknown, expected 192 bytes or more for %arena",
    ),
    "a size function that returns nothing": (
        *("argument", "func.return %0 : index", "func.return"),
        "@leaf_arena_size returns 0 sizes, expected 1",
    ),
    "a global of another size": (
        *("global", "type = memref<192xi8>", "type = memref<128xi8>"),
        "global @root_arena has type memref<128xi8>, expected memref<192xi8>",
    ),
    "a global that is aligned to less": (
        *("global", "alignment = 64", "alignment = 16"),
        "global @root_arena has alignment 16, expected a multiple of 64",
    ),
    "a global of no alignment": (
        *("global", ", alignment = 64 : i64", ""),
        "global @root_arena has alignment 1, expected a multiple of 64",
    ),
    "a constant global": (
        *("global", "alignment = 64", "constant, alignment = 64"),
        "global @root_arena is constant",
    ),
    "no global": (
        *("global", "get_global @root_arena", "get_global @other"),
        "the module has no global @other",
    ),
    "an address that is aligned to less": (
        *("address", f"{BASE} : i64\n", f"{BASE + 8} : i64\n"),
        f"arena %arena lies at {BASE + 8}, expected a multiple of 64",
    ),
    "an address below the memory": (
        *("address", f"{BASE} : i64\n", f"{BASE - 64} : i64\n"),
        r"lies at addresses \[0x3fffffc0, 0x40000080\), expected within \[0x40000000, ",
    ),
    "an address beyond the memory": (
        *("address", f"{BASE} : i64\n", f"{BASE + 65472} : i64\n"),
        r"lies at addresses \[0x4000ffc0, 0x40010080\), expected within \[0x40000000, ",
    ),
    "an offset in the descriptor": (
        *("address", "%1 = arith.constant 0", "%1 = arith.constant 4"),
        f"arena %arena lies at {BASE + 4}, expected a multiple of 64",
    ),
    "an arena that is no argument": (
        *("argument", "(%x, %a, %leaf_arena)", "(%x, %a, %other)"),
        "func.call passes an arena with alignment 1, expected a multiple of 64",
    ),
}


def edited(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_refused(fault: str) -> None:
    form, old, new, message = FAULTS[fault]
    text = str(run(program(PAIR), FORMS[form]))
    text = text.replace("%c128 = ", "%c0_9 = arith.constant 0 : index\n%c128 = ")
    other = "%other = memref.alloc() : memref<128xi8>\n%c128 = "
    text = text.replace("%c128 = ", other, 1)
    assert unproved(text) == []
    refused(edited(text, old, new), message)


def test_a_frame_that_is_too_small_is_refused() -> None:
    text = str(run(program(PAIR), FORMS["argument"]))
    made = "%leaf_arena = memref.view %arena[%c0][]"
    frame = made + " {tgraph.arena} : memref<192xi8> to "
    text = edited(text, f"{frame}memref<128xi8>", f"{frame}memref<64xi8>")
    operands = f"{M}, memref<128xi8>) -> ()"
    first, _, rest = text.partition(operands)
    text = f"{first}{M}, memref<64xi8>) -> (){rest}"
    refused(text, "func.call passes memref<64xi8> as an arena, expected memref<128xi8>")


def test_a_frame_that_is_passed_twice_is_refused() -> None:
    bytes = "memref<64xi8>"
    twice = f"""
    func.func @leaf(%x: {bytes}, %arena: {bytes} {{tgraph.arena = 1 : i64}}) {{
      func.return
    }}
    func.func @root() {{
      %a = memref.alloc() : {bytes}
      func.call @leaf(%a, %a) : ({bytes}, {bytes}) -> ()
      memref.dealloc %a : {bytes}
      func.return
    }}"""
    refused(twice, "func.call passes memory of its operand 0 as operand 1 too")


def at_addresses(root: int, leaf: int) -> str:
    """@root and its callee @leaf, with arenas at the given addresses."""
    declared = PAIR.replace(LEAF, f"func.func private @leaf({M}, {M})")
    module = run(program(declared, root), FORMS["address"])
    callee = run(program(LEAF, leaf), FORMS["address"])
    for op in list(module.ops):
        if isinstance(op, FuncOp) and op.is_declaration:
            op.detach()
    (func,) = callee.ops
    func.detach()
    module.body.block.add_op(func)
    return str(module)


def test_callees_at_addresses_of_their_own() -> None:
    assert unproved(at_addresses(BASE, BASE + 128)) == []
    refused(at_addresses(BASE, BASE), "memref.copy uses buffer %a, whose bytes may")


STRUCT = "!llvm.struct<(!llvm.ptr, !llvm.ptr, i64, !llvm.array<1 x i64>)>"
INSERTED = f"%1 = llvm.insertvalue %p, %s[1] : {STRUCT}"
AT = f"%p = llvm.inttoptr %c : i64 to !llvm.ptr\n{INSERTED}"
UNKNOWN = {
    "of a given descriptor": ("", "%s"),
    "without an offset": (AT, "%1"),
    "without a pointer": (f"%1 = llvm.insertvalue %c, %s[2] : {STRUCT}", "%1"),
    "of a given pointer": (
        f"%1 = llvm.insertvalue %q, %s[1] : {STRUCT}\n"
        f"%2 = llvm.insertvalue %c, %1[2] : {STRUCT}",
        "%2",
    ),
    "of a pointer that is loaded from there": (
        f'%p = "llvm.load"(%c) : (i64) -> !llvm.ptr\n{INSERTED}\n'
        f"%2 = llvm.insertvalue %c, %1[2] : {STRUCT}",
        "%2",
    ),
    "of a given number": (
        f"{AT.replace('%c', '%n')}\n%2 = llvm.insertvalue %c, %1[2] : {STRUCT}",
        "%2",
    ),
    "of a number that an operation reads": (
        f'%m = "test.read"() <{{value = 64 : i64}}> : () -> i64\n'
        f"{AT.replace('%c', '%m')}\n%2 = llvm.insertvalue %c, %1[2] : {STRUCT}",
        "%2",
    ),
    "at a given offset": (f"{AT}\n%2 = llvm.insertvalue %n, %1[2] : {STRUCT}", "%2"),
    "of several values": (
        f"{AT}\n%2 = llvm.insertvalue %c, %1[2] : {STRUCT}",
        "%2, %n",
    ),
}


@pytest.mark.parametrize("address", UNKNOWN)
def test_arenas_without_a_constant_address_get_a_remark(address: str) -> None:
    lines, values = UNKNOWN[address]
    types = f"{STRUCT}, i64" if "," in values else STRUCT
    text = f"""
    func.func @f(%s: {STRUCT}, %q: !llvm.ptr, %n: i64, %x: {M}) {{
      %c0 = arith.constant 0 : index
      %c = arith.constant 4096 : i64
      {lines}
      %arena = builtin.unrealized_conversion_cast {values} : {types} to memref<64xi8>
      %a = memref.view %arena[%c0][] : memref<64xi8> to {M}
      "memref.copy"(%x, %a) : ({M}, {M}) -> ()
      func.return
    }}"""
    (remark,) = unproved(text)
    assert remark.startswith("arenas at addresses that are not constant: 1 (builtin.")


def test_size_function_that_depends_on_arguments_is_refused() -> None:
    vector, bytes = "memref<?xf32>", "memref<64xi8>"
    text = f"""
    func.func @f(%x: {vector}, %arena: {bytes} {{tgraph.arena = 1 : i64}}) {{
      func.return
    }}
    func.func @f_arena_size(%x: {vector}) -> index {{
      %c0 = arith.constant 0 : index
      %n = memref.dim %x, %c0 : {vector}
      func.return %n : index
    }}"""
    refused(text, "@f_arena_size returns unknown, expected 64 bytes or more")


def test_size_function_of_a_function_without_arenas_is_ignored() -> None:
    text = f"""{LEAF.replace("private ", "")}
    func.func @leaf_arena_size() -> index {{
      %0 = arith.constant 128 : index
      func.return %0 : index
    }}"""
    assert unproved(str(run(program(text), PlanMemory()))) == []


def test_constant_global_that_is_no_arena_may_be_viewed() -> None:
    bytes = "memref<64xi8>"
    table = f"""
    memref.global "private" constant @table : {bytes} = dense<1>
    func.func @f(%r: {M}) {{
      %c0 = arith.constant 0 : index
      %table = memref.get_global @table : {bytes}
      %a = memref.view %table[%c0][] : {bytes} to {M}
      "memref.copy"(%a, %r) : ({M}, {M}) -> ()
      func.return
    }}"""
    unproved(table)  # raises nothing


def memory_at(name: str, address: int, type: str, offset: int = 0) -> str:
    """Lines that define memref `%name` of type `type`, `offset` elements after
    `address`."""
    return f"""
      %{name}_at = arith.constant {address} : i64
      %{name}_offset = arith.constant {offset} : i64
      %{name}_p = llvm.inttoptr %{name}_at : i64 to !llvm.ptr
      %{name}_1 = llvm.insertvalue %{name}_p, %s[1] : {STRUCT}
      %{name}_2 = llvm.insertvalue %{name}_offset, %{name}_1[2] : {STRUCT}
      %{name} = builtin.unrealized_conversion_cast %{name}_2 : {STRUCT} to {type}"""


@pytest.mark.parametrize("places", [(4096, 4160), (4160, 4096)])
def test_arenas_at_addresses_lie_apart(places: tuple[int, int]) -> None:
    def two(first: int, second: int) -> str:
        return f"""
    func.func @f(%s: {STRUCT}, %x: {M}) {{
      %c0 = arith.constant 0 : index
      {memory_at("one", first, "memref<64xi8>")}
      {memory_at("other", second, "memref<64xi8>")}
      %a = memref.view %one[%c0][] : memref<64xi8> to {M}
      %b = memref.view %other[%c0][] : memref<64xi8> to {M}
      "memref.copy"(%x, %a) : ({M}, {M}) -> ()
      "memref.copy"(%x, %b) : ({M}, {M}) -> ()
      func.return
    }}"""

    assert unproved(two(*places)) == []
    above = "one" if places[0] > places[1] else "other"
    refused(
        two(*(max(place - 1, 4096) for place in places)),
        f"arena %{above} begins at address 4159, expected 4160 or more",
    )


@pytest.mark.parametrize("address", [4032, 4096])
def test_a_callee_uses_elements_at_an_address(address: int) -> None:
    """The callee stores an element 64 bytes after the address. This is in the caller's
    arena if the address is 4032."""
    text = f"""
    func.func @leaf(%s: {STRUCT}, %v: f32) {{
      %c0 = arith.constant 0 : index
      {memory_at("far", address, M, offset=16)}
      memref.store %v, %far[%c0] : {M}
      func.return
    }}
    func.func @root(%s: {STRUCT}, %x: {M}, %v: f32) {{
      %c0 = arith.constant 0 : index
      {memory_at("arena", 4096, "memref<64xi8>")}
      %a = memref.view %arena[%c0][] : memref<64xi8> to {M}
      "memref.copy"(%x, %a) : ({M}, {M}) -> ()
      func.call @leaf(%s, %v) : ({STRUCT}, f32) -> ()
      "memref.copy"(%a, %x) : ({M}, {M}) -> ()
      func.return
    }}"""
    if address == 4096:
        assert unproved(text) == []
    else:
        refused(text, "memref.copy uses buffer %a, whose bytes may")


def test_a_size_function_of_symbolic_sizes_is_proved() -> None:
    text = str(run(program(SYMBOLIC), FORMS["argument"]))
    head, sizes = text.split("func.func @root_arena_size")
    (largest,) = re.findall(r"%\d+ = arith.maxsi .*", sizes)
    smaller = sizes.replace(largest, largest.replace("maxsi", "minsi"))
    refused(
        f"{head}func.func @root_arena_size{smaller}",
        "not proved for all sizes: buffer %.: it may not lie within its arena",
    )
