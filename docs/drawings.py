"""The pictures of `examples/train_deep.py`: its plan, its frontier, and a screenshot of
its page.

python docs/drawings.py    # writes pictures/frontier.svg, and, with chromedriver,
                           # pictures/plan-view.png

`generate.py` writes the drawing of the plan. The screenshot has the digest of that
drawing, so a test can tell that it is out of date without a browser.
"""

import sys
import time
from hashlib import sha256
from importlib import import_module, metadata
from pathlib import Path
from struct import pack
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

import tensorplan
from tensorplan.tools.views import page, svg
from tensorplan.tools.views.model import FrontierView, PlanView
from tensorplan.tools.views.programs import view_of

ROOT = Path(__file__).resolve().parent.parent
DRAWING = ROOT / "docs" / "pictures" / "train_deep.svg"
CURVE = ROOT / "docs" / "pictures" / "frontier.svg"
SCREENSHOT = ROOT / "docs" / "pictures" / "plan-view.png"
JAX = "0.10.2"
"""The version whose program is drawn; other versions export other programs."""
KEY = b"Drawing"
SHOWN = "%hidden_3"
CLEAR = """
const search = document.getElementById("search");
search.value = "";
search.dispatchEvent(new Event("input"));
search.blur();
"""


def train_deep() -> tensorplan.Model:
    """The program of the example. Needs JAX."""
    sys.path.insert(0, str(ROOT / "examples"))
    example: Any = import_module("train_deep")
    return example.model()


def plan() -> PlanView:
    return view_of(tensorplan.plan(train_deep()).module, "A training step")


def curve() -> str:
    points = tensorplan.frontier(train_deep())
    return svg.draw([], [FrontierView("A training step", points)])


def is_possible() -> bool:
    try:
        return metadata.version("jax") == JAX
    except metadata.PackageNotFoundError:
        return False


def drawing() -> str:
    return svg.draw([plan()]).replace(f"{ROOT}/", "")


def digest() -> bytes:
    return sha256(DRAWING.read_bytes()).hexdigest().encode()


def labeled(png: bytes) -> bytes:
    """The PNG file with the drawing's digest in a text chunk before the last chunk."""
    text = b"tEXt" + KEY + b"\0" + digest()
    chunk = pack(">I", len(text) - 4) + text + pack(">I", crc32(text))
    return png[:-12] + chunk + png[-12:]


def main() -> None:
    CURVE.write_text(curve(), encoding="utf-8")
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    browser: Any = import_module("browser")
    if not browser.available():
        sys.exit("a screenshot takes chromium and chromedriver")
    with TemporaryDirectory() as folder, browser.browser(1280, 943) as window:
        shown, shot = Path(folder, "page.html"), Path(folder, "page.png")
        html = page.page([plan()]).replace(f"{ROOT}/", "")
        shown.write_text(html, encoding="utf-8")
        window.open(shown)
        time.sleep(2)
        window.type("/", *SHOWN, "Enter")
        window.run(CLEAR)
        time.sleep(1)
        window.screenshot(shot)
        SCREENSHOT.write_bytes(labeled(shot.read_bytes()))


if __name__ == "__main__":
    main()
