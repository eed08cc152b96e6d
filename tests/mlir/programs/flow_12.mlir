#map = affine_map<(d0, d1) -> (d0, d1)>
module {
  func.func @program(%arg0: index, %arg1: i1, %arg2: memref<8x8xf32>, %arg3: memref<8x8xf32>, %arg4: memref<8x8xf32>) {
    %0 = scf.if %arg1 -> (memref<8x8xf32, strided<[?, ?], offset: ?>>) {
      %alloc_10 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg2 : memref<8x8xf32>) outs(%alloc_10 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %3 = math.exp %in : f32
        linalg.yield %3 : f32
      }
      %cast = memref.cast %alloc_10 : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
      scf.yield %cast : memref<8x8xf32, strided<[?, ?], offset: ?>>
    } else {
      %alloc_10 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg2 : memref<8x8xf32>) outs(%alloc_10 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %3 = math.absf %in : f32
        linalg.yield %3 : f32
      }
      %cast = memref.cast %alloc_10 : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
      scf.yield %cast : memref<8x8xf32, strided<[?, ?], offset: ?>>
    }
    %alloc = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%0 : memref<8x8xf32, strided<[?, ?], offset: ?>>) outs(%alloc : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = math.tanh %in : f32
      linalg.yield %3 : f32
    }
    %1 = scf.if %arg1 -> (memref<8x8xf32, strided<[?, ?], offset: ?>>) {
      %alloc_10 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%alloc : memref<8x8xf32>) outs(%alloc_10 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %3 = math.exp %in : f32
        linalg.yield %3 : f32
      }
      %cast = memref.cast %alloc_10 : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
      scf.yield %cast : memref<8x8xf32, strided<[?, ?], offset: ?>>
    } else {
      %alloc_10 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%alloc : memref<8x8xf32>) outs(%alloc_10 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %3 = math.absf %in : f32
        linalg.yield %3 : f32
      }
      %cast = memref.cast %alloc_10 : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
      scf.yield %cast : memref<8x8xf32, strided<[?, ?], offset: ?>>
    }
    %alloc_0 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%1 : memref<8x8xf32, strided<[?, ?], offset: ?>>) outs(%alloc_0 : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = math.tanh %in : f32
      linalg.yield %3 : f32
    }
    %2 = scf.if %arg1 -> (memref<8x8xf32, strided<[?, ?], offset: ?>>) {
      %alloc_10 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%alloc_0 : memref<8x8xf32>) outs(%alloc_10 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %3 = math.exp %in : f32
        linalg.yield %3 : f32
      }
      %cast = memref.cast %alloc_10 : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
      scf.yield %cast : memref<8x8xf32, strided<[?, ?], offset: ?>>
    } else {
      %alloc_10 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
      linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%alloc_0 : memref<8x8xf32>) outs(%alloc_10 : memref<8x8xf32>) {
      ^bb0(%in: f32, %out: f32):
        %3 = math.absf %in : f32
        linalg.yield %3 : f32
      }
      %cast = memref.cast %alloc_10 : memref<8x8xf32> to memref<8x8xf32, strided<[?, ?], offset: ?>>
      scf.yield %cast : memref<8x8xf32, strided<[?, ?], offset: ?>>
    }
    %alloc_1 = memref.alloc() {alignment = 64 : i64} : memref<8x8xf32>
    linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%2 : memref<8x8xf32, strided<[?, ?], offset: ?>>) outs(%alloc_1 : memref<8x8xf32>) {
    ^bb0(%in: f32, %out: f32):
      %3 = math.tanh %in : f32
      linalg.yield %3 : f32
    }
    memref.copy %alloc_1, %arg4 : memref<8x8xf32> to memref<8x8xf32>
    %base_buffer, %offset, %sizes:2, %strides:2 = memref.extract_strided_metadata %0 : memref<8x8xf32, strided<[?, ?], offset: ?>> -> memref<f32>, index, index, index, index, index
    %base_buffer_2, %offset_3, %sizes_4:2, %strides_5:2 = memref.extract_strided_metadata %1 : memref<8x8xf32, strided<[?, ?], offset: ?>> -> memref<f32>, index, index, index, index, index
    %base_buffer_6, %offset_7, %sizes_8:2, %strides_9:2 = memref.extract_strided_metadata %2 : memref<8x8xf32, strided<[?, ?], offset: ?>> -> memref<f32>, index, index, index, index, index
    memref.dealloc %base_buffer : memref<f32>
    memref.dealloc %alloc : memref<8x8xf32>
    memref.dealloc %base_buffer_2 : memref<f32>
    memref.dealloc %alloc_0 : memref<8x8xf32>
    memref.dealloc %base_buffer_6 : memref<f32>
    memref.dealloc %alloc_1 : memref<8x8xf32>
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

