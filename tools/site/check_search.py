"""Check with Chromium that the search of the built site shows the right page first.

``python tools/site/check_search.py build/site``. Without Chromium nothing is checked.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import sync_playwright

CHROMIUM = Path("/usr/bin/chromium")

FIRST = {
    "GDPR": "faq.html",
    "HIPAA": "faq.html",
    "pseudonymization": "faq.html",
    "quickstart": "first-release.html",
    "install": "install.html",
    "API": "api.html",
    "how to choose k": "choosing-k-and-model.html",
    "ARX": "coming-from.html",
    "report": "report.html",
    "l-diversity": "roles-and-criteria.html",
    "resume": "operations.html",
}
"""What a reader looks for, and the page that answers it."""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


def main(site: str) -> int:
    """Return 1 if a page is not the first result, after all were tried."""
    if not CHROMIUM.exists():
        return 0
    wrong = 0
    handler = partial(_Quiet, directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(
            executable_path=str(CHROMIUM), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        for words, expected in FIRST.items():
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html?q={quote(words)}")
            first = page.locator(".md-search-result__link").first
            first.wait_for(state="attached")
            shown = (first.get_attribute("href") or "").partition("?")[0].partition("#")[0]
            if not shown.endswith(f"/{expected}") and shown != expected:
                wrong = 1
                sys.stderr.write(f"search: {words}: {expected} expected, {shown} is first\n")
            page.close()
        browser.close()
        server.shutdown()
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
