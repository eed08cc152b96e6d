// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s
// CHECK: {{.*}}plan-result-overlap.mlir:[[#]]:3: error: func.return uses buffer %r, whose bytes [0, 32) now belong to buffer %x
func.func @f(%a: memref<8xf32>, %b: memref<8xf32>, %r: memref<16xf32> {tgraph.result = 0 : i32}) {
  tgraph.constant<0.0 : f32> outs(%r) : memref<16xf32>
  %x = memref.reinterpret_cast %r to offset: [0], sizes: [8], strides: [1] {tgraph.buffer} : memref<16xf32> to memref<8xf32>
  tgraph.negate %a outs(%x) : memref<8xf32>
  func.return
}
