"""A headless Chromium, driven through chromedriver by the WebDriver protocol.

Tests of HTML pages use it. `available()` says whether both programs are installed.
"""

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

_PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None
)
_DRIVER = shutil.which("chromedriver")
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key that the protocol fixes

KEYS = {
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "Left": "\ue012",
    "Up": "\ue013",
    "Right": "\ue014",
    "Down": "\ue015",
    "Tab": "\ue004",
    "Shift": "\ue008",
}


def available() -> bool:
    return _PROGRAM is not None and _DRIVER is not None


class Browser:
    """A browser window, as a WebDriver session."""

    def __init__(self, url: str, session: str):
        self._url = f"{url}/session/{session}"

    def open(self, path: Path) -> None:
        self._post("url", {"url": path.resolve().as_uri()})

    def run(self, script: str) -> Any:
        """Runs JavaScript; returns its result, converted from JSON."""
        return self._post("execute/sync", {"script": script, "args": []})

    def text(self, selector: str) -> str:
        return self.run(f"return document.querySelector({selector!r}).innerText")

    def type(self, *keys: str) -> None:
        """Types each of `keys`: a name in `KEYS`, or text."""
        actions: list[Mapping[str, object]] = []
        for key in (k for name in keys for k in KEYS.get(name, name)):
            actions += [{"type": "keyDown", "value": key}]
            actions += [{"type": "keyUp", "value": key}]
        self._act({"type": "key", "id": "keyboard", "actions": actions})

    def point(self, x: float, y: float, *, click: bool = False) -> None:
        actions: list[Mapping[str, object]] = [
            {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
        ]
        if click:
            actions += [{"type": "pointerDown", "button": 0}]
            actions += [{"type": "pointerUp", "button": 0}]
        self._act({"type": "pointer", "id": "mouse", "actions": actions})

    def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        def to(x: int, y: int) -> Mapping[str, object]:
            return {"type": "pointerMove", "duration": 50, "x": x, "y": y}

        down = {"type": "pointerDown", "button": 0}
        up = {"type": "pointerUp", "button": 0}
        actions = [to(*start), down, to(*end), up]
        self._act({"type": "pointer", "id": "mouse", "actions": actions})

    def wheel(self, x: float, y: float, amount: int) -> None:
        action = {"type": "scroll", "x": round(x), "y": round(y)}
        action |= {"deltaX": 0, "deltaY": amount}
        self._act({"type": "wheel", "id": "wheel", "actions": [action]})

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", "screenshot")))

    def log(self) -> Sequence[str]:
        """Errors and warnings on the console since the last call."""
        entries = self._post("se/log", {"type": "browser"})
        return [entry["message"] for entry in entries]

    def dark(self, dark: bool) -> None:
        value = "dark" if dark else "light"
        params = {"features": [{"name": "prefers-color-scheme", "value": value}]}
        command = {"cmd": "Emulation.setEmulatedMedia", "params": params}
        self._post("goog/cdp/execute", command)

    def _act(self, source: Mapping[str, object]) -> None:
        self._post("actions", {"actions": [source]})

    def _post(self, command: str, body: object) -> Any:
        return self._call("POST", command, body)

    def _call(self, method: str, command: str, body: object = None) -> Any:
        return _request(method, f"{self._url}/{command}", body)


def _request(method: str, url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(url, data, method=method), timeout=60) as answer:
        return json.load(answer)["value"]


@contextmanager
def browser(width: int = 1400, height: int = 900) -> Iterator[Browser]:
    """Opens a browser and closes it at the end of the block."""
    assert _DRIVER is not None
    with subprocess.Popen(
        [_DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as driver:
        try:
            assert driver.stdout is not None
            lines = (line.decode() for line in driver.stdout)
            port = next(m[1] for m in map(_PORT.search, lines) if m)
            url = f"http://127.0.0.1:{port}"
            arguments = ["--headless=new", "--no-sandbox", "--disable-gpu"]
            arguments += [f"--window-size={width},{height}", "--disable-dev-shm-usage"]
            options = {"binary": _PROGRAM, "args": arguments}
            wanted = {
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            body = {"capabilities": {"alwaysMatch": wanted}}
            session = _request("POST", f"{url}/session", body)["sessionId"]
            try:
                yield Browser(url, session)
            finally:
                _request("DELETE", f"{url}/session/{session}")
        finally:
            driver.terminate()


_PORT = re.compile(r"successfully on port (\d+)")
