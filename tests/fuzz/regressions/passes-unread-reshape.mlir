// A reshape that nobody reads was copied from a buffer that was freed already.
// passes: tgraph-bufferize
func.func @main() {
    %0 = tgraph.iota {dimension = 0 : i64} : tensor<3x7x3xf32, "cpu:0">
    %1 = tgraph.reverse %0 {dimensions = array<i64: 2>} : tensor<3x7x3xf32, "cpu:0">
    %2 = tgraph.reshape %1 : (tensor<3x7x3xf32, "cpu:0">) -> tensor<7x1x9xf32, "cpu:0">
    func.return
}
