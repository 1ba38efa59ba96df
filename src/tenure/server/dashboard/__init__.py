"""The dashboard: static files, and the one page that they make. It asks the HTTP API like anybody else.

`static/` holds ES modules that a browser runs as they stand, one a page in `js/pages/`; styles; and in `vendor/` what
others wrote, with its licences. There is no build step and no outside host. `pages.py` serves them. To add a page: a
module in `js/pages/`, a line each in `PAGES` of `js/shell.js` and `VIEWS` of `js/main.js`.
"""

from tenure.server.dashboard.pages import Dashboard

__all__ = ["Dashboard"]
