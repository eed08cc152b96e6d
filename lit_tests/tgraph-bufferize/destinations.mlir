// RUN: plan-opt %s -p tgraph-bufferize | filecheck %s

// Destination-style operations of other dialects: a result is computed in place over
// its destination, directly into the function's result; scalars stay.
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME:      (%a: memref<8x8xf32>, %n: f32, %0: memref<8x8xf32> {tgraph.result = 0 : i32}) -> f32 {
// CHECK-NEXT:    %two = arith.addf %n, %n : f32
// CHECK-NEXT:    linalg.fill ins(%two : f32) outs(%0 : memref<8x8xf32>)
// CHECK-NEXT:    linalg.matmul ins(%a, %a : memref<8x8xf32>, memref<8x8xf32>) outs(%0 : memref<8x8xf32>)
// CHECK-NEXT:    func.return %two : f32
func.func @accumulate(%a: tensor<8x8xf32>, %n: f32) -> (tensor<8x8xf32>, f32) {
  %two = arith.addf %n, %n : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %start = linalg.fill ins(%two : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.matmul ins(%a, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%start : tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %r, %two : tensor<8x8xf32>, f32
}

// A destination with a later reader is copied; a dead one is overwritten elementwise.
// %c is not read, so it is not copied.
// CHECK-LABEL: func.func @in_place
// CHECK-NEXT:    %x = memref.alloc() : memref<8x8xf32>
// CHECK-NEXT:    linalg.add ins(%a, %b : {{.*}}) outs(%x : memref<8x8xf32>)
// CHECK-NEXT:    %y = memref.alloc() : memref<8x8xf32>
// CHECK-NEXT:    "memref.copy"(%x, %y)
// CHECK-NEXT:    linalg.matmul ins(%a, %b : {{.*}}) outs(%y : memref<8x8xf32>)
// CHECK-NEXT:    linalg.sub ins(%x, %y : {{.*}}) outs(%x : memref<8x8xf32>)
// CHECK-NEXT:    memref.dealloc %y : memref<8x8xf32>
// CHECK-NEXT:    linalg.mul ins(%x, %c : {{.*}}) outs(%0 : memref<8x8xf32>)
func.func @in_place(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %c: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %x = linalg.add ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  %y = linalg.matmul ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%x : tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = linalg.sub ins(%x, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  %r = linalg.mul ins(%z, %c : tensor<8x8xf32>, tensor<8x8xf32>) outs(%c : tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %r : tensor<8x8xf32>
}

// An empty tensor that is read becomes memory with undefined contents.
// CHECK-LABEL: func.func @empty
// CHECK-NEXT:    %e = memref.alloc() : memref<4xf32>
// CHECK-NEXT:    linalg.exp ins(%e : memref<4xf32>) outs(%0 : memref<4xf32>)
func.func @empty() -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%e : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  func.return %r : tensor<4xf32>
}

// Two results, each computed in its destination.
// CHECK-LABEL: func.func @two
// CHECK:         outs(%0, %1 : memref<4xf32>, memref<4xf32>) {
func.func @two(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = tensor.empty() : tensor<4xf32>
  %r, %s = linalg.generic {
      indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%a : tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %x: f32, %y: f32):
    %0 = arith.addf %in, %in : f32
    linalg.yield %0, %in : f32, f32
  } -> tensor<4xf32>, tensor<4xf32>
  func.return %r, %s : tensor<4xf32>, tensor<4xf32>
}
