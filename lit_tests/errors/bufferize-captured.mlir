// RUN: not plan-opt %s -p tgraph-bufferize 2>&1 | filecheck %s

// A region that reads a tensor from outside at an index.
// CHECK-NOT: Traceback
// CHECK:     bufferize-captured.mlir:9:8: error: linalg.generic cannot be bufferized: its region uses tensors from outside
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %zero = arith.constant 0 : index
  %e = tensor.empty() : tensor<4xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]} outs(%e : tensor<4xf32>) {
  ^bb0(%out: f32):
    %1 = tensor.extract %a[%zero] : tensor<4xf32>
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
