// RUN: plan-opt %s -p tgraph-update-in-place | filecheck %s
// RUN: plan-opt %s -p tgraph-update-in-place -o %t && plan-opt %t -p tgraph-update-in-place | diff %t -

// The group reads the old row and writes the new one in place.
// CHECK-LABEL: func.func @row
// CHECK:         [[OLD:%.+]] = tgraph.read %v
// CHECK-NEXT:    tgraph.fusion([[G:%.+]] = %g, [[WHOLE:%.+]] = [[OLD]], [[START:%.+]] = %i) outs(%v)
// CHECK:           [[ROW:%.+]] = tgraph.dynamic_slice [[WHOLE]], [[START]]
// CHECK:           [[SUM:%.+]] = tgraph.add [[ROW]], [[G]]
// CHECK-NEXT:      [[NEW:%.+]] = tgraph.dynamic_update_slice [[WHOLE]], [[SUM]], [[START]]
// CHECK-NEXT:      tgraph.yield [[NEW]] : tensor<12x1024xf32>
// CHECK-NOT:     tgraph.dynamic
// CHECK:         func.return
func.func @row(%v: !tgraph.variable<tensor<12x1024xf32>>, %g: tensor<1x1024xf32>, %i: tensor<i32>) {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %m = tgraph.read %v : tensor<12x1024xf32>
  %s = tgraph.dynamic_slice %m, %i, %0 {slice_sizes = array<i64: 1, 1024>} : (tensor<12x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<1x1024xf32>
  %a = tgraph.add %s, %g : tensor<1x1024xf32>
  %n = tgraph.dynamic_update_slice %m, %a, %i, %0 outs(%v) : (tensor<12x1024xf32>, tensor<1x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<12x1024xf32>
  func.return
}

// Readers of the new row read it from the variable.
// CHECK-LABEL: func.func @reader
// CHECK:         [[NEW:%.+]] = tgraph.fusion({{.*}}) outs(%v)
// CHECK:           tgraph.dynamic_update_slice
// CHECK:         [[T:%.+]] = tgraph.fusion([[WHOLE:%.+]] = [[NEW]], [[START:%.+]] = %i)
// CHECK:           [[SLICE:%.+]] = tgraph.dynamic_slice [[WHOLE]], [[START]]
// CHECK-NEXT:      [[ROW:%.+]] = tgraph.reshape [[SLICE]]
// CHECK-NEXT:      tgraph.sqrt [[ROW]] : tensor<1024xf32>
// CHECK:         func.return [[T]]
func.func @reader(%v: !tgraph.variable<tensor<12x1024xf32>>, %g: tensor<1024xf32>, %i: tensor<i32>) -> tensor<1024xf32> {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %m = tgraph.read %v : tensor<12x1024xf32>
  %a = tgraph.exponential %g : tensor<1024xf32>
  %t = tgraph.sqrt %a : tensor<1024xf32>
  %r = tgraph.reshape %a : (tensor<1024xf32>) -> tensor<1x1024xf32>
  %n = tgraph.dynamic_update_slice %m, %r, %i, %0 outs(%v) : (tensor<12x1024xf32>, tensor<1x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<12x1024xf32>
  func.return %t : tensor<1024xf32>
}

// A row with users other than its update is copied.
// CHECK-LABEL: func.func @returned
// CHECK:         tgraph.dynamic_update_slice {{.*}} outs(%v)
func.func @returned(%v: !tgraph.variable<tensor<12x1024xf32>>, %g: tensor<1x1024xf32>, %i: tensor<i32>) -> tensor<1x1024xf32> {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %m = tgraph.read %v : tensor<12x1024xf32>
  %a = tgraph.exponential %g : tensor<1x1024xf32>
  %n = tgraph.dynamic_update_slice %m, %a, %i, %0 outs(%v) : (tensor<12x1024xf32>, tensor<1x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<12x1024xf32>
  func.return %a : tensor<1x1024xf32>
}

// A row that is computed before a later reader of the old contents is copied, too.
// CHECK-LABEL: func.func @read
// CHECK:         tgraph.exponential
// CHECK:         tgraph.reduce
// CHECK:         tgraph.dynamic_update_slice {{.*}} outs(%v)
func.func @read(%v: !tgraph.variable<tensor<12x1024xf32>>, %g: tensor<1x1024xf32>, %i: tensor<i32>) -> tensor<12xf32> {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %m = tgraph.read %v : tensor<12x1024xf32>
  %a = tgraph.exponential %g : tensor<1x1024xf32>
  %r = tgraph.reduce %m {kind = "add", dimensions = array<i64: 1>} : (tensor<12x1024xf32>) -> tensor<12xf32>
  %n = tgraph.dynamic_update_slice %m, %a, %i, %0 outs(%v) : (tensor<12x1024xf32>, tensor<1x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<12x1024xf32>
  func.return %r : tensor<12xf32>
}

// A small row and a column are copied, too.
// CHECK-LABEL: func.func @small
// CHECK-NOT:     tgraph.fusion
// CHECK:         func.return
func.func @small(%v: !tgraph.variable<tensor<12x64xf32>>, %w: !tgraph.variable<tensor<1024x12xf32>>, %g: tensor<1x64xf32>, %h: tensor<1024x1xf32>, %i: tensor<i32>) {
  %0 = tgraph.constant<0 : i32> : tensor<i32>
  %m = tgraph.read %v : tensor<12x64xf32>
  %a = tgraph.exponential %g : tensor<1x64xf32>
  %n = tgraph.dynamic_update_slice %m, %a, %i, %0 outs(%v) : (tensor<12x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<12x64xf32>
  %o = tgraph.read %w : tensor<1024x12xf32>
  %b = tgraph.exponential %h : tensor<1024x1xf32>
  %p = tgraph.dynamic_update_slice %o, %b, %0, %i outs(%w) : (tensor<1024x12xf32>, tensor<1024x1xf32>, tensor<i32>, tensor<i32>) -> tensor<1024x12xf32>
  func.return
}
