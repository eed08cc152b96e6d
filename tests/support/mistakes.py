"""Commands with common mistakes, and the text that the error message must contain.

Each line is `command => text`. The text says how to continue, or names the mistake if
nothing more can be said. `files` writes the files that the commands read.
"""

from pathlib import Path

import numpy as np

GOOD = """\
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> tensor<4x8xf32> {
  %zero = tgraph.constant<0.0 : f32> : tensor<4x8xf32>
  %p = tgraph.dot_general %x, %w {lhs_batching_dimensions = array<i64>, \
rhs_batching_dimensions = array<i64>, lhs_contracting_dimensions = array<i64: 1>, \
rhs_contracting_dimensions = array<i64: 0>} : (tensor<4x8xf32>, tensor<8x8xf32>) -> \
tensor<4x8xf32>
  %y = tgraph.maximum %p, %zero : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
"""
CSV = "id,lower,upper,size\na,0,3,64\nb,1,5,128\n"


def files(folder: Path) -> None:
    """Writes the files that the commands read into `folder`."""
    texts = {
        "good.mlir": GOOD,
        "nobrace.mlir": GOOD.rstrip("}\n"),
        "same.mlir": GOOD + GOOD,
        "symbolic.mlir": GOOD.replace("4x8xf32>", "?x8xf32, #tgraph.dims<batch>>"),
        "twobraces.mlir": GOOD + "}\n",
        "undefined.mlir": GOOD.replace("%p, %zero", "%q, %zero"),
        "typo.mlir": GOOD.replace("tgraph.maximum", "tgraph.maximux"),
        "type.mlir": GOOD.replace("tensor<8x8xf32>)", "tensor<9x8xf32>)"),
        "twice.mlir": GOOD.replace("%y =", "%p ="),
        "notype.mlir": GOOD.replace("%p, %zero : tensor<4x8xf32>", "%p, %zero"),
        "element.mlir": GOOD.replace("4x8xf32", "4x8xfloat"),
        "foreign.mlir": GOOD.replace("maximum %p, %zero", "maximum %p, zero"),
        "property.mlir": GOOD.replace("rhs_contracting", "rhs_contract"),
        "device.mlir": GOOD.replace("%zero :", "%zero {tgraph.devise = 1 : i32} :"),
        "kind.mlir": GOOD.replace("maximum %p, %zero", 'reduce %p {kind = "add"}'),
        "list.mlir": GOOD.replace("array<i64: 1>", "[1]"),
        "unreturned.mlir": GOOD.replace("  func.return %y : tensor<4x8xf32>\n", ""),
        "parallel.mlir": "func.func @main() {\n  %c = arith.constant 1 : index\n"
        "  scf.parallel (%i) = (%c) to (%c) step (%c) {\n    scf.reduce\n  }\n"
        "  func.return\n}\n",
        "realloc.mlir": "func.func @main(%a: memref<2xf32>) {\n"
        "  %b = memref.realloc %a : memref<2xf32> to memref<4xf32>\n"
        "  func.return\n}\n",
        "tosa.mlir": GOOD.replace("tgraph.maximum %p", "tosa.maximum %p"),
        "tosa_generic.mlir": "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        '  %0 = "tosa.tanh"(%a) : (tensor<4xf32>) -> tensor<4xf32>\n'
        "  func.return %0 : tensor<4xf32>\n}\n",
        "linalg.mlir": "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %e = tensor.empty() : tensor<4xf32>\n"
        "  %0 = linalg.abs ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> "
        "tensor<4xf32>\n  func.return %0 : tensor<4xf32>\n}\n",
        "planned.mlir": "func.func @main(%x: memref<16xf32>) {\n"
        "  %arena = memref.alloc() {tgraph.arena} : memref<64xi8>\n"
        "  %c0 = arith.constant 0 : index\n"
        "  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>\n"
        '  "memref.copy"(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()\n'
        '  "memref.copy"(%a, %x) : (memref<16xf32>, memref<16xf32>) -> ()\n'
        "  memref.dealloc %arena : memref<64xi8>\n  func.return\n}\n",
        "step.py": "import jax\n\ndef f(x):\n    return x\n",
        "notes.txt": "hello world\n",
        "empty.mlir": "",
        "empty.onnx": "",
        "empty.csv": "",
        "report.json": "{}",
        "buffers.json": '[{"id": "a", "lower": 0, "upper": 3, "size": 64}]',
        "broken.json": '{"pools": [',
        "good.csv": CSV,
        "spaces.csv": CSV.replace(",", " "),
        "header.csv": "a,0,3,64\nb,1,5,128\n",
        "negative.csv": CSV + "c,1,2,-4\n",
        "fraction.csv": CSV + "c,1,2,4.5\n",
        "reversed.csv": CSV + "c,5,2,4\n",
        "duplicate.csv": CSV + "a,5,6,4\n",
        "short.csv": CSV + "c,5,6\n",
        "unit.csv": CSV + "c,5,6,4XB\n",
        "gap.csv": CSV.replace("size", "size,gaps")
        .replace("64", "64,2")
        .replace("128", "128,"),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / "binary.mlir").write_bytes(b"\x00\xff\xfe" * 9)
    (folder / "model.mlir.gz").write_bytes(b"\x1f\x8b\x08\x00" + bytes(20))
    (folder / "latin.csv").write_bytes(CSV.encode() + b"\xe9,0,1,2\n")
    (folder / "latin.mlir").write_bytes(b"// \xe9\n" + GOOD.encode())
    (folder / "folder").mkdir()
    (folder / "no.npz").write_text("no")
    x, w = np.ones((4, 8), np.float32), np.ones((8, 8), np.float32)
    np.save(folder / "x.npy", x)
    np.savez(folder / "in.npz", arg0=x, arg1=w)
    np.savez(folder / "one.npz", arg0=x)
    np.savez(folder / "names.npz", inputs=x, weights=w)
    np.savez(folder / "shape.npz", arg0=w, arg1=w)
    np.savez(folder / "double.npz", arg0=x.astype(float), arg1=w)
    np.savez(folder / "wrong.npz", out0=-x)


MISTAKES = [
    line
    for line in """
plan-opt nosuch.mlir => no such file
plan-opt folder => is a directory
plan-opt https://example.com/model.onnx => this is a URL, expected a file
plan-opt good.mlir other.mlir => passes are named by -p
plan-opt good.mlir plan-pipeline => -p 'plan-pipeline
plan-opt good.mlir --passes => expected one argument
plan-opt good.mlir -p plan-memry => did you mean 'plan-memory'?
plan-opt good.mlir -p plan_pipeline => did you mean 'plan-pipeline'?
plan-opt good.mlir -p one-shot-bufferize => --list-passes lists them
plan-opt good.mlir --plan-pipline => did you mean '--plan-pipeline'?
plan-opt good.mlir --pass-pipeline=module(plan-pipeline) => -p takes
plan-opt good.mlir -p plan-pipeline{budget=lots} => expected bytes such as 4096, 64MiB
plan-opt good.mlir -p plan-pipeline{budget=0} => expected bytes such as
plan-opt good.mlir -p plan-pipeline{alignment=63} => expected a power of two
plan-opt good.mlir -p plan-pipeline{alignment=8589934592} => expected at most
plan-opt good.mlir -p plan-pipeline{alignment=wide} => expected bytes such as
plan-opt good.mlir -p plan-pipeline{strategy=magic} => expected one of
plan-opt good.mlir -p plan-pipeline{effort=max} => expected one of low, high
plan-opt good.mlir -p plan-pipeline{threads=0} => expected 1 to 1024
plan-run good.mlir --threads 1000000000 => threads is 1000000000, expected 1 to 1024
plan-opt good.mlir -p plan-pipeline{streams=0} => expected 1 or more
plan-opt good.mlir -p plan-pipeline{budgt=64MiB} => did you mean 'budget'?
plan-opt good.mlir -p plan-pipeline{budget=64MiB => -p takes
plan-opt good.mlir -p plan-pipeline[budget=64MiB] => -p takes
plan-opt good.mlir -p plan-pipeline(budget=64MiB) => -p takes
plan-opt good.mlir -p plan-pipeline{offload=cpu:1} => is in double quotes
plan-opt good.mlir -p plan-pipeline{bounds=n=4} => is in double quotes
plan-opt good.mlir -p plan-pipeline{time-limit=5} => effort=high or a budget
plan-opt good.mlir -p plan-memory => bufferize them first
plan-opt good.mlir -t jsn => did you mean 'json'?
plan-opt good.mlir -t json => run plan-pipeline first
plan-opt good.mlir -t c-header => run plan-pipeline first
plan-opt good.mlir -p plan-pipeline -t c-header{prefix=1x} => expected a C identifier
plan-opt good.mlir --explain=xml => expected one of text, json
plan-opt good.mlir --explain -p canonicalize => expected plan-pipeline
plan-opt good.mlir --explain --report r.json => so --report has no effect
plan-opt good.mlir --frontier --frontier-points 0 => expected 2 or more
plan-opt good.mlir -o nosuch/out.mlir => no such file or directory
plan-opt good.mlir -o folder => is a directory
plan-opt good.mlir -o x.mlir --report x.mlir => only one output can go to x.mlir
plan-opt good.mlir --print-ir-after tgraph-fuze => did you mean 'tgraph-fuse'?
plan-opt good.mlir --help-pass fuse => --list-passes lists them
plan-opt good.mlir --verbose => unknown argument '--verbose'
plan-opt good.mlir --ouput x => did you mean '--output-file'?
plan-opt nobrace.mlir => expected '}'
plan-opt twobraces.mlir => expected an operation, found '}'
plan-opt undefined.mlir => %q is not defined
plan-opt typo.mlir => did you mean 'tgraph.maximum'?
plan-opt type.mlir -p plan-pipeline => expected equal sizes
plan-opt twice.mlir => is already defined
plan-opt notype.mlir => expected ':', found 'func.return'
plan-opt foreign.mlir => operand expected, found 'zero'
plan-opt property.mlir => did you mean 'rhs_contracting_dimensions'?
plan-opt device.mlir => tgraph.devise is not known; did you mean 'tgraph.device'?
plan-opt kind.mlir => attribute 'dimensions' is missing
plan-opt list.mlir => is [1 : i64], expected array<i64: ...>
plan-opt unreturned.mlir => expected a terminator such as func.return
plan-opt realloc.mlir => give the generic form (mlir-opt -mlir-print-op-generic)
plan-opt parallel.mlir => mlir-opt -mlir-print-op-generic
plan-opt element.mlir => expected an element type such as f32
plan-opt tosa.mlir --allow-unregistered-dialect => mlir-opt -mlir-print-op-generic
plan-opt tosa_generic.mlir => or give plan-opt --allow-unregistered-dialect
plan-opt tosa_generic.mlir --allow-unregistered-dialect -p plan-pipeline => bufferize
plan-opt linalg.mlir -p plan-pipeline => lower it with mlir-opt
plan-opt step.py => is this MLIR?
plan-opt notes.txt => is this MLIR?
plan-opt empty.mlir => the program is empty
plan-opt empty.onnx => the program is empty
plan-opt binary.mlir => neither MLIR text, nor MLIR bytecode
plan-opt model.mlir.gz => neither MLIR text, nor MLIR bytecode
plan-opt good.csv => is this MLIR?
plan-run nosuch.mlir => no such file
plan-run good.mlir --inputs nosuch.npz => no such file
plan-run good.mlir --expect nosuch.npz => no such file
plan-run good.mlir --outputs nosuch/out.npz => no such file or directory
plan-run good.mlir --inputs x.npy => a single array, expected an npz file
plan-run good.mlir --inputs no.npz => it is not a zip file
plan-run good.mlir --inputs one.npz => has no w
plan-run good.mlir --inputs names.npz => expected x, w
plan-run good.mlir --inputs shape.npz => expected float32[4, 8]
plan-run good.mlir --inputs double.npz => expected float32
plan-run good.mlir --expect wrong.npz => out0 is off by
plan-run good.mlir --steps 0 => expected 1 or more
plan-run good.mlir --seed -1 => expected 0 or more
plan-run good.mlir --entry f => which has @main
plan-run good.mlir --sizes batch => expected NAME=N
plan-opt good.mlir --sizes n=4 => good.mlir is not an ONNX model
plan-view good.mlir --sizes n=4 => good.mlir is not an ONNX model
plan-opt latin.mlir => the byte 0xe9 in line 1 is not UTF-8
plan-run good.mlir --sizes n=4 => good.mlir: the program has no size 'n'
plan-run good.mlir --sizes n=4,n=5 => 'n=5', but 'n' is 4 before
plan-run symbolic.mlir --sizes bach=4 => did you mean 'batch'?
plan-opt same.mlir => same.mlir:7:1: error: func.func: redefinition of symbol "main"
plan-run good.mlir --device gpu:0 => plan-opt plans for any device
plan-run good.mlir --level plannd => did you mean 'planned'?
plan-run good.mlir --budget 1X => expected bytes such as
plan-run good.mlir --inputs in.npz --seed 3 => not allowed with argument
plan-run good.mlir --sanitize --concurrent => only one of
plan-run planned.mlir --budget 1MiB => is already planned, so --budget has no effect
plan-run good.mlir --imputs in.npz => did you mean '--inputs'?
plan-run tosa_generic.mlir => lower it with mlir-opt
plan-audit nosuch => no such file
plan-audit folder => a folder without plans
plan-audit notes.txt => this is not the text of an HLO module
plan-audit good.mlir => plan-opt -p plan-check
plan-audit good.csv => buffer a has no offset
plan-audit latin.csv => this is not UTF-8
plan-solve nosuch.csv => no such file
plan-solve folder => a folder without .csv or .tsv files
plan-solve good.mlir => plan programs with plan-opt
plan-solve empty.csv => there is no header, expected id,lower,upper,size
plan-solve good.csv --strategy greedy => did you mean 'greedy-by-size'?
plan-solve buffers.json => this is JSON, expected CSV: id,lower,upper,size
plan-solve spaces.csv => expected id,lower,upper,size
plan-solve header.csv => expected id,lower,upper,size
plan-solve negative.csv => expected 0 or more
plan-solve fraction.csv => expected an integer
plan-solve reversed.csv => expected an end after the start
plan-solve duplicate.csv => buffer a is in line 2 already
plan-solve short.csv => expected 4
plan-solve unit.csv => expected bytes such as 4096
plan-solve gap.csv => expected FIRST-END
plan-solve latin.csv => this is not UTF-8
plan-solve good.csv --strategy greedy => expected one of
plan-solve good.csv --capacity 100 => the best plan needs 192 bytes
plan-solve good.csv --capacity much => expected bytes such as
plan-solve good.csv good.csv -o out.csv => --output applies to one file
plan-view nosuch.mlir => no such file
plan-view step.py => is this MLIR?
plan-view report.json => expected a report of plan-opt or plan-run
plan-view broken.json => cannot be read as JSON
plan-view good.mlir --compare naiv => did you mean 'naive'?
plan-view good.csv --budget 1MiB => --budget requires a program
plan-view good.mlir --html nosuch/page.html => no such file or directory
plan-view - - => only one FILE can be stdin
plan-view good.mlir --pgn page.png => unknown argument
""".strip().splitlines()
]
