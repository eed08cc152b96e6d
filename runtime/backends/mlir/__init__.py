"""Runs level-4 programs natively with MLIR's own tools."""
