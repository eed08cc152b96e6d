// Real MLIR accepts level 3 in generic form.
// REQUIRES: mlir-opt
// RUN: plan-opt %S/../plan-pipeline/train_step.mlir -p plan-pipeline --print-op-generic | mlir-opt --allow-unregistered-dialect | filecheck %s
// RUN: plan-opt %S/../tgraph-bufferize/bufferize.mlir --split-input-file -p tgraph-bufferize,plan-memory --print-op-generic | mlir-opt --allow-unregistered-dialect --split-input-file | filecheck %s --check-prefix=BUFFERS

// CHECK: memref.view
// BUFFERS: strides: [0, 1]
