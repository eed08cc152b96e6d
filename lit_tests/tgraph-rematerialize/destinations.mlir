// RUN: plan-opt %s -p 'tgraph-rematerialize{budget=150KiB},tgraph-bufferize,plan-memory' | filecheck %s

// %x is recomputed for its second reader, in the bytes of %y; products are not, because
// their time is not known.
// CHECK:      %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<131072xi8>
// CHECK:      linalg.add ins(%a, %c : {{.*}}) outs(%x : {{.*}})
// CHECK:      linalg.sub
// CHECK:      linalg.add ins(%a, %c : {{.*}}) outs(%x_1 : {{.*}} {tgraph.recomputed}
// CHECK-NOT:  tgraph.recomputed
func.func @main(%a: tensor<64x512xf32>, %b: tensor<512x64xf32>, %c: tensor<64x512xf32>, %n: f32) -> tensor<64x64xf32> {
  %wide = tensor.empty() : tensor<64x512xf32>
  %narrow = tensor.empty() : tensor<64x64xf32>
  %s = linalg.fill ins(%n : f32) outs(%narrow : tensor<64x64xf32>) -> tensor<64x64xf32>
  %x = linalg.add ins(%a, %c : tensor<64x512xf32>, tensor<64x512xf32>) outs(%wide : tensor<64x512xf32>) -> tensor<64x512xf32>
  %p = linalg.matmul ins(%x, %b : tensor<64x512xf32>, tensor<512x64xf32>) outs(%s : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = linalg.sub ins(%a, %c : tensor<64x512xf32>, tensor<64x512xf32>) outs(%wide : tensor<64x512xf32>) -> tensor<64x512xf32>
  %q = linalg.matmul ins(%y, %b : tensor<64x512xf32>, tensor<512x64xf32>) outs(%p : tensor<64x64xf32>) -> tensor<64x64xf32>
  %r = linalg.matmul ins(%x, %b : tensor<64x512xf32>, tensor<512x64xf32>) outs(%q : tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %r : tensor<64x64xf32>
}
