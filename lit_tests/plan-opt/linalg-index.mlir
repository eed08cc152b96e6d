// MLIR allows linalg.index in the body of each operation of linalg, as bufferization writes
// it for tensor.generate. xDSL allows it in linalg.generic only.
// RUN: plan-opt %s -p plan-memory | filecheck %s

// CHECK:      %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<64xi8>
// CHECK:      "linalg.map"(%a)
// CHECK-NEXT: ^bb0
// CHECK-NEXT:   "linalg.index"() <{dim = 0 : i64}> : () -> index
func.func @f(%x: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  "linalg.map"(%a) ({
  ^bb0(%out: f32):
    %i = "linalg.index"() <{dim = 0 : i64}> : () -> index
    %k = arith.index_cast %i : index to i32
    %v = arith.sitofp %k : i32 to f32
    "linalg.yield"(%v) : (f32) -> ()
  }) : (memref<16xf32>) -> ()
  memref.copy %a, %x : memref<16xf32> to memref<16xf32>
  memref.dealloc %a : memref<16xf32>
  func.return
}
