"""Renders plans in the format of a file name: a page, a drawing, or a bitmap."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Any

from ...support.extras import missing_extra_message
from . import page, svg
from .model import FrontierView, PlanView

_ZOOM = 2  # pixels of a bitmap per pixel of the drawing


class MissingPackage(Exception):
    """The package that renders bitmaps is not installed."""


def suffix_of(path: str) -> str:
    """The suffix of `path`, which selects the format; `.html` without one and for `-`.

    Raises `ValueError` for an unknown suffix.
    """
    suffix = PurePath(path).suffix.lower() or ".html"
    if suffix not in _FORMATS:
        raise ValueError(f"{path} ends in {suffix}, expected {', '.join(_FORMATS)}")
    return suffix


def rendered(
    path: str, plans: Sequence[PlanView], frontiers: Sequence[FrontierView] = ()
) -> bytes:
    """The contents of a file called `path`. A page does not show the frontiers.

    Raises `ValueError` for an unknown suffix, and `MissingPackage`.
    """
    return _FORMATS[suffix_of(path)](plans, frontiers)


def _page(plans: Sequence[PlanView], _: Sequence[FrontierView]) -> bytes:
    return page.page(plans).encode()


def _drawing(plans: Sequence[PlanView], frontiers: Sequence[FrontierView]) -> bytes:
    return svg.draw(plans, frontiers).encode()


def _bitmap(plans: Sequence[PlanView], frontiers: Sequence[FrontierView]) -> bytes:
    try:
        resvg: Any = import_module("resvg_py")
    except ImportError as error:
        raise MissingPackage(
            missing_extra_message("PNG requires resvg_py", "png", error)
        ) from None
    return bytes(resvg.svg_to_bytes(svg_string=svg.draw(plans, frontiers), zoom=_ZOOM))


_FORMATS: Mapping[
    str, Callable[[Sequence[PlanView], Sequence[FrontierView]], bytes]
] = {".html": _page, ".svg": _drawing, ".png": _bitmap}
