// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s
// CHECK: {{.*}}plan-result-strided.mlir:[[#]]:8: error: a buffer in result 0 has type memref<8xf32, strided<[2]>>, expected a contiguous one at a static offset
func.func @f(%a: memref<8xf32>, %r: memref<16xf32> {tgraph.result = 0 : i32}) {
  %x = memref.reinterpret_cast %r to offset: [0], sizes: [8], strides: [2] {tgraph.buffer} : memref<16xf32> to memref<8xf32, strided<[2]>>
  tgraph.constant<0.0 : f32> outs(%r) : memref<16xf32>
  func.return
}
