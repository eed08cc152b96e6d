// RUN: not plan-opt %s -p convert-tgraph-to-linalg 2>&1 | filecheck %s

// CHECK: linalg-on-tensors.mlir:[[#]]:{{.*}}: error: tgraph.add is on tensors, expected memrefs; run tgraph-bufferize first
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tgraph.add %a, %a : tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
