"""The dashboard: static files of a single-page application. It uses the HTTP API like any other client.

`static/` has ES modules that a browser runs without a build step, one per page in `js/pages/`; styles; and in `vendor/`
third-party code with its licences. Nothing is loaded from other hosts. `pages.py` serves the files. To add a page: a
module in `js/pages/`, a line each in `PAGES` of `js/shell.js` and `VIEWS` of `js/main.js`.
"""

from tenure.server.dashboard.pages import Dashboard

__all__ = ["Dashboard"]
