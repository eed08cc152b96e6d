// REQUIRES: mlir-opt
// RUN: plan-opt %s -p 'plan-pipeline,convert-tgraph-to-linalg,plan-strip-memory-spaces' --print-op-generic | mlir-opt --convert-linalg-to-affine-loops --affine-loop-invariant-code-motion --expand-strided-metadata --lower-affine --convert-scf-to-cf --arith-expand=include-bf16 --convert-math-to-llvm --convert-math-to-libm --convert-to-llvm --reconcile-unrealized-casts | filecheck %s

// Real mlir-opt accepts level 4, which has no tgraph operations, and lowers it to LLVM.
// CHECK-NOT: tgraph.{{[a-z_]+}}(
// CHECK:     llvm.func @f
// CHECK-NOT: builtin.unrealized_conversion_cast
func.func @f(%a: tensor<4x4xf32>) -> tensor<4xf32> {
  %0 = tgraph.dot_general %a, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<4x4xf32>
  %1 = tgraph.exponential %0 : tensor<4x4xf32>
  %2 = tgraph.reduce %1 {kind = "add", dimensions = array<i64: 1>} : (tensor<4x4xf32>) -> tensor<4xf32>
  func.return %2 : tensor<4xf32>
}
