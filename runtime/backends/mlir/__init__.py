"""Level-4 programs run natively, by MLIR's own tools."""
