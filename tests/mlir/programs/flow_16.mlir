#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @program(%arg0: index, %arg1: i1, %arg2: memref<8x8xf32>, %arg3: memref<8x8xf32>, %arg4: memref<8x8xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg2 : memref<8x8xf32>) outs(%alloc : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = math.tanh %in : f32
      linalg.yield %4 : f32
    }
    cf.br ^bb1(%c0 : index)
  ^bb1(%0: index):  // 2 preds: ^bb0, ^bb5
    %1 = arith.cmpi slt, %0, %arg0 : index
    cf.cond_br %1, ^bb2, ^bb6
  ^bb2:  // pred: ^bb1
    cf.cond_br %arg1, ^bb3, ^bb4
  ^bb3:  // pred: ^bb2
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel"]} ins(%cst : f32) outs(%alloc_0 : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%alloc, %arg3 : memref<8x8xf32>, memref<8x8xf32>) outs(%alloc_0 : memref<8x8xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %4 = arith.mulf %in, %in_4 : f32
      %5 = arith.addf %out, %4 : f32
      linalg.yield %5 : f32
    }
    %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%alloc_0 : memref<8x8xf32>) outs(%alloc_1 : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = math.tanh %in : f32
      linalg.yield %4 : f32
    }
    %cast = memref.cast %alloc_1 : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
    memref.dealloc %alloc_0 : memref<8x8xf32>
    cf.br ^bb5(%cast : memref<8x8xf32, strided<[?, ?], offset: ?>>)
  ^bb4:  // pred: ^bb2
    %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : memref<8x8xf32>) outs(%alloc_2 : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %4 = math.exp %in : f32
      linalg.yield %4 : f32
    }
    %cast_3 = memref.cast %alloc_2 : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
    cf.br ^bb5(%cast_3 : memref<8x8xf32, strided<[?, ?], offset: ?>>)
  ^bb5(%2: memref<8x8xf32, strided<[?, ?], offset: ?>>):  // 2 preds: ^bb3, ^bb4
    linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%alloc, %2 : memref<8x8xf32>, memref<8x8xf32, strided<[?, ?], offset: ?>>) outs(%alloc : memref<8x8xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %4 = arith.addf %in, %in_4 : f32
      linalg.yield %4 : f32
    }
    %base_buffer, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %2 : memref<8x8xf32, strided<[?, ?], offset: ?>> -> memref<f32>, index, index, index, index, index
    memref.dealloc %base_buffer : memref<f32>
    %3 = arith.addi %0, %c1 : index
    cf.br ^bb1(%3 : index)
  ^bb6:  // pred: ^bb1
    memref.copy %alloc, %arg4 : memref<8x8xf32> to memref<8x8xf32>
    memref.dealloc %alloc : memref<8x8xf32>
    return
  }
  func.func private @printMemrefF32(memref<*xf32>) attributes {llvm.emit_c_interface}
  func.func @main() {
    %false = arith.constant false
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %true = arith.constant true
    %cst = arith.constant 6.250000e-02 : f32
    %c8 = arith.constant 8 : index
    %alloca = memref.alloca() : memref<8x8xf32>
    %alloca_0 = memref.alloca() : memref<8x8xf32>
    %alloca_1 = memref.alloca() : memref<8x8xf32>
    cf.br ^bb1(%c0 : index)
  ^bb1(%0: index):  // 2 preds: ^bb0, ^bb4
    %1 = arith.cmpi slt, %0, %c8 : index
    cf.cond_br %1, ^bb2(%c0 : index), ^bb5
  ^bb2(%2: index):  // 2 preds: ^bb1, ^bb3
    %3 = arith.cmpi slt, %2, %c8 : index
    cf.cond_br %3, ^bb3, ^bb4
  ^bb3:  // pred: ^bb2
    %4 = arith.addi %0, %c1 : index
    %5 = arith.addi %4, %2 : index
    %6 = arith.index_cast %5 : index to i32
    %7 = arith.sitofp %6 : i32 to f32
    %8 = arith.mulf %7, %cst : f32
    %9 = arith.mulf %8, %8 : f32
    memref.store %8, %alloca[%0, %2] : memref<8x8xf32>
    memref.store %9, %alloca_0[%0, %2] : memref<8x8xf32>
    %10 = arith.addi %2, %c1 : index
    cf.br ^bb2(%10 : index)
  ^bb4:  // pred: ^bb2
    %11 = arith.addi %0, %c1 : index
    cf.br ^bb1(%11 : index)
  ^bb5:  // pred: ^bb1
    %cast = memref.cast %alloca_1 : memref<8x8xf32> to memref<*xf32>
    call @program(%c3, %true, %alloca, %alloca_0, %alloca_1) : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    call @printMemrefF32(%cast) : (memref<*xf32>) -> ()
    call @program(%c0, %false, %alloca, %alloca_0, %alloca_1) : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    call @printMemrefF32(%cast) : (memref<*xf32>) -> ()
    call @program(%c4, %false, %alloca, %alloca_0, %alloca_1) : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<8x8xf32>) -> ()
    call @printMemrefF32(%cast) : (memref<*xf32>) -> ()
    return
  }
}

