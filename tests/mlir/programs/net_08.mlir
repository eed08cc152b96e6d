#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0) -> ()>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d0)>
module {
  func.func @program(%arg0: index, %arg1: i1, %arg2: memref<8x8xf32>, %arg3: memref<8x8xf32>, %arg4: memref<8x8xf32>) {
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 3.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %false = arith.constant false
    %true = arith.constant true
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg2 : memref<8x8xf32>) outs(%alloc : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %1 = math.absf %in : f32
      linalg.yield %1 : f32
    }
    %0 = scf.while (%arg5 = %alloc, %arg6 = %false) : (memref<8x8xf32>, i1) -> memref<8x8xf32> {
      %1 = memref.load %arg5[%c0, %c0] : memref<8x8xf32>
      %2 = arith.cmpf olt, %1, %cst_0 : f32
      %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      memref.copy %arg5, %alloc_1 : memref<8x8xf32> to memref<8x8xf32>
      %base_buffer_2, %offset_3, %sizes_4:2, %strides_5:2 = memref.extract_strided_metadata %arg5 : memref<8x8xf32> -> memref<f32>, index, index, index, index, index
      scf.if %arg6 {
        memref.dealloc %base_buffer_2 : memref<f32>
      }
      scf.condition(%2) %alloc_1 : memref<8x8xf32>
    } do {
    ^bb0(%arg5: memref<8x8xf32>):
      %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg5 : memref<8x8xf32>) outs(%alloc_1 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %1 = math.exp %in : f32
        linalg.yield %1 : f32
      }
      %alloc_2 = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
      linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel"]} ins(%cst : f32) outs(%alloc_2 : memref<8xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      }
      linalg.generic {indexing_maps = [#map, #map3], iterator_types = ["parallel", "reduction"]} ins(%alloc_1 : memref<8x8xf32>) outs(%alloc_2 : memref<8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %1 = arith.addf %in, %out : f32
        linalg.yield %1 : f32
      }
      %alloc_3 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel"]} ins(%alloc_2 : memref<8xf32>) outs(%alloc_3 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        linalg.yield %in : f32
      }
      %alloc_4 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%alloc_3 : memref<8x8xf32>) outs(%alloc_4 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %1 = math.tanh %in : f32
        linalg.yield %1 : f32
      }
      %alloc_5 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg5, %alloc_4 : memref<8x8xf32>, memref<8x8xf32>) outs(%alloc_5 : memref<8x8xf32>) {
      ^bb0(%in: f32, %in_10: f32, %out: f32):
        %1 = arith.addf %in, %in_10 : f32
        linalg.yield %1 : f32
      }
      %base_buffer_6, %offset_7, %sizes_8:2, %strides_9:2 = memref.extract_strided_metadata %arg5 : memref<8x8xf32> -> memref<f32>, index, index, index, index, index
      memref.dealloc %base_buffer_6 : memref<f32>
      memref.dealloc %alloc_1 : memref<8x8xf32>
      memref.dealloc %alloc_2 : memref<8xf32>
      memref.dealloc %alloc_3 : memref<8x8xf32>
      memref.dealloc %alloc_4 : memref<8x8xf32>
      scf.yield %alloc_5, %true : memref<8x8xf32>, i1
    }
    memref.copy %0, %arg4 : memref<8x8xf32> to memref<8x8xf32>
    %base_buffer, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %0 : memref<8x8xf32> -> memref<f32>, index, index, index, index, index
    memref.dealloc %alloc : memref<8x8xf32>
    memref.dealloc %base_buffer : memref<f32>
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

