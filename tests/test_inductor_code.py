"""Tests the reader of Inductor's output code.

It reads code of PyTorch 2.11 for an H200, and small programs in the same form.
`test_foreign_plans.py` also tests code for CPUs.
"""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tensorplan.checking.foreign import audit
from tensorplan.frontends.plans.inductor_kernels import (
    READ,
    UPDATED,
    WRITTEN,
    Use,
    kernels,
)
from tensorplan.frontends.plans.reading import read
from tensorplan.reporting.foreign import account
from tensorplan.support.foreign_plan import (
    ForeignPlan,
    ForeignPlanError,
    Step,
    steps_in,
)
from tensorplan.tools import plan_audit

FOLDER = Path(__file__).parent / "foreign" / "inductor"


def plan_of(text: str, folder: Path) -> ForeignPlan:
    path = folder / "net.output_code.py"
    path.write_text(text)
    return read(path)


def verdict_of(text: str, folder: Path) -> str:
    try:
        return audit(plan_of(text, folder)).verdict
    except ForeignPlanError as error:
        return "no value" if "has no value here" in error.reason else error.reason


# `measured` is what `torch.cuda.max_memory_allocated` counted, less its initial value.
@pytest.mark.parametrize(
    ("name", "measured", "placement"),
    [("bert_block", 17_920, 2_560), ("keywords", 30_720, 0)],
)
def test_code_for_a_gpu(
    name: str, measured: int, placement: int, tmp_path: Path
) -> None:
    """The plan has the measured bytes and is proved. The first program uses pools."""
    plan = plan_of((FOLDER / f"{name}.cuda.txt").read_text(), tmp_path)
    assert audit(plan).verdict == "proved"
    assert not plan.not_understood
    assert plan.memories["cuda:0"].size == measured
    assert account(plan).lost_by_placement == placement
    origins = {step.operation for step in steps_in(plan.steps)}
    assert not any(origin.startswith("triton") for origin in origins)


def planted(text: str, steps: list[Step], kept: set[str]) -> Iterator[str]:
    """Yields the code without a step whose results are used, and with two steps
    swapped."""
    lines = text.splitlines(keepends=True)
    used = kept | {value.name for step in steps for value in step.reads}
    places = [int(step.location.rpartition(":")[2]) - 1 for step in steps]
    for step, at in zip(steps, places, strict=True):
        if used & {value.name for value in step.writes}:
            indent = re.match(r"\s*", lines[at])
            assert indent
            yield "".join([*lines[:at], f"{indent[0]}pass\n", *lines[at + 1 :]])
    for n, (first, second) in enumerate(pairwise(steps)):
        if {v.name for v in first.writes} & {v.name for v in second.reads}:
            changed = lines[:]
            a, b = places[n], places[n + 1]
            changed[a], changed[b] = lines[b], lines[a]
            yield "".join(changed)


@pytest.mark.parametrize("name", ["bert_block.cuda", "keywords.cuda", "net"])
def test_each_step_that_is_missing_or_late_is_found(name: str, tmp_path: Path) -> None:
    text = (FOLDER / f"{name}.txt").read_text()
    plan = plan_of(text, tmp_path)
    kept = {value.name for value in plan.kept}
    count = 0
    for changed in planted(text, [*steps_in(plan.steps)], kept):
        count += 1
        assert verdict_of(changed, tmp_path) in ("unsound", "no value")
    assert count >= 9


def with_overlapping_offset(text: str) -> str:
    """Returns the code with the offset of the second tensor in a pool replaced by 0."""
    found = re.search(r"buf\d+ = alloc_from_pool\((\w+), (?!0,)\d+", text)
    assert found
    return text.replace(found[0], re.sub(r"\d+$", "0", found[0]), 1)


def test_an_offset_that_overlaps_a_live_tensor_is_found(tmp_path: Path) -> None:
    text = (FOLDER / "bert_block.cuda.txt").read_text()
    assert verdict_of(with_overlapping_offset(text), tmp_path) in (
        "unsound",
        "suspicious",
    )


KERNELS = """
add = async_compile.triton('add', '''
@triton_heuristics.pointwise(inductor_meta={'mutated_arg_names': []})
@triton.jit
def add(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_ptr0 + (x0), None)
    tl.store(out_ptr0 + (x0), tmp0, None)
''', device_str='cuda')

increment = async_compile.triton('increment', '''
@triton_heuristics.pointwise(inductor_meta={'mutated_arg_names': ['in_out_ptr0']})
@triton.jit
def increment(in_out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tmp0 = tl.load(in_out_ptr0 + (x0), None)
    tl.store(in_out_ptr0 + (x0), tmp0 + 1, None)
''', device_str='cuda')

scan = async_compile.triton('scan', '''
@triton_heuristics.pointwise(inductor_meta={'mutated_arg_names': ['ws_ptr']})
@triton.jit
def scan(in_ptr0, out_ptr0, ws_ptr, xnumel, XBLOCK : tl.constexpr):
    tl.store(ws_ptr + (x0), tl.load(in_ptr0 + (x0), None), None)
''', device_str='cuda')

accumulate = async_compile.triton('accumulate', '''
@triton_heuristics.pointwise(inductor_meta={'mutated_arg_names': ['out_ptr0']})
@triton.jit
def accumulate(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    tl.atomic_add(out_ptr0 + (x0), tl.load(in_ptr0 + (x0), None), None)
''', device_str='cuda')

users = async_compile.triton('users', '''
@triton_heuristics.user_autotune(inductor_meta={'kernel_name': 'users_0'})
@triton.jit
def users(x, y, n, BLOCK: tl.constexpr):
    tl.store(y + offsets, tl.load(x + offsets))
''', device_str='cuda')

either = async_compile.multi_kernel('either', [add, add])
"""


def code(body: str, arguments: str = "arg0_1", before: str = "") -> str:
    """Returns a program for the first GPU, with arguments of 300 numbers each."""
    made = "".join(
        f"    {name} = rand_strided((300, ), (1, ), device='cuda:0', "
        "dtype=torch.float32)\n"
        for name in arguments.split(", ")
        if name.startswith(("arg0", "saved"))
    )
    lines = "".join(f"            {line}\n" for line in body.strip().splitlines())
    return f"""
import torch
from torch._C._dynamo import assert_size_stride, alloc_from_pool, reinterpret_tensor
from torch._C._dynamo import empty_strided_cpu, empty_strided_cuda
{KERNELS}
{before}
class Runner:
    def call(self, args):
        {arguments}, = args
        args.clear()
        with torch.cuda._DeviceGuard(0):
            torch.cuda.set_device(0)
{lines}
runner = Runner(partitions=[part])

def get_args():
{made}    arg9_1 = 7
"""


def new(name: str, device: str = "cuda", size: str = "300") -> str:
    return f"{name} = empty_strided_{device}(({size}, ), (1, ), torch.float32)"


PART = """
def part(args):
    x, = args
    args.clear()
    with torch.cuda._DeviceGuard(0):
        buf1 = empty_strided_cuda((300, ), (1, ), torch.float32)
        add.run(x, buf1, 300, stream=stream0)
        del x
    return (buf1, )
stream0 = 0
"""

PROGRAMS = {
    "sizes are multiples of 512": (
        f"{new('buf0')}\nadd.run(arg0_1, buf0, 300, stream=0)\nreturn (buf0, )",
        "proved",
        1536,
    ),
    "what nothing wrote is updated": (
        f"{new('buf0')}\nincrement.run(buf0, 300, stream=0)\nreturn (buf0, )",
        "unsound",
        1536,
    ),
    "a tensor in the bytes of another one": (
        f"{new('buf0')}\nadd.run(arg0_1, buf0, 300, stream=0)\n"
        "buf1 = buf0; del buf0  # reuse\n"
        "increment.run(buf1, 300, stream=0)\nreturn (buf1, )",
        "proved",
        1536,
    ),
    "in the bytes of another one, not written": (
        f"{new('buf0')}\nadd.run(arg0_1, buf0, 300, stream=0)\n"
        f"buf1 = buf0; del buf0  # reuse\n{new('buf2')}\n"
        "add.run(buf1, buf2, 300, stream=0)\nreturn (buf2, )",
        "unsound",
        3072,
    ),
    "a workspace": (
        f"{new('buf0')}\n{new('workspace_0')}\nworkspace_0.zero_()\n"
        "scan.run(arg0_1, buf0, workspace_0, 300, stream=0)\n"
        "del workspace_0\nreturn (buf0, )",
        "proved",
        3072,
    ),
    "what is added to": (
        f"{new('buf0')}\naccumulate.run(arg0_1, buf0, 300, stream=0)\nreturn (buf0, )",
        "unsound",
        1536,
    ),
    "a kernel of a user": (
        f"{new('buf0')}\nusers.run(arg0_1, buf0, 300, 64, stream=0)\nreturn (buf0, )",
        "not refuted",
        1536,
    ),
    "a kernel of another kind": (
        f"{new('buf0')}\neither.run(arg0_1, buf0, 300, stream=0)\nreturn (buf0, )",
        "not refuted",
        1536,
    ),
    "an operator of a user": (
        f"{new('buf0')}\ntorch.ops.mine.norm.default(buf0, arg0_1)\nreturn (buf0, )",
        "not refuted",
        1536,
    ),
    "a function that makes a tensor": (
        "buf0 = torch.ops.mine.make.default()\n"
        "assert_size_stride(buf0, (300, ), (1, ))\nreturn (buf0, )",
        "not refuted",
        1536,
    ),
    "one result under another name": (
        "buf0 = torch.ops.aten.cumsum.default(arg0_1)\nbuf1 = buf0\n"
        "assert_size_stride(buf1, (300, ), (1, ))\ndel buf0\nreturn (buf1, )",
        "proved",
        1536,
    ),
    "a size that data decides": (
        "buf0 = torch.ops.aten.nonzero.default(arg0_1)\nu0 = buf0.size(0)\n"
        f"buf1 = buf0\ndel buf0\n{new('buf2', size='u0')}\n"
        "add.run(buf1, buf2, u0, stream=0)\nreturn (buf2, )",
        "not refuted",
        0,
    ),
    "a branch": (
        f"{new('buf0')}\nif arg0_1.item():\n    buf0.zero_()\nreturn (buf0, )",
        "not refuted",
        1536,
    ),
    "a stream of its own": (
        f"{new('buf0')}\nwith torch.cuda.stream(torch.cuda.Stream()):\n"
        "    add.run(arg0_1, buf0, 300, stream=1)\nreturn (buf0, )",
        "not refuted",
        1536,
    ),
    "two parts of a tensor": (
        f"{new('buf0')}\nbuf1 = reinterpret_tensor(buf0, (150, ), (1, ), 0)  # alias\n"
        "buf2 = reinterpret_tensor(buf0, (150, ), (1, ), 150)  # alias\n"
        "add.run(arg0_1, buf1, 150, stream=0)\nadd.run(arg0_1, buf2, 150, stream=0)\n"
        "return (buf0, )",
        "proved",
        1536,
    ),
    "a part whose other part is lost": (
        "pool0 = empty_strided_cuda((1200, ), (1, ), torch.uint8)\n"
        "buf0 = alloc_from_pool(pool0, 0, torch.float32, (300, ), (1, ))\n"
        "buf1 = reinterpret_tensor(buf0, (150, ), (1, ), 0)  # alias\n"
        "buf2 = reinterpret_tensor(buf0, (150, ), (1, ), 150)  # alias\n"
        "buf3 = alloc_from_pool(pool0, 0, torch.float32, (300, ), (1, ))\n"
        "add.run(arg0_1, buf1, 150, stream=0)\nadd.run(arg0_1, buf3, 300, stream=0)\n"
        "add.run(arg0_1, buf2, 150, stream=0)\nreturn (buf0, )",
        "unsound",
        1536,
    ),
    "results that their operands outlive": (
        f"{new('buf0')}\nadd.run(arg0_1, buf0, 300, stream=0)\n"
        "buf1 = torch.ops.aten.sort.default(buf0)\ndel buf0\nbuf2 = buf1[0]\n"
        "assert_size_stride(buf2, (300, ), (1, ))\ndel buf1\nreturn (buf2, )",
        "proved",
        3072,
    ),
    "a result whose size the code does not say": (
        "buf1 = torch.ops.aten.sort.default(arg0_1)\nbuf2 = buf1[0]\n"
        "del buf1\nreturn (buf2, )",
        "not refuted",
        0,
    ),
    "a part of the program": (
        "part_args = [arg0_1]\ndel arg0_1\n"
        "(buf1, ) = self.partitions[0](part_args)\ndel part_args\n"
        "increment.run(buf1, 300, stream=0)\nreturn (buf1, )",
        "proved",
        1536,
    ),
    "a function of the program": (
        "part_args = [arg0_1]\ndel arg0_1\n(buf1, ) = part(part_args)\n"
        "del part_args\nreturn (buf1, )",
        "proved",
        1536,
    ),
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_programs_for_a_gpu(what: str, tmp_path: Path) -> None:
    body, verdict, size = PROGRAMS[what]
    plan = plan_of(code(body, before=PART), tmp_path)
    found = audit(plan)
    assert found.verdict == verdict, found.findings
    assert sum(m.size for m in plan.memories.values() if m.kind != "argument") == size


def test_unknown_kernels_are_counted(tmp_path: Path) -> None:
    body, *_ = PROGRAMS["a kernel of another kind"]
    plan = plan_of(code(body, before=PART), tmp_path)
    assert plan.not_understood == {"kernels of other kinds": 1}


def test_donated_arguments(tmp_path: Path) -> None:
    """The bytes of `saved` are free once the code has deleted its last name."""
    body = (
        "buf0 = saved; del saved  # reuse\nincrement.run(buf0, 300, stream=0)\n"
        f"{new('buf1')}\nadd.run(buf0, buf1, 300, stream=0)\ndel buf0\n"
        f"{new('buf2')}\nadd.run(buf1, buf2, 300, stream=0)\ndel buf1\n"
        f"return (buf2, )"
    )
    plan = plan_of(code(body, "arg0_1, saved", PART), tmp_path)
    assert audit(plan).verdict == "proved"
    assert "arguments whose bytes are reused are donated" in plan.assumptions
    assert plan.memories["cuda:0"].size == 3072
    assert plan.memories.keys() == {"arg0_1", "cuda:0"}


def test_each_device_has_a_memory(tmp_path: Path) -> None:
    body = (
        f"{new('buf0')}\nadd.run(arg0_1, buf0, 300, stream=0)\n"
        "with torch.cuda._DeviceGuard(1):\n"
        f"    {new('buf1')}\n    buf1.copy_(buf0, False)\n"
        f"{new('buf2', 'cpu')}\nbuf2.copy_(buf1, False)\nreturn (buf2, )"
    )
    plan = plan_of(code(body, before=PART), tmp_path)
    assert audit(plan).verdict == "proved"
    sizes = {name: memory.size for name, memory in plan.memories.items()}
    assert sizes == {"arg0_1": 1200, "cuda:0": 1536, "cuda:1": 1536, "heap": 1200}


def test_sizes_of_the_example_arguments(tmp_path: Path) -> None:
    body = (
        f"s0 = arg9_1\n{new('buf0', size='64*s0 + max(1, s0 // 2)')}\n"
        "add.run(arg0_1, buf0, 300, stream=0)\nreturn (buf0, )"
    )
    plan = plan_of(code(body, "arg0_1, arg9_1", PART), tmp_path)
    assert audit(plan).verdict == "proved"
    assert plan.memories["cuda:0"].size == 2048  # of 451 numbers
    assert plan.assumptions[-1].startswith("sizes are those of the example")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("buf0 = empty_strided_cuda((u0, ), (1, ), torch.float32)", "u0 has no value"),
        ("increment.run(arg0_1, 300)\ndel arg0_1\nreturn (arg0_1, )", "arg0_1 has no"),
        ("buf0 = empty_strided_cuda((-1, ), (1, ), torch.float32)", "buf0 = empty_"),
        ("buf0 = alloc_from_pool(arg0_1, 0)", "buf0 = alloc_from_pool"),
    ],
)
def test_bad_code_is_rejected_with_its_location(
    body: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "net.output_code.py"
    path.write_text(code(body, before=PART))
    assert plan_audit.main([str(path)]) == 1
    said = (
        re.escape(f"{path}:") + r"\d+:\d+: error: this is not Inductor's "
        r"output code: "
    )
    assert re.match(said + re.escape(message), capsys.readouterr().err)


LOADED = UPDATED._replace(must_hold=True)
SIGNATURES: list[tuple[str, str, list[Use]]] = [
    ("cpp", "kernel(const float* in_ptr0, float* out_ptr0){}", [READ, WRITTEN]),
    ("cpp", "kernel(float* in_out_ptr0){auto t = in_out_ptr0[x];}", [LOADED]),
    ("cpp", "kernel(float* in_out_ptr0){loadu(in_out_ptr0 + x);}", [LOADED]),
    ("cpp", "kernel(float* in_out_ptr0){t.store(in_out_ptr0 + x);}", [UPDATED]),
    ("cpp", "kernel(float* in_out_ptr0){auto p = in_out_ptr0;}", [UPDATED]),
    ("cpp", "kernel(float* in_out_ptr0){atomic_add(&in_out_ptr0[x]);}", [LOADED]),
    ("cpp", "kernel(const half* X, half* Y, const int64_t n)", [READ, UPDATED, READ]),
    ("triton", "k(in_ptr0, out_ptr0, ws_ptr)", [READ, WRITTEN, WRITTEN]),
    ("triton", "k(in_ptr0, xnumel, XBLOCK : tl.constexpr)", [READ, READ, READ]),
    ("triton", "'mutated_arg_names': ['a'] k(a, sem_ptr)", [UPDATED, UPDATED]),
    ("triton", "helper(a, b)\nk(arg_A, out_ptr0)", [UPDATED, WRITTEN]),
]


@pytest.mark.parametrize(("language", "source", "uses"), SIGNATURES)
def test_uses_of_kernel_parameters(language: str, source: str, uses: list[Use]) -> None:
    name = "'k', " if language == "triton" else "['float*'], "
    module = ast.parse(f"k = async_compile.{language}({name}{source!r})")
    assert kernels(module) == {"k": uses}


NAMES = """
from torch._C._dynamo import assert_size_stride, empty_strided_cpu, reinterpret_tensor
from torch._inductor import extern_kernels
import torch
"""
FORWARD = f"""{NAMES}
def call(args):
    primals_1, primals_2 = args
    args.clear()
    assert_size_stride(primals_1, (4, 8), (8, 1))
    assert_size_stride(primals_2, (8, 8), (8, 1))
    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)
    extern_kernels.mm(primals_1, primals_2, out=buf0)
    buf1 = empty_strided_cpu((4, 8), (8, 1), torch.float32)
    extern_kernels.mm(buf0, primals_2, out=buf1)
    return (buf1, primals_1, primals_2, buf0, )
"""
BACKWARD = f"""{NAMES}
def call(args):
    primals_1, primals_2, mm, tangents_1 = args
    args.clear()
    assert_size_stride(primals_1, (4, 8), (8, 1))
    assert_size_stride(primals_2, (8, 8), (8, 1))
    assert_size_stride(mm, (4, 8), (8, 1))
    assert_size_stride(tangents_1, (4, 8), (8, 1))
    buf0 = empty_strided_cpu((8, 8), (8, 1), torch.float32)
    extern_kernels.mm(reinterpret_tensor(mm, (8, 4), (1, 8), 0), tangents_1, out=buf0)
    buf1 = mm; del mm  # reuse
    extern_kernels.mm(tangents_1, primals_2, out=buf1)
    return (buf1, buf0, )
"""


def step(folder: Path, forward: str = FORWARD, backward: str = BACKWARD) -> list[Path]:
    texts = {"forward": forward, "backward": backward}
    for name, text in texts.items():
        (folder / f"net.{name}.output_code.py").write_text(text)
    return [folder / f"net.{name}.output_code.py" for name in texts]


def test_forward_and_backward_pass_are_one_plan(tmp_path: Path) -> None:
    for path in step(tmp_path):
        plan = read(path)
        assert audit(plan).verdict == "proved"
        # The saved tensor, whose bytes the backward pass reuses, and two results.
        assert plan.memories["heap"].size == 4 * (32 + 32 + 64)
        assert {name for name in plan.memories if name != "heap"} == {
            *("primals_1", "primals_2", "tangents_1")
        }
        places = [item.location for item in steps_in(plan.steps)]
        assert places[0] == "net.forward.output_code.py:12"
        assert places[-1] == "net.backward.output_code.py:16"


def test_a_saved_tensor_that_is_a_result_may_not_be_overwritten(tmp_path: Path) -> None:
    """Neither file alone shows the fault."""
    fault = FORWARD.replace("return (buf1, ", "return (buf0, ")
    paths = step(tmp_path, fault)
    assert audit(read(paths[0])).verdict == "unsound"
    for path in paths:
        alone = path.with_name("alone.output_code.py")
        path.rename(alone)
        assert audit(read(alone)).verdict == "proved"


@pytest.mark.parametrize(
    ("old", "new"),
    [("buf0, )", ")"), ("(buf1, primals_1, primals_2, buf0, )", "(primals_1, buf0, )")],
)
def test_mismatched_forward_and_backward_passes_are_rejected(
    old: str, new: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    step(tmp_path, FORWARD.replace(old, new))
    assert plan_audit.main([str(tmp_path)]) == 1
    message = capsys.readouterr().err
    assert "net.backward.output_code.py: error: this code belongs to a " in message


def test_both_files_of_a_step_are_audited_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = step(tmp_path)
    for given in ([tmp_path], paths, paths[1:]):
        assert plan_audit.main([*map(str, given)]) == 0
        table, _, _ = capsys.readouterr().out.partition("assumed:")
        assert [line.split()[0] for line in table.splitlines()[1:]] == [paths[0].name]
