// xDSL prints scf.execute_region without its scf.yield, and did not read that again.
func.func @f(%n: index, %c: i1, %x: memref<4xf32>, %y: memref<4xf32>) {
  %one = arith.constant 1 : index
  scf.execute_region {
    scf.for %i = %one to %n step %one {
      "memref.copy"(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
    }
    scf.yield
  }
  func.return
}
