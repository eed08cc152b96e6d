#map = affine_map<(d0, d1) -> ()>
#map1 = affine_map<(d0, d1) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d2, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
module {
  func.func @program(%arg0: index, %arg1: i1, %arg2: memref<8x8xf32>, %arg3: memref<8x8xf32>, %arg4: memref<8x8xf32>) {
    %c2 = arith.constant 2 : index
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %cst = arith.constant 0.000000e+00 : f32
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst : f32) outs(%alloc : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    }
    scf.for %arg5 = %c0 to %c8 step %c2 {
      %subview = memref.subview %arg2[%arg5, 0] [2, 8] [1, 1] : memref<8x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
      %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<2x8xf32>
      linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst : f32) outs(%alloc_0 : memref<2x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      }
      linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]} ins(%subview, %arg3 : memref<2x8xf32, strided<[8, 1], offset: ?>>, memref<8x8xf32>) outs(%alloc_0 : memref<2x8xf32>) {
      ^bb0(%in: f32, %in_3: f32, %out: f32):
        %0 = arith.mulf %in, %in_3 : f32
        %1 = arith.addf %out, %0 : f32
        linalg.yield %1 : f32
      }
      %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<2x8xf32>
      linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel"]} ins(%alloc_0 : memref<2x8xf32>) outs(%alloc_1 : memref<2x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %0 = math.tanh %in : f32
        linalg.yield %0 : f32
      }
      %subview_2 = memref.subview %alloc[%arg5, 0] [2, 8] [1, 1] : memref<8x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
      memref.copy %alloc_1, %subview_2 : memref<2x8xf32> to memref<2x8xf32, strided<[8, 1], offset: ?>>
      memref.dealloc %alloc_0 : memref<2x8xf32>
      memref.dealloc %alloc_1 : memref<2x8xf32>
    }
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

