// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s

func.func @f(%in: memref<16xf32>, %out: memref<16xf32>) {
  %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
  %c0 = arith.constant 0 : index
  %a = memref.view %arena[%c0][] : memref<64xi8> to memref<16xf32>
  tgraph.negate %in outs(%a) : memref<16xf32>
  memref.dealloc %arena : memref<64xi8>
  tgraph.negate %a outs(%out) : memref<16xf32>
  func.return
}

// CHECK-NOT: Traceback
// CHECK:     plan-freed-early.mlir:9:3: error: tgraph.negate uses buffer %a after its arena was freed
