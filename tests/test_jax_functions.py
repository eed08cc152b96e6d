"""Tests a sample of JAX's public functions, and the page that lists them."""

import pytest

pytest.importorskip("jax")
import jax_functions


@pytest.mark.thorough
@pytest.mark.parametrize("case", jax_functions.CASES[::20])
def test_sample(case: str) -> None:
    assert jax_functions.check(case).status == "pass"


def test_the_page_has_all() -> None:
    rows = jax_functions.PAGE.read_text().splitlines()
    listed = [row.split("`")[1] for row in rows if row.startswith("| `")]
    assert listed == [f"jax.{case}" for case in jax_functions.CASES]
