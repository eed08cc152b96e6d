// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s
// CHECK: {{.*}}plan-result-other.mlir:[[#]]:8: error: tgraph.buffer is on a view of other memory, expected a view of a result, a variable or a donated argument
func.func @f(%a: memref<16xf32>) {
  %x = memref.reinterpret_cast %a to offset: [0], sizes: [8], strides: [1] {tgraph.buffer} : memref<16xf32> to memref<8xf32>
  tgraph.constant<0.0 : f32> outs(%x) : memref<8xf32>
  func.return
}
