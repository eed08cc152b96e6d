"""Random programs that exceed their memory, and the output of plan-spill for them."""

from collections.abc import Callable, Iterator
from itertools import count
from random import Random

from memref_programs import assert_same_contents, function
from memref_programs import run as run_memrefs
from modules import parse, run
from xdsl.dialects.builtin import ModuleOp, NoneAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from tensorplan.analysis.sizes import argument_bytes
from tensorplan.checking.plan_check import check_plan
from tensorplan.dialects.target_memory import TARGET
from tensorplan.passes.plan.memory import PlanMemory
from tensorplan.passes.plan.spill import PlanSpill


def on(text: str, capacity: int, accesses: str) -> ModuleOp:
    """A program on a target whose default memory has `capacity` bytes. The operations
    `accesses` can also read and write a slower memory."""
    target = parse(f"""module attributes {{
      {TARGET} = #dlti.target_system_spec<
        "fast" = #dlti.target_device_spec<"capacity" = {capacity}, "space" = "",
          "copies" = #dlti.map<"slow" = #dlti.map<"bandwidth" = 1>>>,
        "slow" = #dlti.target_device_spec<"capacity" = 1048576,
          "readers" = [{accesses}], "writers" = [{accesses}]>>}} {{}}""")
    module = parse(text)
    module.attributes[TARGET] = target.attributes[TARGET]
    return module


def function_of(module: ModuleOp) -> FuncOp:
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return function


def final_contents(module: ModuleOp, paths: int = 4) -> list[dict[int, list[object]]]:
    """The final contents of the arguments, on each of `paths` random paths."""
    return [run_memrefs(function_of(module), path, 10**5) for path in range(paths)]


def assert_same_bytes(module: ModuleOp, other: ModuleOp, paths: int = 4) -> None:
    """Asserts that two programs write the same bytes on each of `paths` paths."""
    for before, after in zip(
        final_contents(module, paths), final_contents(other, paths), strict=True
    ):
        assert_same_contents(before, after)


WHILE = [
    "%again = scf.while (%go = %c) : (i1) -> i1 {",
    "scf.condition(%go) %go : i1\n} do {\n^body(%goes: i1):",
]
"""The lines that start the regions of a while loop."""


def straight_program(random: Random) -> str:
    """A program with long-lived buffers. memref.copy and linalg.copy write them, wholly
    or in parts, also in loops and branches."""
    types = [f"memref<{n}xf32>" for n in (8, 32, 64)]
    there = {type: [f"%i{n}", f"%o{n}"] for n, type in enumerate(types)}
    arguments = ", ".join(
        f"%i{n}: {type}, %o{n}: {type}" for n, type in enumerate(types)
    )
    names = (f"%v{n}" for n in count())

    def copied(source: str, target: str, type: str) -> str:
        if random.random() < 0.5:
            return f'"memref.copy"({source}, {target}) : ({type}, {type}) -> ()'
        return f"linalg.copy ins({source} : {type}) outs({target} : {type})"

    def step(is_inside: bool = False) -> Iterator[str]:
        type = random.choice(types)
        source, target = (random.choice(there[type]) for _ in range(2))
        kinds = ["new", "new", "copy", "part", "loop", "branch", "body"]
        match random.choice(kinds):
            case "body" if not is_inside:  # its allocations stay local
                loop = f"scf.for {next(names)} = %zero to %n step %one {{"
                starts = random.choice([[loop], ["scf.if %c {", "} else {"], WHILE])
                for start in starts:
                    outside = {type: list(known) for type, known in there.items()}
                    yield start.replace("%again", next(names))
                    for _ in range(random.randint(3, 9)):
                        yield from step(is_inside=True)
                    there.update(outside)
                yield "scf.yield %c : i1\n}" if starts is WHILE else "}"
            case "new":
                target = next(names)
                yield f"{target} = memref.alloc() : {type}"
                yield copied(source, target, type)
                there[type].append(target)
            case "copy" if not target.startswith("%i"):
                yield copied(source, target, type)
            case "part" if not target.startswith("%i"):
                part = f"memref<4xf32, strided<[1], offset: {4 * random.randrange(2)}>>"
                views = [next(names) for _ in range(2)]
                for view, viewed in zip(views, (source, target), strict=True):
                    given = f"{viewed}[{part[-3]}] [4] [1] : {type}"
                    yield f"{view} = memref.subview {given} to {part}"
                source, target = views
                yield copied(source, target, part)
            case "loop" | "branch" as kind:
                if random.random() < 0.5:
                    target = next(names)
                    yield f"{target} = memref.alloc() : {type}"
                    there[type].append(target)
                elif target.startswith("%i"):
                    target = f"%o{types.index(type)}"
                is_loop = kind == "loop"
                loop = f"scf.for {next(names)} = %zero to %n step %one {{"
                yield loop if is_loop else "scf.if %c {"
                yield copied(source, target, type)
                yield "}"
            case _:
                pass

    lines = [line for _ in range(random.randint(4, 30)) for line in step()]
    for number, type in enumerate(types):
        lines.append(copied(there[type][-1], f"%o{number}", type))
    return function(arguments, lines)


def tiled_program(random: Random) -> str:
    """A program that reads and writes parts of two buffers, at constant offsets and in
    loops over tiles. Both are seldom needed as a whole, and others need room."""
    whole, tile = "memref<64xf32>", "memref<8xf32, strided<[1], offset: ?>>"
    names = (f"%v{n}" for n in count())
    buffers = ["%a", "%b"]

    def copied(source: str, target: str, type: str) -> str:
        return f"linalg.copy ins({source} : {type}) outs({target} : {type})"

    def part(of: str, offset: str) -> str:
        return f"memref.subview {of}[{offset}] [8] [1] : {whole} to {tile}"

    def accesses(offset: str) -> Iterator[str]:
        """Yields several operations on two tiles."""
        views: list[str] = []
        for of in random.sample([*buffers, "%o"], 2):
            at = random.choice([offset, offset, "%zero", "%eight"])
            yield f"{(view := next(names))} = {part(of, at)}"
            views.append(view)
        for _ in range(random.randint(1, 3)):
            source, target = random.sample(views, 2)
            yield copied(source, target, tile)

    def step() -> Iterator[str]:
        match random.choice(["fill", "crowd", "crowd", "part", "loop", "loop", "out"]):
            case "fill":
                yield copied("%i", random.choice(buffers), whole)
            case "crowd":
                name = next(names)
                yield f"{name} = memref.alloc() : {whole}"
                yield copied("%i", name, whole)
                yield copied(name, "%o", whole)
                yield f"memref.dealloc {name} : {whole}"
            case "part":
                yield from accesses(random.choice(["%eight", "%zero"]))
            case "loop":
                index = next(names)
                yield f"scf.for {index} = %zero to %end step %eight {{"
                yield from accesses(index)
                yield "}"
            case _:
                yield copied(random.choice(buffers), "%o", whole)

    lines = ["%eight = arith.constant 8 : index", "%end = arith.constant 64 : index"]
    for name in buffers:
        lines += [f"{name} = memref.alloc() : {whole}", copied("%i", name, whole)]
    for _ in range(random.randint(3, 12)):
        lines += step()
    lines += [copied(name, "%o", whole) for name in buffers]
    return function(f"%i: {whole}, %o: {whole}", lines)


def peak(module: ModuleOp) -> int:
    """The size in bytes of the arena of the default memory."""
    planned = run(module, PlanMemory())
    return sum(p.size for p in check_plan(planned) if p.device == "" and not p.argument)


def fitted(
    random: Random, *first: ModulePass, program: Callable[[Random], str] | None = None
) -> tuple[ModuleOp, ModuleOp]:
    """A random program that exceeds its memory, after the passes `first`, and the
    output of plan-spill for it."""
    text = (program or straight_program)(random)
    accesses = '"memref.copy"' + ', "linalg.copy"' * random.randint(0, 1)
    module = run(on(text, 1 << 20, accesses), *first)
    given, _ = argument_bytes(function_of(module), NoneAttr(), {})
    capacity = given + peak(module) * random.randint(3, 9) // 10 + 1
    module = run(on(text, capacity, accesses), *first)
    return module, run(module, PlanSpill())
