// The sanitizer took what a branch writes last of all for what it leaves after.
// passes: tgraph-bufferize,plan-memory{strategy=greedy-by-duration}
func.func @main(%0: tensor<ui64, "cpu:0">, %p: tensor<i1, "cpu:0">) -> (tensor<ui64, "cpu:0">) {
    %2, %3 = tgraph.if %p, %0, %0, %0 : (tensor<i1, "cpu:0">, tensor<ui64, "cpu:0">, tensor<ui64, "cpu:0">, tensor<ui64, "cpu:0">) -> (tensor<ui64, "cpu:0">, tensor<ui64, "cpu:0">) {
    ^bb0(%4: tensor<ui64, "cpu:0">, %5: tensor<ui64, "cpu:0">, %6: tensor<ui64, "cpu:0">):
      tgraph.yield %4, %4 : tensor<ui64, "cpu:0">, tensor<ui64, "cpu:0">
    } else {
    ^bb0(%7: tensor<ui64, "cpu:0">, %8: tensor<ui64, "cpu:0">, %9: tensor<ui64, "cpu:0">):
      %10 = tgraph.dynamic_slice %7 {slice_sizes = array<i64>} : tensor<ui64, "cpu:0">
      tgraph.yield %7, %7 : tensor<ui64, "cpu:0">, tensor<ui64, "cpu:0">
    }
    %4 = tgraph.dot_general %0, %2 {lhs_contracting_dimensions = array<i64>, rhs_contracting_dimensions = array<i64>} : tensor<ui64, "cpu:0">
    func.return %4 : tensor<ui64, "cpu:0">
}
