// RUN: not plan-opt %s -p plan-check 2>&1 | filecheck %s
// CHECK: {{.*}}plan-result-lost.mlir:[[#]]:3: error: tgraph.negate uses buffer %x, whose bytes [32, 64) now belong to buffer %r
func.func @f(%a: memref<8xf32>, %b: memref<8xf32> {tgraph.variable}, %r: memref<16xf32> {tgraph.result = 0 : i32}) {
  %x = memref.reinterpret_cast %r to offset: [8], sizes: [8], strides: [1] {tgraph.buffer} : memref<16xf32> to memref<8xf32, strided<[1], offset: 8>>
  tgraph.negate %a outs(%x) : (memref<8xf32>) -> memref<8xf32, strided<[1], offset: 8>>
  tgraph.constant<0.0 : f32> outs(%r) : memref<16xf32>
  tgraph.negate %x outs(%b) : (memref<8xf32, strided<[1], offset: 8>>) -> memref<8xf32>
  func.return
}
