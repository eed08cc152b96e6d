"""Tests target memories: their descriptions in files and attributes, plans for them,
and plans that `plan-check` refuses."""

import json
from pathlib import Path

import pytest
from modules import parse, run
from xdsl.dialects.builtin import ModuleOp

import tensorplan
from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.diagnostics import LocatedError
from tensorplan.dialects.target_memory import (
    TARGET,
    read_target,
    slower_memory,
    target_memories,
)
from tensorplan.passes.plan.attach_target import PlanAttachTarget
from tensorplan.passes.plan.memory import PlanMemory

TOML = """
[sram]
capacity = "1KiB"
base = 0x2000_0000
alignment = 32
banks = 4
interleaving = 8
writers = ["tgraph.*", "memref.copy"]
copies.psram = { bandwidth = 0.08, latency = 100, asynchronous = true }

[psram]
capacity = 8388608
space = 2
"""


def described(folder: Path, text: str, name: str = "target.toml") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def test_file_and_attribute_describe_the_same_target(tmp_path: Path) -> None:
    module = parse("func.func @main() { return }")
    run_on = PlanAttachTarget(described(tmp_path, TOML))
    run_on.apply(tensorplan.context(), module)
    sram, psram = target_memories(module).values()
    assert (sram.capacity, sram.base, sram.alignment) == (1024, 0x2000_0000, 32)
    assert (sram.banks, sram.interleaving) == (4, 8)
    assert sram.may_write("tgraph.add")
    assert not sram.may_write("linalg.matmul")
    assert sram.may_read("linalg.matmul")
    copies = sram.copies["psram"]
    assert (copies.bandwidth, copies.latency, copies.asynchronous) == (0.08, 100, True)
    assert (psram.base, str(psram.memory_space)) == (None, "2 : i64")
    again = parse(str(module))
    assert target_memories(again) == target_memories(module)
    tables = {"sram": {"capacity": 1024, "alignment": 32}}
    as_json = read_target(described(tmp_path, json.dumps(tables), "target.json"))
    assert '"sram" = #dlti.target_device_spec<"capacity" = 1024' in str(as_json)


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ('"1KiB"', '"1kb!"', "capacity is '1kb!', expected bytes such as"),
        ('"1KiB"', "-4", r"memory 'sram': capacity is -4, expected more than 0"),
        ('"1KiB"', "true", r"memory 'sram': capacity is True, expected an integer"),
        ("alignment = 32", "alignment = 48", "alignment is 48, expected a power"),
        ("0x2000_0000", "16", "base is 16, expected a multiple of 32, 0 or more"),
        ("banks = 4", "banks = 3", "capacity is 1024, expected a multiple of 24"),
        ("banks = 4", "bank = 4", "property is 'bank', .* did you mean 'banks'"),
        ('["tgraph.*", "memref.copy"]', '"all"', "writers is all, expected a list"),
        ("bandwidth = 0.08,", "", "copies to 'psram': bandwidth is missing"),
        (" 0.08", " 0", "copies to 'psram': bandwidth is 0, expected more than 0"),
        ("copies.psram", "copies.sdram", "copies to 'sdram', expected one of psram"),
        (
            TOML,
            "[sram]\ncapacity = 8\ncopies.sram = { bandwidth = 1 }",
            "copies to 'sram', expected another described memory",
        ),
        ("copies.psram = {", "copies = 3 #", "copies is 3, expected a table"),
        ("space = 2", 'space = "sram"', "'psram' have the same memory space"),
        ("space = 2", "base = 0x2000_0100", "base 536871168, expected at least"),
        ("capacity = 8388608", "", "memory 'psram' has no capacity, expected one"),
        ("[psram]", "[psram", r"target.toml: .*\(at line 11"),
    ],
)
def test_errors_in_a_file_name_the_property(
    was: str, becomes: str, message: str, tmp_path: Path
) -> None:
    assert was in TOML
    with pytest.raises(ValueError, match=message):
        read_target(described(tmp_path, TOML.replace(was, becomes)))


@pytest.mark.parametrize(("name", "text"), [("a.toml", "\n"), ("b.json", "{}")])
def test_file_without_memories_is_refused(name: str, text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{name}: the file describes no memory"):
        read_target(described(tmp_path, text, name))


def test_error_names_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "target.toml"
    path.write_bytes(b'[sram]\nname = "\xff"')
    with pytest.raises(ValueError, match=r"target\.toml: this is not UTF-8$"):
        read_target(str(path))


def test_remark_on_a_target_without_the_used_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = 'the target describes sram, but buffers are in "dram"'
    with caplog.at_level("INFO"):
        run(on(PROGRAM), PlanMemory())
        assert told not in caplog.text
        run(on(PROGRAM.replace('"sram"', '"dram"')), PlanMemory())
    assert told in caplog.text


def test_mistakes_in_an_attribute_are_located() -> None:
    spec = '#dlti.target_system_spec<"sram" = #dlti.target_device_spec<"capacity" = 0>>'
    module = parse(f"module attributes {{{TARGET} = {spec}}} {{}}")
    with pytest.raises(LocatedError, match="memory 'sram': capacity is 0, expected"):
        target_memories(module)


def test_missing_file() -> None:
    with pytest.raises(LocatedError, match=r"^none\.toml: no such file"):
        tensorplan.plan(parse("module {}"), target_memory="none.toml")


PROGRAM = """
!t = memref<64xf32, "sram">
func.func @main(%x: !t, %y: !t) {
  %a = memref.alloc() : !t
  tgraph.negate %x outs(%a) : !t
  %b = memref.alloc() : !t
  tgraph.reverse %a outs(%b) {dimensions = array<i64: 0>} : !t
  memref.dealloc %a : !t
  tgraph.negate %b outs(%y) : !t
  memref.dealloc %b : !t
  func.return
}
"""


def on(text: str, **properties: object) -> ModuleOp:
    """The module on a target whose sram has the given properties."""
    given = {"capacity": 1024, **properties}
    values = ", ".join(
        f'"{name}" = {json.dumps(value)}' for name, value in given.items()
    )
    module = parse(text)
    spec = f'#dlti.target_system_spec<"sram" = #dlti.target_device_spec<{values}>>'
    attributes = parse(f"module attributes {{{TARGET} = {spec}}} {{}}").attributes
    module.attributes[TARGET] = attributes[TARGET]
    return module


def test_plan_that_fits_the_memory() -> None:
    (pool,) = check_plan(run(on(PROGRAM), PlanMemory()))
    assert (pool.size, pool.alignment) == (512, 4)
    (pool,) = check_plan(run(on(PROGRAM, alignment=128), PlanMemory()))
    assert (pool.size, pool.alignment) == (512, 128)


def test_plan_that_exceeds_the_memory_is_refused() -> None:
    message = (
        "arena in sram takes 512 bytes, expected at most 508: the memory has 1020, "
        "512 of them arguments'; in this order 512 bytes are live at once"
    )
    with pytest.raises(LocatedError, match=message):
        run(on(PROGRAM, capacity=1020), PlanMemory())


# A plan for one target, checked for a different target.
FAULTS = {
    "capacity": ({"capacity": 1023}, r"@main has 1024 bytes in sram, 512 of them"),
    "base": ({"base": 2}, "arena has alignment 4, expected one that divides .* 0x2"),
    "readers": ({"readers": ["dma.*"]}, "negate reads sram, but only dma.* may"),
    "writers": ({"writers": []}, "negate writes sram, but no operation may write it"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_plan_check_refuses_plans_for_another_target(name: str) -> None:
    properties, message = FAULTS[name]
    planned = run(on(PROGRAM), PlanMemory())
    check_plan(planned)
    with pytest.raises(LocatedError, match=message):
        check_plan(on(str(planned), **properties))


def test_arguments_of_symbolic_size_are_replaced_by_their_bounds() -> None:
    named = "{tgraph.dims = #tgraph.dims<n>}"
    text = f"""
    !t = memref<?xf32, "sram">
    func.func @f(%x: !t {named}, %y: !t {named}) {{
      %zero = arith.constant 0 : index
      %n = memref.dim %x, %zero : !t
      %a = memref.alloc(%n) : !t
      linalg.exp ins(%x : !t) outs(%a : !t)
      linalg.exp ins(%a : !t) outs(%y : !t)
      func.return
    }}"""
    planner = PlanMemory(bounds="n<=64")
    planned = run(on(text, capacity=768), planner)
    with pytest.raises(LocatedError, match="768 bytes in sram, 512 of them arguments'"):
        check_plan(on(str(planned), capacity=767))
    with pytest.raises(LocatedError, match="has 767, 512 of them arguments'"):
        run(on(text, capacity=767), planner)


def test_target_in_the_python_api(tmp_path: Path) -> None:
    program = """
    func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
      %y = tgraph.reverse %x {dimensions = array<i64: 0>} : tensor<16xf32>
      %z = tgraph.exponential %y : tensor<16xf32>
      %r = tgraph.reverse %z {dimensions = array<i64: 0>} : tensor<16xf32>
      func.return %r : tensor<16xf32>
    }"""
    target = described(tmp_path, '["cpu:0"]\ncapacity = 100\n')
    with pytest.raises(LocatedError, match="has 100, 128 of them arguments'"):
        tensorplan.plan(parse(program), target_memory=target)


MOVED = """
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "sram" = #dlti.target_device_spec<"capacity" = 1024>,
  "psram" = #dlti.target_device_spec<"capacity" = 256, "base" = 4096,
    "readers" = ["memref.copy"], "writers" = ["memref.copy"]>>} {
func.func @main(%x: memref<64xf32, "sram">, %y: memref<64xf32, "sram">) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<512xi8, "sram">
  %far = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<256xi8, "psram">
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %a = memref.view %arena[%c0][] : memref<512xi8, "sram"> to memref<64xf32, "sram">
  tgraph.negate %x outs(%a) : memref<64xf32, "sram">
  %away = memref.view %far[%c0][] : memref<256xi8, "psram"> to memref<64xf32, "psram">
  STORE
  %b = memref.view %arena[%c0][] : memref<512xi8, "sram"> to memref<64xf32, "sram">
  tgraph.tanh %x outs(%b) : memref<64xf32, "sram">
  LATER
  %c = memref.view %arena[%c256][] : memref<512xi8, "sram"> to memref<64xf32, "sram">
  tgraph.reverse %b outs(%c) {dimensions = array<i64: 0>} : memref<64xf32, "sram">
  %back = memref.view %arena[%c0][] : memref<512xi8, "sram"> to memref<64xf32, "sram">
  FETCH
  tgraph.add %c, %back outs(%y) : memref<64xf32, "sram">
  memref.dealloc %arena : memref<512xi8, "sram">
  memref.dealloc %far : memref<256xi8, "psram">
  func.return
}
}
"""
STORE, FETCH = (
    f'"memref.copy"({values}) : (memref<64xf32, "{a}">, memref<64xf32, "{b}">) -> ()'
    for values, a, b in (
        ("%a, %away", "sram", "psram"),
        ("%away, %back", "psram", "sram"),
    )
)
OTHER = (
    '%other = memref.view %far[%c0][] : memref<256xi8, "psram"> to '
    'memref<64xf32, "psram">\n' + STORE.replace("%a, %away", "%b, %other")
)


def moved(store: str = STORE, later: str = "", fetch: str = FETCH) -> str:
    """A program with a value that is in psram while another value uses its bytes in
    sram."""
    text = MOVED.replace("STORE", store).replace("LATER", later)
    return text.replace("FETCH", fetch)


MOVED_WRONG = {
    "stored too late": (moved(store="", later=STORE), "uses buffer %a, whose bytes"),
    "not fetched": (moved(fetch=""), "reads buffer %back"),
    "another value where it is away": (
        moved(later=OTHER),
        "uses buffer %away, whose bytes .* %other",
    ),
    "read where it was": (
        moved().replace("%c, %back", "%c, %a"),
        "uses buffer %a, whose",
    ),
    "fetched over a value that is read": (
        moved().replace(
            "%back = memref.view %arena[%c0]", "%back = memref.view %arena[%c256]"
        ),
        "uses buffer %c, whose bytes .* %back",
    ),
    "beyond its slot": (
        moved().replace("%far[%c0]", "%far[%c256]"),
        r"buffer %away lies in bytes \[256, 512\), expected within",
    ),
    "beyond the slow memory": (
        moved().replace('"capacity" = 256', '"capacity" = 255'),
        "has 256 bytes in psram",
    ),
    "beyond the fast memory": (
        moved().replace('"capacity" = 1024', '"capacity" = 1023'),
        "has 1024 bytes in sram, 512 of them arguments'",
    ),
    "at an address of another alignment": (
        moved().replace('"base" = 4096', '"base" = 4128'),
        "arena has alignment 64, expected one that divides .* psram, 0x1020",
    ),
    "stored by an operation that may not": (
        moved().replace('"writers" = ["memref.copy"]', '"writers" = ["dma.*"]'),
        "memref.copy writes psram, but only dma.* may write it",
    ),
    "fetched without a store": (
        moved(store=""),
        "reads all 256 bytes of buffer %back, of which at most 0 were written",
    ),
    "fetched by an operation that may not": (
        moved().replace('"readers" = ["memref.copy"]', '"readers" = ["dma.*"]'),
        "memref.copy reads psram, but only dma.* may read it",
    ),
}


def test_moved_value_is_proved() -> None:
    fast, slow = sorted(check_plan(parse(moved())), key=lambda pool: -pool.size)
    assert (fast.device, fast.size, slow.device, slow.size) == (
        *("sram", 512),
        *("psram", 256),
    )


@pytest.mark.parametrize("name", MOVED_WRONG)
def test_wrong_moves_are_refused(name: str) -> None:
    text, message = MOVED_WRONG[name]
    with pytest.raises(LocatedError, match=message):
        check_plan(parse(text))


def test_buffers_spill_to_a_larger_memory(tmp_path: Path) -> None:
    """L2 spills to L3, not to L1, although copies to L1 are faster."""
    text = """
    [L1]
    capacity = 1024
    copies.L2 = { bandwidth = 8 }
    [L2]
    capacity = 8192
    copies.L1 = { bandwidth = 9 }
    copies.L3 = { bandwidth = 0.5 }
    [L3]
    capacity = 65536
    """
    module = parse("module {}")
    PlanAttachTarget(described(tmp_path, text)).apply(tensorplan.context(), module)
    memories = target_memories(module)
    first, second, last = memories.values()
    assert slower_memory(first, memories) == (
        *(second, first.copies["L2"]),
        second.copies["L1"],
    )
    there = second.copies["L3"]
    assert slower_memory(second, memories) == (last, there, there)
    assert slower_memory(last, memories) is None
