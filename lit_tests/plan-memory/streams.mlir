// RUN: plan-opt %s -p plan-memory | filecheck %s

// In program order %b could reuse the bytes of %a, but nothing orders the streams; %c,
// in the stream of %a, can reuse them.
// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %arena = memref.alloc() {alignment = 64 : i64, tgraph.arena} : memref<128xi8>
// CHECK-DAG:     %a = memref.view %arena[%[[A:.*]]][]
// CHECK-DAG:     %c = memref.view %arena[%[[A]]][]
// CHECK:         func.return
func.func @f(%in: memref<16xf32>, %out: memref<16xf32>, %other: memref<16xf32>) {
  %a = memref.alloc() : memref<16xf32>
  tgraph.negate %in outs(%a) {tgraph.stream = 0 : i32} : memref<16xf32>
  tgraph.reverse %a outs(%out) {dimensions = array<i64: 0>, tgraph.stream = 0 : i32} : memref<16xf32>
  %b = memref.alloc() : memref<16xf32>
  tgraph.negate %in outs(%b) {tgraph.stream = 1 : i32} : memref<16xf32>
  %c = memref.alloc() : memref<16xf32>
  tgraph.negate %in outs(%c) {tgraph.stream = 0 : i32} : memref<16xf32>
  tgraph.reverse %b outs(%other) {dimensions = array<i64: 0>, tgraph.stream = 1 : i32} : memref<16xf32>
  tgraph.reverse %c outs(%out) {dimensions = array<i64: 0>, tgraph.stream = 0 : i32} : memref<16xf32>
  func.return
}
