"""A headless Chromium for tests of pages, driven by the WebDriver protocol: JSON over HTTP, as chromedriver takes it.

Debian has both as the packages chromium and chromium-driver.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DRIVER = shutil.which("chromedriver")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AVAILABLE = DRIVER is not None and BROWSER is not None
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the driver is on this machine


class Browser:
    """One window. `errors` are what scripts of the page have logged."""

    def __init__(self, session: str) -> None:
        self._session = session

    def open(self, page: Path) -> None:
        self._post("url", url=page.as_uri())

    def script(self, text: str) -> Any:
        """What a JavaScript function with this body returns."""
        return self._post("execute/sync", script=text, args=[])

    def click(self, selector: str) -> None:
        """Click the middle of an element, as a user does: it has to be there and in view."""
        element = self._post("element", using="css selector", value=selector)
        (reference,) = element.values()
        self._post(f"element/{reference}/click")

    def press(self, selector: str, key: str) -> None:
        element = self._post("element", using="css selector", value=selector)
        (reference,) = element.values()
        self._post(f"element/{reference}/value", text=key)

    def _post(self, what: str, **data: Any) -> Any:
        return post(f"{self._session}/{what}", data)


def post(address: str, data: dict[str, Any]) -> Any:
    request = urllib.request.Request(address, json.dumps(data).encode(), {"Content-Type": "application/json"})
    with _OPENER.open(request, timeout=60) as answer:
        return json.loads(answer.read())["value"]


@contextmanager
def browser(scripts: bool = True, dark: bool = False) -> Iterator[Browser]:
    """A browser for as long as the block runs; without `scripts`, pages can't run any."""
    assert DRIVER is not None and BROWSER is not None
    options: dict[str, Any] = {
        "binary": BROWSER,
        "args": ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"],
    }
    if not scripts:
        options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
    if dark:
        options["args"].append("--blink-settings=preferredColorScheme=0")
    driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert driver.stdout is not None
        port = next(found[1] for line in driver.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        root = f"http://127.0.0.1:{port}/session"
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        session = f"{root}/{post(root, wanted)['sessionId']}"
        try:
            yield Browser(session)
        finally:
            _OPENER.open(urllib.request.Request(session, method="DELETE"), timeout=60).close()
    finally:
        driver.terminate()
        driver.wait()
        if driver.stdout is not None:
            driver.stdout.close()
