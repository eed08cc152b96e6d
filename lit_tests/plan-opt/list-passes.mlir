// RUN: plan-opt --list-passes | filecheck %s

// CHECK:      plan-memory {{.*}}Plans the allocations of each function into arenas.
// CHECK-NEXT:     bank-slack: int = 0
// CHECK-NEXT:     arena: str = alloc
// CHECK-NEXT:     alignment: int = 64
// CHECK-NEXT:     reuse-outputs: bool = true
// CHECK-NEXT:     strategy: str = auto
// CHECK:      canonicalize
