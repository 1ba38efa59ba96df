"""A browser's tab for tests: goes to pages, and notes down whatever goes wrong there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Request

ROOT = Path(__file__).parents[3]
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1440, "height": 900}
PATIENCE = 10_000  # milliseconds


class Tab:
    """`troubles` are errors on the console, dialogs, and requests to anybody else than our server."""

    def __init__(self, browser: Browser, url: str, **settings: Any) -> None:
        self.url = url
        self.troubles: list[str] = []
        self.forgives: tuple[str, ...] = ()  # texts of errors that a test asks for
        self.context = browser.new_context(**{"viewport": DESK, "color_scheme": "light", **settings})
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not any(text in message.text for text in self.forgives):
            self.troubles.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "data:")):
            self.troubles.append(f"request: {request.url}")

    def go(self, path: str) -> None:
        """Open a page, and wait until it shows what it has."""
        self.page.goto(self.url + path)
        self.page.locator("h1").first.wait_for()
        self.page.locator(".loading").first.wait_for(state="detached")

    def find(self, selector: str, **options: Any) -> Locator:
        return self.page.locator(selector, **options)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def nameless(self) -> list[str]:
        """Controls that somebody who only listens could not tell apart."""
        found: list[str] = self.page.evaluate(
            """() => [...document.querySelectorAll('button, a[href], input, select, textarea')]
            .filter((one) => !(one.textContent.trim() || one.ariaLabel || one.title || one.labels?.length))
            .map((one) => one.outerHTML)"""
        )
        return found

    def is_too_wide(self) -> bool:
        """Whether the page can be pushed sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))

    def picture(self, folder: Path | None, name: str, **options: Any) -> None:
        """Keep what the page looks like, where pictures are wanted."""
        if folder is not None:
            self.page.screenshot(path=folder / name, **options)

    def emptied(self) -> list[str]:
        """Make it as good as new. The troubles it had."""
        troubles, self.troubles, self.forgives = self.troubles, [], ()
        self.page.unroute_all()
        if self.page.url.startswith(self.url):
            self.page.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
        self.page.goto("about:blank")
        self.context.clear_cookies()
        self.page.set_viewport_size(DESK)
        self.page.emulate_media(color_scheme="light", reduced_motion="no-preference")
        self.troubles.clear()  # of requests that the end of the page cut off
        return troubles

    def close(self) -> None:
        self.context.close()
