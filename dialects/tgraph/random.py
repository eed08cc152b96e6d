"""Random bits."""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerType, StringAttr
from xdsl.irdl import irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from ...support.choices import one_of
from .base import AnyTensor, TensorOp, bare, shape_of
from .partial import PartialTypes

STATES = {"threefry": (2,), "philox": (2, 3)}
"""The algorithms, and the possible numbers of 64-bit words in their states."""

THREEFRY_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Rotations by round: four rounds, a key injection, the other four, and so on."""

THREEFRY_PARITY = 0x1BD11BDA
PHILOX_ROUNDS = 10
PHILOX_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
PHILOX_KEY_STEPS = 0x9E3779B9, 0xBB67AE85


@irdl_op_definition
class RngBitGeneratorOp(TensorOp):
    """Random bits: returns the next state, and integers of random bits.

        %s1, %bits = tgraph.rng_bit_generator %s0 {algorithm = "philox"}
            : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)

    A state is a key and a counter. The algorithms are counter-based (Salmon et al.,
    "Parallel random numbers: as easy as 1, 2, 3", 2011): Threefry-2x32 with 20 rounds,
    and Philox-4x32 with 10 rounds. The layout of the numbers is that of XLA.
    """

    name = "tgraph.rng_bit_generator"
    ARITY: ClassVar = 1
    RESULTS: ClassVar = 2

    algorithm = prop_def(StringAttr)

    def result_types_of(self, inputs: Sequence[AnyTensor]) -> Sequence[AnyTensor]:
        algorithm = self.algorithm.data
        if algorithm not in STATES:
            raise VerifyException(f"algorithm is {one_of(algorithm, STATES)}")
        (state,), bits = inputs, self.declared[1]
        sizes = STATES[algorithm]
        element = state.element_type
        if (
            shape_of(state) not in [(size,) for size in sizes]
            or not isinstance(element, IntegerType)
            or element.bitwidth != 64
        ):
            words = " or ".join(map(str, sizes))
            raise VerifyException(
                f"operand 0 has type {bare(state)}, expected {words} integers of 64 "
                f"bits for {algorithm}"
            )
        if not isinstance(bits.element_type, IntegerType):
            raise VerifyException(f"result has type {bare(bits)}, expected integers")
        return [state, bits]

    def refine(self, types: PartialTypes) -> None:
        types.same_element(0, 1)
        types.same_shape(0, 1)


RANDOM_OPS = (RngBitGeneratorOp,)
