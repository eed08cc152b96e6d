"""Mutates programs that JAX exported, to StableHLO text that jaxlib still accepts.

    text = model_text(Random(17))

Mutations preserve the structure. They change all occurrences of a size, replace an
operation by another of the same type, change a number or the element type, duplicate a
line and divide its uses, and permute donated arguments and results. A mutation is
undone if the program no longer verifies.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from pathlib import Path
from random import Random

from jaxlib.mlir import ir

from tensorplan.frontends import bytecode

FOLDER = Path(__file__).parents[1] / "models"
MODELS = ("mlp_infer", "lstm_scan_infer", "lenet_infer")
LARGE_MODELS = ("mlp_train_adam", "lenet_train", "lstm_scan_train", "gpt2_scan_train")
REAL = [FOLDER / f"{name}.mlir" for name in MODELS * 3 + LARGE_MODELS]
SMALL = sorted((Path(__file__).parent / "programs").glob("*.mlir"))
ELEMENTS = 6_000
"""The most elements of a tensor. Models with larger tensors are shrunk first."""

BINARY = ("add", "subtract", "multiply", "maximum", "minimum")
UNARY = ("tanh", "logistic", "negate", "abs", "sine", "cosine")
NUMBERS = ("0.000000e+00", "1.000000e+00", "-5.000000e-01", "2.500000e-01")

Mutation = Callable[[str, Random], str]

_TENSOR = re.compile(r"tensor<((?:\d+x)+)[a-z]")
_OP = r"stablehlo\.({})( [^:\n]*: tensor<[^>\n]*f(?:32|64)>)$"
_VALUE = re.compile(r"^( +)(%\w+) = (stablehlo\.\w+ .*)$", re.MULTILINE)
_SIGNATURE = re.compile(
    r"@main\((.*)\) -> \((.*)\) \{\n((?:.*\n)*?)    return (.*) : (.*)"
)


def model_text(random: Random) -> str:
    text = _small(random.choice(REAL if random.random() < 0.3 else SMALL))
    for mutate in random.choices(MUTATIONS, k=random.randint(1, 8)):
        changed = mutate(text, random)
        if changed != text and is_valid(changed):
            text = changed
    return text


def is_valid(text: str) -> bool:
    """Whether MLIR accepts `text`. tensorplan must then import it."""
    with bytecode.context() as context:
        try:
            ir.Module.parse(text, context)
        except ir.MLIRError:
            return False
    return True


@cache
def _small(model: Path) -> str:
    """The model with sizes reduced, largest first, until no tensor is too large."""
    text = model.read_text()
    sizes = sorted({n for shape in _shapes(text) for n in shape}, reverse=True)
    for size in sizes:
        if max(map(prod, _shapes(text))) <= ELEMENTS:
            break
        for smaller in (3, 5, 6, 8):
            changed = _resized(text, size, smaller)
            if smaller < size and is_valid(changed):
                text = changed
                break
    return text


def _shapes(text: str) -> list[list[int]]:
    return [[*map(int, shape.split("x")[:-1])] for shape in _TENSOR.findall(text)]


def _resized(text: str, size: int, other: int) -> str:
    """Replaces `size` in all types, and equal numbers in brackets."""
    text = re.sub(rf"(?<=[<x]){size}(?=[x,])", str(other), text)
    return re.sub(rf"(?<=[\[:, ]){size}(?=[\],:])", str(other), text)


def _size(text: str, random: Random) -> str:
    sizes = sorted({n for shape in _shapes(text) for n in shape})
    return _resized(text, random.choice(sizes), random.randint(1, 9))


def _operation(text: str, random: Random) -> str:
    choices = random.choice([BINARY, UNARY])
    found = list(re.finditer(_OP.format("|".join(choices)), text, re.MULTILINE))
    if not found:
        return text
    op = random.choice(found)
    return _spliced(text, op, f"stablehlo.{random.choice(choices)}{op[2]}")


def _number(text: str, random: Random) -> str:
    found = list(re.finditer(r"(?<=dense<)-?\d\.\d+e[+-]\d+(?=>)", text))
    if not found:
        return text
    return _spliced(text, random.choice(found), random.choice(NUMBERS))


def _element(text: str, random: Random) -> str:
    return re.sub(r"(?<=[x<])f32(?=>)", random.choice(["f64", "f16", "bf16"]), text)


def _twice(text: str, random: Random) -> str:
    """Computes a value twice, and lets random uses read the copy."""
    found = list(_VALUE.finditer(text))
    line = random.choice(found)
    copy = f"{line[2]}_again"
    if copy in text:
        return text
    outside = re.compile(rf"^ {{0,{len(line[1]) - 1}}}\S", re.MULTILINE)
    left = outside.search(text, line.end())
    end = left.start() if left else len(text)
    rest = text[line.end() : end]
    read = re.compile(rf"{line[2]}(?![\w#:])")
    uses = [use for use in read.finditer(rest) if random.random() < 0.5]
    for use in reversed(uses):
        rest = rest[: use.start()] + copy + rest[use.end() :]
    again = f"{line[0]}\n{line[1]}{copy} = {line[3]}"
    return text[: line.start()] + again + rest + text[end:]


def _donated(text: str, random: Random) -> str:
    """Donates an argument to a result of its type or to none, or removes a donation."""
    if (main := _SIGNATURE.search(text)) is None:
        return text
    if random.random() < 0.3:
        return _spliced(
            text, main, re.sub(r" \{tf.aliasing.*?\}", "", main[0], count=1)
        )
    if random.random() < 0.3:
        free = list(re.finditer(r"tensor<[^>]*>(?=,|$)", main[1]))
        at = main.start(1) + random.choice(free).end() if free else 0
        return f"{text[:at]} {{jax.buffer_donor = true}}{text[at:]}" if at else text
    results = re.findall(r"tensor<[^>]*>", main[2])
    number = random.randrange(len(results))
    if f"aliasing_output = {number} " in main[1]:
        return text
    donors = list(re.finditer(rf"{re.escape(results[number])}(?=,|$)", main[1]))
    if not donors:
        return text
    donor = random.choice(donors)
    attribute = f" {{tf.aliasing_output = {number} : i32}}"
    at = main.start(1) + donor.end()
    return text[:at] + attribute + text[at:]


def _results(text: str, random: Random) -> str:
    """Permutes the results, unless arguments are donated to them."""
    main = _SIGNATURE.search(text)
    if main is None or "aliasing_output" in main[1]:
        return text
    values, types = main[4].split(", "), re.findall(r"tensor<[^>]*>", main[5])
    order = random.sample(range(len(values)), len(values))
    values, types = ([found[n] for n in order] for found in (values, types))
    returned = ", ".join(types)
    return _spliced(
        text,
        main,
        f"@main({main[1]}) -> ({returned}) {{\n{main[3]}"
        f"    return {', '.join(values)} : {returned}",
    )


def _spliced(text: str, at: re.Match[str], new: str) -> str:
    return text[: at.start()] + new + text[at.end() :]


MUTATIONS: Sequence[Mutation] = [
    *(_size, _size, _operation, _operation, _operation),
    *(_number, _element, _twice, _twice, _donated, _results),
]
