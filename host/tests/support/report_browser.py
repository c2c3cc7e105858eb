"""Chromium without a window, driven over its debugging pipe: no browser driver, no further package.

Chromium reads commands from descriptor 3 and writes answers and events to descriptor 4, JSON each, ended by a NUL byte
(--remote-debugging-pipe, Chrome DevTools Protocol).
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--hide-scrollbars",
)  # fmt: skip
ANSWER_LIMIT_S = 300.0
FAINT = """(() => {
    const light = (colour) => {
        const mixed = colour.startsWith("color(srgb"), numbers = colour.match(/[0-9.]+/g).slice(0, 3);
        const parts = numbers.map((part) => (mixed ? Number(part) : part / 255))
            .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const ground = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const colour = getComputedStyle(at).backgroundColor;
            if (!/, 0\\)$|transparent/.test(colour)) return light(colour);
        }
        return 1;
    };
    return [...document.querySelectorAll('body :not(title)')].filter((each) => [...each.childNodes].some((node) =>
        node.nodeType === 3 && node.textContent.trim())).filter((each) => {
        const style = getComputedStyle(each), drawn = each instanceof SVGElement ? style.fill : style.color;
        const [one, two] = [light(drawn), ground(each)].sort((a, b) => b - a);
        return (one + 0.05) / (two + 0.05) < 4.5;
    }).map((each) => each.textContent.slice(0, 40));
})()"""
"""Texts whose contrast is less than 4.5. Source: WCAG 2.2, 1.4.3 and its relative luminance."""
KEY_CODES = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35}


class Browser:
    """One page in one Chromium; use as a context manager."""

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # Chromium wants the two pipes at 3 and 4; bash moves them there (dash knows no two-digit descriptors).
        script = f'exec chromium "$@" 3<&{to_read} 4>&{to_write}'
        flags = [
            *FLAGS,
            f"--user-data-dir={self._profile.name}",
            f"--window-size={width},{height}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *flags],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        """JavaScript errors, console errors and every request that is not for the page's own file or server."""

    def __enter__(self) -> Browser:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._to)
        os.close(self._from)
        self._process.terminate()
        self._process.wait(ANSWER_LIMIT_S)
        self._profile.cleanup()

    @property
    def process_id(self) -> int:
        """Number of the browser's first process."""
        return self._process.pid

    def open(self, page: Path) -> None:
        """Loads a file and waits until its script has drawn the chart, or has reported that it cannot."""
        drawn = "(!!window.timeChart || !document.getElementById('chart'))"
        self.visit(page.resolve().as_uri(), drawn)

    def visit(self, address: str, ready: str) -> None:
        """Loads a page and waits until it is complete and a JavaScript condition is true."""
        self.page = address
        self.send("Page.navigate", url=address)
        self.wait_for(f"location.href === {json.dumps(address)} && document.readyState === 'complete' && {ready}")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Waits until a JavaScript condition is true."""
        deadline = time.monotonic() + ANSWER_LIMIT_S
        while not self.run(condition):
            assert time.monotonic() < deadline, f"never true: {condition}; page said: {self.complaints}"
            time.sleep(0.02)

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Sends a mouse event: mouseMoved, mousePressed, mouseReleased or mouseWheel, in CSS pixels of the view."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def drag(self, start: tuple[float, float], end: tuple[float, float], *, shift: bool = False) -> None:
        """Presses the left button at one point and releases it at another."""
        modifiers = {"modifiers": 8 if shift else 0}
        self.mouse("mouseMoved", *start, **modifiers)
        self.mouse("mousePressed", *start, button="left", buttons=1, clickCount=1, **modifiers)
        self.mouse(
            "mouseMoved",
            (start[0] + end[0]) / 2,
            (start[1] + end[1]) / 2,
            button="left",
            buttons=1,
            **modifiers,
        )
        self.mouse("mouseMoved", *end, button="left", buttons=1, **modifiers)
        self.mouse("mouseReleased", *end, button="left", buttons=0, clickCount=1, **modifiers)

    def key(self, name: str, *, shift: bool = False) -> None:
        """Presses and releases a key."""
        more: dict[str, Any] = {"key": name, "modifiers": 8 if shift else 0}
        if name in KEY_CODES:
            more["windowsVirtualKeyCode"] = KEY_CODES[name]
        elif len(name) == 1:
            more["text"] = name
        self.send("Input.dispatchKeyEvent", type="keyDown", **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", **more)

    def touch(self, *steps: list[tuple[float, float]]) -> None:
        """Puts fingers down, moves them from step to step and lifts them; each step has the place of every finger."""
        for kind, step in zip(["touchStart", *["touchMove"] * (len(steps) - 1)], steps, strict=True):
            points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(step)]
            self.send("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def resize(self, width: int, height: int = 844) -> None:
        """Sets the view to that of a screen of this width [CSS pixels]; a narrow one is a phone with a touch screen."""
        phone = width < 600
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        self.send("Emulation.setTouchEmulationEnabled", enabled=phone)

    def emulate(self, *, dark: bool = False, media: str = "") -> None:
        """Sets dark or light colours, screen or print."""
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", media=media, features=scheme)

    def screenshot(self, target: Path, *, whole: bool = False) -> None:
        """Saves the view, or the whole page, as PNG."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        target.write_bytes(base64.b64decode(answer["data"]))

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command of the DevTools protocol. Returns: its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._receive()).get("id") != self._number:
            self._note(answer)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def _is_own(self, address: str) -> bool:
        """Whether the address is the page's own file or server, or needs no request at all."""
        page = getattr(self, "page", "")
        served = page.startswith("http:") and address.startswith(page)
        return address == page or served or address.startswith("data:")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            readable, _, _ = select.select([self._from], [], [], ANSWER_LIMIT_S)
            chunk = os.read(self._from, 1 << 20) if readable else b""
            assert chunk, "chromium does not answer: is Debian's package chromium installed?"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(f"exception: {params['exceptionDetails'].get('exception', {}).get('description')}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(f"console: {params['args']}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"log: {params['entry']['text']}")
        elif method == "Network.requestWillBeSent" and not self._is_own(params["request"]["url"]):
            self.complaints.append(f"request: {params['request']['url']}")
