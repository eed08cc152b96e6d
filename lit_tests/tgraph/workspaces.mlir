// RUN: plan-opt %s | plan-opt | filecheck %s
// RUN: plan-opt %s --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: plan-opt %s --print-op-generic | plan-opt | filecheck %s

// A workspace follows the destinations, with its type.
// CHECK:      tgraph.negate %a outs(%r) workspace(%s : memref<64xi8, "cpu:0">) : memref<4xf32, "cpu:0">
// CHECK-NEXT: tgraph.fusion(%x = %a) outs(%r) workspace(%s : memref<64xi8, "cpu:0">) : memref<4xf32, "cpu:0"> {
// GENERIC:    "tgraph.negate"(%a, %r, %s) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (memref<4xf32, "cpu:0">, memref<4xf32, "cpu:0">, memref<64xi8, "cpu:0">) -> ()
func.func @f(%a: memref<4xf32, "cpu:0">, %r: memref<4xf32, "cpu:0">, %s: memref<64xi8, "cpu:0">) {
  tgraph.negate %a outs(%r) workspace(%s : memref<64xi8, "cpu:0">) : memref<4xf32, "cpu:0">
  tgraph.fusion(%x = %a) outs(%r) workspace(%s : memref<64xi8, "cpu:0">) : memref<4xf32, "cpu:0"> {
    %0 = tgraph.negate %x : tensor<4xf32, "cpu:0">
    tgraph.yield %0 : tensor<4xf32, "cpu:0">
  }
  func.return
}
