"""Chromium without a window, driven by the DevTools protocol over two pipes."""

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import time

SECONDS = 60


def found():
    """Return the path of Chromium or Chrome, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


class Chromium:
    """One page of a browser that lives as long as the body of a with statement.

    Attributes
    ----------
    complaints : list of str
        What came to the console, or went wrong on the page.
    asked : list of str
        Addresses that the page asked for.
    """

    def __init__(self, profile):
        self.complaints, self.asked, self._loaded = [], [], True
        self._ids, self._buffer = itertools.count(1), b""
        # The browser reads commands from descriptor 3 and writes answers to 4.
        reading, self._out = os.pipe()
        self._in, writing = os.pipe()
        # Out of the way of 3 and 4, which the shell sets to them one after the other.
        theirs_in, theirs_out = (fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (reading, writing))
        command = [
            found(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--remote-debugging-pipe", "--no-first-run", "--disable-extensions",
            "--disable-background-networking", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "chromium", *command],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for end in (reading, writing, theirs_in, theirs_out):
            os.close(end)

    def __enter__(self):
        self._session = None
        pages = self._do("Target.getTargets")["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        attached = self._do("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._do(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._session = None
        with contextlib.suppress(OSError, TimeoutError):
            self._do("Browser.close")
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def show(self, page, width, height=900, dark=False, media="screen"):
        """Open a file, or an address, in a window of this size."""
        self.resize(width, height, dark, media)
        self._loaded = False
        self._do("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        self.wait_loaded()

    def wait_loaded(self):
        """Wait until the page that was asked for is there."""
        deadline = time.monotonic() + SECONDS
        while not self._loaded:
            if time.monotonic() > deadline:
                raise TimeoutError("the page does not load")
            self._note(self._next())

    def resize(self, width, height=900, dark=False, media="screen"):
        """Look at the page that is open in a window of another size, or in other colours."""
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},  # nothing is half way
        ]
        self._do("Emulation.setEmulatedMedia", media=media, features=features)
        self._do(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def run(self, script):
        """Return what a script of ours, not of the page, finds; a promise is waited for."""
        answer = self._do(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def click(self, selector):
        """Click where an element is, as a person does."""
        at = self.run(
            f"""(() => {{
                const element = document.querySelector({json.dumps(selector)});
                element.scrollIntoView({{block: "center", behavior: "instant"}});
                const box = element.getBoundingClientRect();
                return [box.x + Math.min(box.width / 2, 40), box.y + box.height / 2];
            }})()"""
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._do("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left",
                     clickCount=1)  # fmt: skip

    def press_tab(self):
        """Move the focus on."""
        self.press("Tab", 9)

    def press(self, key, number=0):
        """Press a key: a letter, or one by its name and number."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self._do("Input.dispatchKeyEvent", type=kind, key=key, code=key if not text else "",
                     windowsVirtualKeyCode=number, **text)  # fmt: skip

    def until(self, script, seconds=SECONDS):
        """Wait until a script finds something, and return that; the page may change meanwhile."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if value := self.run(script):
                    return value
            except AssertionError:  # between two pages
                pass
            if time.monotonic() > deadline:
                raise TimeoutError(script)
            time.sleep(0.02)

    def picture(self, of="html", height=None, margin=0):
        """Return a picture of an element, or of the first pixels of it, as PNG."""
        x, y, wide, high = self.run(
            f"""(() => {{
                const box = document.querySelector({json.dumps(of)}).getBoundingClientRect();
                return [box.x + scrollX, box.y + scrollY, box.width, box.height];
            }})()"""
        )
        clip = {
            "x": x - margin, "y": y - margin, "scale": 1,
            "width": wide + 2 * margin, "height": (height or high) + 2 * margin,
        }  # fmt: skip
        answer = self._do(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip
        )
        return base64.b64decode(answer["data"])

    def printed(self):
        """Return the page as PDF."""
        return base64.b64decode(self._do("Page.printToPDF", preferCSSPageSize=True)["data"])

    def _do(self, method, **parameters):
        number = next(self._ids)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _next(self):
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], SECONDS)[0]:
                raise TimeoutError("Chromium does not answer")
            chunk = os.read(self._in, 1 << 20)
            if not chunk:
                raise OSError("Chromium has ended")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        self._loaded = self._loaded or method == "Page.loadEventFired"
        if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(parameters))
        if method == "Network.loadingFailed" and not parameters.get("canceled"):
            self.complaints.append(json.dumps(parameters))
        if method == "Network.requestWillBeSent":
            self.asked.append(parameters["request"]["url"])
