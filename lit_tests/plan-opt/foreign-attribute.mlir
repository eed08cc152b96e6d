// Attributes of unregistered dialects are printed in MLIR's syntax, including those
// with empty brackets.
//
// RUN: plan-opt --allow-unregistered-dialect %s | filecheck %s
// RUN: plan-opt --allow-unregistered-dialect %s | plan-opt --allow-unregistered-dialect | filecheck %s

// CHECK: #stablehlo.dot< >
// CHECK: #stablehlo.dot<lhs_contracting_dimensions = [0]>
// CHECK: #stablehlo.dot{{[^<]}}
func.func @main() {
  "test.op"() {a = #stablehlo.dot<>} : () -> ()
  "test.op"() {a = #stablehlo.dot<lhs_contracting_dimensions = [0]>} : () -> ()
  "test.op"() {a = #stablehlo.dot} : () -> ()
  func.return
}
