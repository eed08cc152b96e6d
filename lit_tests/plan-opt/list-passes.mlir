// RUN: plan-opt --list-passes | filecheck %s

// CHECK:      plan-memory {{.*}}Plans the allocations of each function into arenas.
// CHECK-NEXT:     strategy: str = auto
// CHECK-NEXT:     alignment: int = 64
// CHECK:      canonicalize
