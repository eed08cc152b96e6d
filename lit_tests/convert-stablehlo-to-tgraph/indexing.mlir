// RUN: plan-opt %s -p convert-stablehlo-to-tgraph | filecheck %s

// CHECK:      %0 = tgraph.gather %arg0, %arg1 {offset_dims = array<i64: 1>, collapsed_slice_dims = array<i64: 0>, start_index_map = array<i64: 0>, index_vector_dim = 1 : i64, slice_sizes = array<i64: 1, 4>} : (tensor<9x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
// A body that returns the update means replacement.
// CHECK-NEXT: %1 = tgraph.scatter %arg0, %arg1, %0 {kind = "replace", update_window_dims = array<i64: 1>, inserted_window_dims = array<i64: 0>, scatter_dims_to_operand_dims = array<i64: 0>, index_vector_dim = 1 : i64} : (tensor<9x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<9x4xf32>
// CHECK-NEXT: %2 = tgraph.scatter %1, %arg1, %0 {kind = "add",
"func.func"() <{function_type = (tensor<9x4xf32>, tensor<3x1xi32>) -> (), sym_name = "main"}> ({
^bb0(%x: tensor<9x4xf32>, %i: tensor<3x1xi32>):
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<9x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  %1 = "stablehlo.scatter"(%x, %i, %0) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
  ^bb1(%a: tensor<f32>, %b: tensor<f32>):
    "stablehlo.return"(%b) : (tensor<f32>) -> ()
  }) : (tensor<9x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<9x4xf32>
  %2 = "stablehlo.scatter"(%1, %i, %0) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
  ^bb1(%a: tensor<f32>, %b: tensor<f32>):
    %3 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%3) : (tensor<f32>) -> ()
  }) : (tensor<9x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<9x4xf32>
  "func.return"() : () -> ()
}) : () -> ()
