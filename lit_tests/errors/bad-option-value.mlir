// RUN: not plan-opt %s -p 'plan-memory{alignment=48}' 2>&1 | filecheck %s
// RUN: not plan-opt %s -p 'plan-memory{alignment=wide}' 2>&1 | filecheck %s --check-prefix=KIND
// RUN: not plan-opt %s -p 'plan-pipeline{strategy=magic}' 2>&1 | filecheck %s --check-prefix=NESTED
// RUN: not plan-opt %s -p 'tgraph-fuse{mode=tvm}' 2>&1 | filecheck %s --check-prefix=MODE
// RUN: not plan-opt %s -p 'tgraph-fuse{max-depth=0}' 2>&1 | filecheck %s --check-prefix=DEPTH
// RUN: not plan-opt %s -p 'tgraph-tile{tiles=0}' 2>&1 | filecheck %s --check-prefix=TILES
// RUN: not plan-opt %s -p 'tgraph-tile{max-slowdown=-0.5}' 2>&1 | filecheck %s --check-prefix=SLOWER

func.func @f() {
  func.return
}

// CHECK-NOT:  Traceback
// CHECK:      plan-opt: error: pass plan-memory: alignment is 48, expected a power of two
// KIND-NOT:   Traceback
// KIND:       plan-opt: error: pass plan-memory: alignment is 'wide', expected bytes such as 4096, 64MiB or 1.5GB
// NESTED-NOT: Traceback
// NESTED:     plan-opt: error: pass plan-pipeline: strategy is 'magic', expected one of {{.*}}greedy-by-size
// MODE:       plan-opt: error: pass tgraph-fuse: mode is 'tvm', expected one of relay, nnvm, none
// DEPTH:      plan-opt: error: pass tgraph-fuse: max-depth is 0, expected 1 or more
// TILES:     plan-opt: error: pass tgraph-tile: tiles is 0, expected 1 to 1024
// SLOWER:     plan-opt: error: pass tgraph-tile: max-slowdown is -0.5, expected 0 or more
