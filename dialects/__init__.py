"""The dialects, by name; each factory imports on first use."""

from collections.abc import Callable

from xdsl.ir import Dialect


def get_all_dialects() -> dict[str, Callable[[], Dialect]]:
    """Our dialects' names and factories, as xDSL's tools take them."""

    def get_tgraph() -> Dialect:
        from tensorplan.dialects.tgraph import TGraph

        return TGraph

    return {"tgraph": get_tgraph}
