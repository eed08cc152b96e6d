// The operand of what follows the product was read when the program was made: a part of
// an array without dimensions was a number, no view.
func.func @main(%0: tensor<i32>) -> tensor<i1> {
  %1 = tgraph.dot_general %0, %0 {lhs_contracting_dimensions = array<i64>, rhs_contracting_dimensions = array<i64>} : tensor<i32>
  %2 = tgraph.compare %0, %1 {direction = "EQ"} : (tensor<i32>, tensor<i32>) -> tensor<i1>
  func.return %2 : tensor<i1>
}
