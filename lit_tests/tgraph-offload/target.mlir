// REQUIRES: ortools
// The budget is the capacity of the memory minus its arguments and results.
// RUN: plan-opt %s -p 'tgraph-offload{reuse-outputs=false}' 2>&1 | filecheck %s
// RUN: plan-opt %s -p 'tgraph-offload{reuse-outputs=false exact=true}' 2>&1 | filecheck %s

// %p and %q are both idle while %c is computed, and one must be evicted, to the memory
// with the faster copies. %q is half as large.
// CHECK:      remark: offloaded 8192 bytes of tgraph.logistic to psram
// CHECK-LABEL: func.func @main
// CHECK:      [[AWAY:%[0-9]+]] = tgraph.device_copy %q : (tensor<32x64xf32, "sram">) -> tensor<32x64xf32, "psram">
// CHECK:      tgraph.device_copy [[AWAY]]
// CHECK-NOT:  tgraph.device_copy
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "sram" = #dlti.target_device_spec<"capacity" = 98304, "alignment" = 64,
    "copies" = #dlti.map<"flash" = #dlti.map<"bandwidth" = 0.01>,
                         "psram" = #dlti.map<"bandwidth" = 0.08>>>,
  "psram" = #dlti.target_device_spec<"capacity" = 8388608>,
  "flash" = #dlti.target_device_spec<"capacity" = 8388608>>} {
func.func @main(%x: tensor<64x64xf32, "sram">, %h: tensor<32x64xf32, "sram">) -> tensor<32x64xf32, "sram"> {
  %p = tgraph.exponential %x : tensor<64x64xf32, "sram">
  %q = tgraph.logistic %h : tensor<32x64xf32, "sram">
  %a = tgraph.dot_general %x, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32, "sram">
  %b = tgraph.dot_general %a, %x {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32, "sram">
  %c = tgraph.dot_general %b, %a {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32, "sram">
  %d = tgraph.dot_general %c, %p {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : tensor<64x64xf32, "sram">
  %e = tgraph.dot_general %q, %d {lhs_contracting_dimensions = array<i64: 1>, rhs_contracting_dimensions = array<i64: 0>} : (tensor<32x64xf32, "sram">, tensor<64x64xf32, "sram">) -> tensor<32x64xf32, "sram">
  func.return %e : tensor<32x64xf32, "sram">
}
}
