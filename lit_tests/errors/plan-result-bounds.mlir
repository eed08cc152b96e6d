// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s
// CHECK: {{.*}}plan-result-bounds.mlir:[[#]]:8: error: buffer %x lies in bytes [40, 72), expected within result 0's [0, 64)
func.func @f(%a: memref<8xf32>, %r: memref<16xf32> {tgraph.result = 0 : i32}) {
  %x = memref.reinterpret_cast %r to offset: [10], sizes: [8], strides: [1] {tgraph.buffer} : memref<16xf32> to memref<8xf32, strided<[1], offset: 10>>
  tgraph.constant<0.0 : f32> outs(%r) : memref<16xf32>
  func.return
}
