// RUN: plan-opt %s -p tgraph-bufferize | filecheck %s

// Both operands are computed directly into their parts of the result, which is live
// from the first one on; the concatenation is erased.
// CHECK-LABEL: func.func @computed
// CHECK:         [[C:%[a-z0-9_]+]] = memref.alloc() : memref<8x8xf32, "cpu:0">
// CHECK-NEXT:    [[A:%[a-z0-9_]+]] = memref.reinterpret_cast [[C]] to offset: [0], sizes: [4, 8], strides: [8, 1]
// CHECK-NEXT:    tgraph.exponential %x outs([[A]])
// CHECK-NEXT:    [[B:%[a-z0-9_]+]] = memref.reinterpret_cast [[C]] to offset: [32], sizes: [4, 8], strides: [8, 1]
// CHECK-NEXT:    tgraph.tanh %x outs([[B]])
// CHECK-NEXT:    tgraph.reduce [[C]]
// CHECK-NEXT:    memref.dealloc [[C]]
// CHECK-NEXT:    func.return
func.func @computed(%x: tensor<4x8xf32, "cpu:0">) -> tensor<8xf32, "cpu:0"> {
  %a = tgraph.exponential %x : tensor<4x8xf32, "cpu:0">
  %b = tgraph.tanh %x : tensor<4x8xf32, "cpu:0">
  %c = tgraph.concatenate %a, %b {dimension = 0 : i64, tgraph.in_place} : (tensor<4x8xf32, "cpu:0">, tensor<4x8xf32, "cpu:0">) -> tensor<8x8xf32, "cpu:0">
  %r = tgraph.reduce %c {kind = "add", dimensions = array<i64: 0>} : (tensor<8x8xf32, "cpu:0">) -> tensor<8xf32, "cpu:0">
  func.return %r : tensor<8xf32, "cpu:0">
}

// An argument is copied; a value that occurs twice is computed once, and copied.
// CHECK-LABEL: func.func @copied
// CHECK:         tgraph.exponential %x outs([[A:%[a-z0-9_]+]])
// CHECK:         "memref.copy"(%x
// CHECK:         "memref.copy"([[A]]
// CHECK-NOT:     tgraph.concatenate
func.func @copied(%x: tensor<4x8xf32, "cpu:0">) -> tensor<12x8xf32, "cpu:0"> {
  %a = tgraph.exponential %x : tensor<4x8xf32, "cpu:0">
  %c = tgraph.concatenate %a, %x, %a {dimension = 0 : i64, tgraph.in_place} : (tensor<4x8xf32, "cpu:0">, tensor<4x8xf32, "cpu:0">, tensor<4x8xf32, "cpu:0">) -> tensor<12x8xf32, "cpu:0">
  func.return %c : tensor<12x8xf32, "cpu:0">
}
