"""Gradients of reductions and of products of tensors."""

from ....dialects.tgraph.base import ints, with_shape
from ....dialects.tgraph.reducing import DotGeneralOp, ReduceOp
from .site import GradientSite, Term, converted, gradient_of, type_of
from .writing import broadcast, reduce, refuse, transpose


@gradient_of(ReduceOp)
def _reduce(site: GradientSite[ReduceOp], index: int) -> Term:
    shape = site.input_type().get_shape()
    dims = site.op.dimensions.get_values()
    kept = [d for d in range(len(shape)) if d not in dims]

    def spread(term: Term) -> Term:
        return broadcast(term, shape, kept)

    def count(condition: Term, like: Term) -> Term:
        ones = site.splat(1.0, with_shape(type_of(like), shape))
        return reduce(ones.where(condition), "add", dims)

    kind = site.op.kind.data
    if kind == "add":
        return spread(site.g)
    if kind in ("maximum", "minimum"):
        # All equal extrema share the gradient, as in JAX.
        chosen = site.x().equals(spread(site.y))
        return spread(site.g / count(chosen, site.g)).where(chosen)
    if kind == "multiply":
        # The product of all other elements, without a division by zero.
        x = site.x()
        zero = x.equals(0.0)
        zeros = count(zero, site.g)
        others = site.splat(1.0, type_of(x)).where(zero, x)
        product = site.g * reduce(others, "multiply", dims)
        only = spread(product.where(zeros.equals(1.0)))
        return only.where(zero, spread(product.where(zeros.equals(0.0))) / others)
    raise refuse(site.op, f"a reduction of kind {kind!r}")


@gradient_of(DotGeneralOp)
def _dot_general(site: GradientSite[DotGeneralOp], index: int) -> Term:
    """The product of the gradient with the other operand, contracted over the free
    dimensions of the latter. In the common case, the order of the operands makes a
    transpose unnecessary."""
    batching, contracting = site.op.batching, site.op.contracting
    mine, other = index, 1 - index
    batch = len(batching[0])
    free = [
        [
            d
            for d in range(site.input_type(side).get_num_dims())
            if d not in batching[side] and d not in contracting[side]
        ]
        for side in (0, 1)
    ]
    start = batch + (len(free[0]) if other == 1 else 0)
    wide = converted(site.x(other), site.g.element)
    operands = [
        (
            site.g,
            range(batch),
            range(start, start + len(free[other])),
        ),
        (wide, batching[other], free[other]),
    ]
    # `dims`: for each dimension of the product, the dimension of operand `index`.
    of_gradient = [*free[mine]]
    of_other = [
        contracting[mine][contracting[other].index(d)]
        for d in sorted(contracting[other])
    ]
    if mine == 1:
        operands.reverse()
        dims = [*batching[mine], *of_other, *of_gradient]
    else:
        dims = [*batching[mine], *of_gradient, *of_other]
    (lhs, lhs_batch, lhs_sum), (rhs, rhs_batch, rhs_sum) = operands
    product = site.emit(
        DotGeneralOp,
        lhs,
        rhs,
        lhs_batching_dimensions=ints(lhs_batch),
        rhs_batching_dimensions=ints(rhs_batch),
        lhs_contracting_dimensions=ints(lhs_sum),
        rhs_contracting_dimensions=ints(rhs_sum),
    )
    product = converted(product, site.input_type(index).element_type)
    return transpose(product, [dims.index(d) for d in range(len(dims))])
