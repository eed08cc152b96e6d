// A value that only the loop's own body defines: xDSL left a forward reference to it.
func.func @f(%c0: index, %n: index) {
  scf.for %i = %c0 to %n step %c1 {
    %c1 = arith.constant 1 : index
  }
  func.return
}
