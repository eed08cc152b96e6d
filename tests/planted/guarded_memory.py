"""A heap for native runs that detects memory errors of programs, as MLIR text.

mlir-opt lowers `memref.alloc` and `memref.dealloc` to calls of functions that a program
may define. These functions give each block exactly the requested alignment and guard
bytes on both sides. All bytes outside of blocks hold a poison value. The heap counts
frees of addresses that are no live block. At the end it counts the blocks that were
never freed, and the bytes outside of blocks that no longer hold the poison.
"""

HEAP = 1 << 16
"""Size in bytes. Runs use less than a tenth, so the heap also surrounds all blocks."""

BLOCKS = 256

MEMORY = f"""
memref.global "private" @heap : memref<{HEAP}xi8> = uninitialized {{alignment = 4096}}
memref.global "private" @starts : memref<{BLOCKS}xi64> = uninitialized
memref.global "private" @sizes : memref<{BLOCKS}xi64> = uninitialized
memref.global "private" @is_live : memref<{BLOCKS}xi1> = uninitialized
memref.global "private" @blocks : memref<index> = uninitialized
memref.global "private" @top : memref<i64> = uninitialized
memref.global "private" @poison : memref<i8> = uninitialized
memref.global "private" @bad_frees : memref<i64> = uninitialized

llvm.func @_mlir_memref_to_llvm_aligned_alloc(%align: i64, %size: i64) -> !llvm.ptr {{
  %p = func.call @guarded_alloc(%align, %size) : (i64, i64) -> i64
  %q = llvm.inttoptr %p : i64 to !llvm.ptr
  llvm.return %q : !llvm.ptr
}}
llvm.func @_mlir_memref_to_llvm_free(%q: !llvm.ptr) {{
  %p = llvm.ptrtoint %q : !llvm.ptr to i64
  func.call @guarded_free(%p) : (i64) -> ()
  llvm.return
}}
func.func private @heap_start() -> i64 {{
  %heap = memref.get_global @heap : memref<{HEAP}xi8>
  %at = memref.extract_aligned_pointer_as_index %heap : memref<{HEAP}xi8> -> index
  %start = arith.index_cast %at : index to i64
  return %start : i64
}}
func.func private @poison_bytes(%from: i64, %size: i64) {{
  %heap = memref.get_global @heap : memref<{HEAP}xi8>
  %poison = memref.get_global @poison : memref<i8>
  %byte = memref.load %poison[] : memref<i8>
  %start = func.call @heap_start() : () -> i64
  %first = arith.subi %from, %start : i64
  %end = arith.addi %first, %size : i64
  %a = arith.index_cast %first : i64 to index
  %b = arith.index_cast %end : i64 to index
  %one = arith.constant 1 : index
  scf.for %i = %a to %b step %one {{
    memref.store %byte, %heap[%i] : memref<{HEAP}xi8>
  }}
  return
}}
func.func private @guarded_alloc(%align: i64, %size: i64) -> i64 {{
  %top = memref.get_global @top : memref<i64>
  %blocks = memref.get_global @blocks : memref<index>
  %starts = memref.get_global @starts : memref<{BLOCKS}xi64>
  %sizes = memref.get_global @sizes : memref<{BLOCKS}xi64>
  %is_live = memref.get_global @is_live : memref<{BLOCKS}xi1>
  %guard = arith.constant 512 : i64
  %two = arith.constant 2 : i64
  %one = arith.constant 1 : index
  %yes = arith.constant true
  %double = arith.muli %align, %two : i64
  %before = memref.load %top[] : memref<i64>
  %free = arith.addi %before, %guard : i64
  %rounded = arith.ceildivui %free, %double : i64
  %aligned = arith.muli %rounded, %double : i64
  %at = arith.addi %aligned, %align : i64
  %end = arith.addi %at, %size : i64
  memref.store %end, %top[] : memref<i64>
  %heap = func.call @heap_start() : () -> i64
  %start = arith.addi %heap, %at : i64
  %n = memref.load %blocks[] : memref<index>
  memref.store %start, %starts[%n] : memref<{BLOCKS}xi64>
  memref.store %size, %sizes[%n] : memref<{BLOCKS}xi64>
  memref.store %yes, %is_live[%n] : memref<{BLOCKS}xi1>
  %more = arith.addi %n, %one : index
  memref.store %more, %blocks[] : memref<index>
  return %start : i64
}}
func.func private @guarded_free(%p: i64) {{
  %blocks = memref.get_global @blocks : memref<index>
  %starts = memref.get_global @starts : memref<{BLOCKS}xi64>
  %sizes = memref.get_global @sizes : memref<{BLOCKS}xi64>
  %is_live = memref.get_global @is_live : memref<{BLOCKS}xi1>
  %bad = memref.get_global @bad_frees : memref<i64>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %one_i64 = arith.constant 1 : i64
  %no = arith.constant false
  %n = memref.load %blocks[] : memref<index>
  %found = scf.for %i = %zero to %n step %one iter_args(%so_far = %no) -> (i1) {{
    %start = memref.load %starts[%i] : memref<{BLOCKS}xi64>
    %live = memref.load %is_live[%i] : memref<{BLOCKS}xi1>
    %same = arith.cmpi eq, %start, %p : i64
    %this = arith.andi %same, %live : i1
    scf.if %this {{
      %size = memref.load %sizes[%i] : memref<{BLOCKS}xi64>
      memref.store %no, %is_live[%i] : memref<{BLOCKS}xi1>
      func.call @poison_bytes(%p, %size) : (i64, i64) -> ()
    }}
    %now = arith.ori %so_far, %this : i1
    scf.yield %now : i1
  }}
  scf.if %found {{
  }} else {{
    %count = memref.load %bad[] : memref<i64>
    %more = arith.addi %count, %one_i64 : i64
    memref.store %more, %bad[] : memref<i64>
  }}
  return
}}
func.func private @heap_reset(%byte: i8) {{
  %poison = memref.get_global @poison : memref<i8>
  %top = memref.get_global @top : memref<i64>
  %blocks = memref.get_global @blocks : memref<index>
  %bad = memref.get_global @bad_frees : memref<i64>
  %none = arith.constant 0 : index
  %zero = arith.constant 0 : i64
  %size = arith.constant {HEAP} : i64
  memref.store %byte, %poison[] : memref<i8>
  memref.store %zero, %top[] : memref<i64>
  memref.store %zero, %bad[] : memref<i64>
  memref.store %none, %blocks[] : memref<index>
  %heap = func.call @heap_start() : () -> i64
  func.call @poison_bytes(%heap, %size) : (i64, i64) -> ()
  return
}}
func.func private @heap_report() {{
  %heap = memref.get_global @heap : memref<{HEAP}xi8>
  %poison = memref.get_global @poison : memref<i8>
  %blocks = memref.get_global @blocks : memref<index>
  %starts = memref.get_global @starts : memref<{BLOCKS}xi64>
  %sizes = memref.get_global @sizes : memref<{BLOCKS}xi64>
  %is_live = memref.get_global @is_live : memref<{BLOCKS}xi1>
  %bad = memref.get_global @bad_frees : memref<i64>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %zero_i64 = arith.constant 0 : i64
  %n = memref.load %blocks[] : memref<index>
  %left = scf.for %i = %zero to %n step %one iter_args(%c = %zero_i64) -> (i64) {{
    %live = memref.load %is_live[%i] : memref<{BLOCKS}xi1>
    scf.if %live {{
      %start = memref.load %starts[%i] : memref<{BLOCKS}xi64>
      %size = memref.load %sizes[%i] : memref<{BLOCKS}xi64>
      func.call @poison_bytes(%start, %size) : (i64, i64) -> ()
    }}
    %more = arith.extui %live : i1 to i64
    %sum = arith.addi %c, %more : i64
    scf.yield %sum : i64
  }}
  %byte = memref.load %poison[] : memref<i8>
  %all = arith.constant {HEAP} : index
  %damaged = scf.for %i = %zero to %all step %one iter_args(%c = %zero_i64) -> (i64) {{
    %is = memref.load %heap[%i] : memref<{HEAP}xi8>
    %differs = arith.cmpi ne, %is, %byte : i8
    %more = arith.extui %differs : i1 to i64
    %sum = arith.addi %c, %more : i64
    scf.yield %sum : i64
  }}
  %frees = memref.load %bad[] : memref<i64>
  func.call @printI64(%frees) : (i64) -> ()
  func.call @printComma() : () -> ()
  func.call @printI64(%left) : (i64) -> ()
  func.call @printComma() : () -> ()
  func.call @printI64(%damaged) : (i64) -> ()
  func.call @printNewline() : () -> ()
  return
}}
func.func private @print_values(%m: memref<16xf32>) {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %end = arith.constant 16 : index
  scf.for %i = %zero to %end step %one {{
    %v = memref.load %m[%i] : memref<16xf32>
    func.call @printF32(%v) : (f32) -> ()
    func.call @printComma() : () -> ()
  }}
  return
}}
func.func private @printI64(i64)
func.func private @printF32(f32)
func.func private @printComma()
func.func private @printNewline()
"""
