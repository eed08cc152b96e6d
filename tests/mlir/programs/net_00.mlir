#map = affine_map<(d0, d1, d2, d3) -> ()>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#map3 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
#map4 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
module {
  func.func @program(%arg0: index, %arg1: i1, %arg2: memref<8x8xf32>, %arg3: memref<8x8xf32>, %arg4: memref<1x4x4x2xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 1.000000e-01 : f32
    %expand_shape = memref.expand_shape %arg2 [[0, 1], [2, 3]] output_shape [1, 8, 8, 1] : memref<8x8xf32> into memref<1x8x8x1xf32>
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<3x3x1x4xf32>
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_0 : f32) outs(%alloc : memref<3x3x1x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<1x6x6x4xf32>
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst : f32) outs(%alloc_1 : memref<1x6x6x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%expand_shape, %alloc : memref<1x8x8x1xf32>, memref<3x3x1x4xf32>) outs(%alloc_1 : memref<1x6x6x4xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %0 = arith.mulf %in, %in_6 : f32
      %1 = arith.addf %out, %0 : f32
      linalg.yield %1 : f32
    }
    %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<1x6x6x4xf32>
    linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%alloc_1 : memref<1x6x6x4xf32>) outs(%alloc_2 : memref<1x6x6x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = math.tanh %in : f32
      linalg.yield %0 : f32
    }
    %alloc_3 = memref.alloc() {alignment = 64 : i64} : memref<3x3x4x2xf32>
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_0 : f32) outs(%alloc_3 : memref<3x3x4x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    %alloc_4 = memref.alloc() {alignment = 64 : i64} : memref<1x4x4x2xf32>
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst : f32) outs(%alloc_4 : memref<1x4x4x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]} ins(%alloc_2, %alloc_3 : memref<1x6x6x4xf32>, memref<3x3x4x2xf32>) outs(%alloc_4 : memref<1x4x4x2xf32>) {
    ^bb0(%in: f32, %in_6: f32, %out: f32):
      %0 = arith.mulf %in, %in_6 : f32
      %1 = arith.addf %out, %0 : f32
      linalg.yield %1 : f32
    }
    %alloc_5 = memref.alloc() {alignment = 64 : i64} : memref<1x4x4x2xf32>
    linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%alloc_4 : memref<1x4x4x2xf32>) outs(%alloc_5 : memref<1x4x4x2xf32>) {
    ^bb0(%in: f32, %out: f32):
      %0 = math.tanh %in : f32
      linalg.yield %0 : f32
    }
    memref.copy %alloc_5, %arg4 : memref<1x4x4x2xf32> to memref<1x4x4x2xf32>
    memref.dealloc %alloc : memref<3x3x1x4xf32>
    memref.dealloc %alloc_1 : memref<1x6x6x4xf32>
    memref.dealloc %alloc_2 : memref<1x6x6x4xf32>
    memref.dealloc %alloc_3 : memref<3x3x4x2xf32>
    memref.dealloc %alloc_4 : memref<1x4x4x2xf32>
    memref.dealloc %alloc_5 : memref<1x4x4x2xf32>
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
    %alloca_1 = memref.alloca() : memref<1x4x4x2xf32>
    scf.for %arg0 = %c0 to %c8 step %c1 {
      scf.for %arg1 = %c0 to %c8 step %c1 {
        %0 = arith.addi %arg0, %c1 : index
        %1 = arith.addi %0, %arg1 : index
        %2 = arith.index_cast %1 : index to i32
        %3 = arith.sitofp %2 : i32 to f32
        %4 = arith.mulf %3, %cst : f32
        %5 = arith.mulf %4, %4 : f32
        memref.store %4, %alloca[%arg0, %arg1] : memref<8x8xf32>
        memref.store %5, %alloca_0[%arg0, %arg1] : memref<8x8xf32>
      }
    }
    %cast = memref.cast %alloca_1 : memref<1x4x4x2xf32> to memref<*xf32>
    call @program(%c3, %true, %alloca, %alloca_0, %alloca_1) : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<1x4x4x2xf32>) -> ()
    call @printMemrefF32(%cast) : (memref<*xf32>) -> ()
    call @program(%c0, %false, %alloca, %alloca_0, %alloca_1) : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<1x4x4x2xf32>) -> ()
    call @printMemrefF32(%cast) : (memref<*xf32>) -> ()
    call @program(%c4, %false, %alloca, %alloca_0, %alloca_1) : (index, i1, memref<8x8xf32>, memref<8x8xf32>, memref<1x4x4x2xf32>) -> ()
    call @printMemrefF32(%cast) : (memref<*xf32>) -> ()
    return
  }
}

