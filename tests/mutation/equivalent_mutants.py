"""Equivalent mutants, which no test can kill, and the reasons why.

    module -> (text of the line, kind of change) -> reason

mutation_score.py defines the kinds, and reports entries without a mutant.
"""

_GUARD = "for the type checker: it is never None here"
_FASTER = "the same, more slowly"
_ORDER = "only the order of numbers counts"
_SAME_LENGTH = "x & -x and x | -x have their highest bit at the same place"
_NO_STRIDES = "a layout without strides has no offset either"
_NEAR = "more neighbors than the next ones share nothing"
_NOTHING = "it adds 0"

EQUIVALENT: dict[str, dict[tuple[str, str], str]] = {
    "planning/problem.py": {
        ("if live > bound:", "compare"): "it is the bound already",
    },
    "planning/validate.py": {
        ("for event in ((start, 1, rank), (end, 0, rank))", "one more"): _ORDER,
        ("near = shelf[max(place - 1, 0) : place + 2]", "one more"): _NEAR,
        ("if rank == shelf[0] and turn > 0:", "without part 0"): _NEAR,
        (
            "if rank == shelf[-1] and turn + 1 < len(filled):",
            "without part 0",
        ): _NEAR,
    },
    "checking/plan_check.py": {
        (
            "kept = [(s, min(e, start), a) for s, e, a in last[low:high] if s < start]",
            "compare",
        ): "a range without bytes",
        (
            "kept += [(max(s, end), e, a) for s, e, a in last[low:high] if e > end]",
            "compare",
        ): "a range without bytes",
    },
    "checking/ranges.py": {
        (
            "if op is None or block.args[0] is not value:",
            "without part 0",
        ): _GUARD,
        (
            "if not isinstance(map, AffineMap) or map.num_dims or map.num_symbols:",
            "without part 0",
        ): _GUARD,
    },
    "checking/extents.py": {
        (
            "low = self.start + sum(step for step in steps if step < 0)",
            "compare",
        ): _NOTHING,
        (
            "low = self.start + sum(step for step in steps if step < 0)",
            "one more",
        ): _NOTHING,
        (
            "high = self.start + sum(step for step in steps if step > 0)",
            "compare",
        ): _NOTHING,
        (
            "most_work: Any = 10_000  # NumPy's stubs know two of its values",
            "one more",
        ): ("any number as large will do"),
        ('"version": 3,', "one more"): "NumPy does not look at it",
        (
            '"data": (2**62 + extent.start, True),',
            "one more",
        ): "any number as large will do",
        (
            '"data": (2**62 + extent.start, True),',
            "the other",
        ): "nothing is written there",
        (
            "if DYNAMIC_INDEX in shape or strides is None or offset is None or None in "
            "strides:",
            "without part 1",
        ): _NO_STRIDES,
    },
    "checking/effects.py": {
        (
            "(True, True) if self.of(user) else effects_on(user, each)",
            "the other",
        ): "who asks whether something may be read asks whether it may be written, too",
        (
            "if not isinstance(view, memref.ViewOp) or not shift or view.sizes:",
            "without part 0",
        ): _GUARD,
        (
            "return min((r[0] for r in ranges), default=0), max(",
            "one more",
        ): "nothing ends before it starts",
    },
    "checking/accesses.py": {
        (
            "return [n for n in numbers if not without >> n & 1]"
            " if without else numbers",
            "one more",
        ): "the last one inside shares bytes with none outside",
        ("return (bits & -bits).bit_length() - 1", "operator"): _SAME_LENGTH,
    },
    "checking/ownership.py": {
        (
            "if fault and not state.used >> number & 1:",
            "without part 0",
        ): "what is not used is not written",
    },
    "checking/pointees.py": {
        ('if name == "scf.condition" and outer:', "without part 1"): _GUARD,
        (
            "elif outer and op.has_trait(IsTerminator, value_if_unregistered=False):",
            "without part 0",
        ): _GUARD,
    },
    "checking/happens_before.py": {
        ("length[stream] = length.get(stream, 0) + 1", "one more"): _ORDER,
        (
            "end[stream] = max(number, end.get(stream, 0))",
            "one more",
        ): "numbers are 1 or more",
        ("if number > merged.get(stream, 0):", "compare"): "it is the number already",
    },
    "checking/arenas.py": {
        (
            "return Place(name, 0)",
            "one more",
        ): "all views of a global are so many bytes on",
    },
    "checking/caller_pools.py": {
        (
            "DYNAMIC_INDEX in shape",
            "without part 2",
        ): _NO_STRIDES,
    },
    "checking/symbolic_plan.py": {
        ("if size is None or self._bounds is None:", "without part 1"): _GUARD,
        (
            "if not within >> number & 1 and not is_known_at_least(size - end, 0):",
            "one more",
        ): "an end that is the size was found before",
        ("seen.update(new)", "left out"): _FASTER,
        (
            "found |= sum(1 << n for end, n in numbers if end <= part)",
            "compare",
        ): "an end that is the number was found before",
        (
            "below[current] |= below.get(other, 0)",
            "one more",
        ): "only empty buffers are below each other, and share nothing",
    },
    "analysis/forwarding.py": {
        (
            "return bool(op.regions) and name_of(op) in _STRUCTURED",
            "without part 0",
        ): _FASTER,
    },
    "analysis/control_flow.py": {
        (
            "if last is not None and not last.successors:",
            "without part 0",
        ): _GUARD,
    },
    "analysis/allocations.py": {
        (
            "yield from (r for r in op.results if is_memref(r) and not only_moves(op))",
            "without part 0",
        ): "nothing frees what is no memref",
        (
            "accesses[step] = accesses.get(step, True) and is_whole",
            "without part 0",
        ): "what is followed first is the memory itself, later only views",
    },
    "passes/plan/placement/output_reuse.py": {
        (
            "if strides is None or offset is None or DYNAMIC_INDEX in shape:",
            "without part 0",
        ): _NO_STRIDES,
    },
    "analysis/dependencies.py": {
        (
            "if isinstance(op, TensorOp | ReadOp | AssignOp) or is_view(op):",
            "and/or",
        ): _FASTER,
        (
            "if isinstance(op, TensorOp | ReadOp | AssignOp) or is_view(op):",
            "without part 0",
        ): _FASTER,
        (
            "if isinstance(op, TensorOp | ReadOp | AssignOp) or is_view(op):",
            "without part 1",
        ): _FASTER,
        (
            "if op.regions and any(_is_unknown(inner) for inner in op.walk() if inner "
            "is not op):",
            "without part 0",
        ): _FASTER,
    },
}
