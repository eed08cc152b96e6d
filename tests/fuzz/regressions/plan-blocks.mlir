// -t json asked a function of several blocks for its block.
func.func @f(%x: memref<4xf32>) {
  cf.br ^end
^end:
  func.return
}
