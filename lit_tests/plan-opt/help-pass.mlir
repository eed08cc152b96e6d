// RUN: plan-opt --help-pass plan-memory | filecheck %s
// RUN: plan-opt --help-pass convert-scf-to-cf | filecheck %s --check-prefix=XDSL
// RUN: plan-opt -p help | filecheck %s --check-prefix=LIST

// CHECK:      `plan-memory`: places allocations into one arena per memory space
// CHECK:      Needs: memrefs
// CHECK:      strategy: str = auto
// CHECK-NEXT:     how to place buffers
// XDSL:       Lower `scf.for` and `scf.if` to unstructured control flow.
// LIST:       tgraph-fuse
