"""The page about pools: its session runs as written, with a coordinator beside it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.test_messaging_pages import Shop, until


def test_the_page_on_pools_runs_as_written(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "run-a-pool.md")
    (settings,) = re.findall(r"```toml\n(.*?)```", shop.text, re.S)
    (shop.folder / "tenure.toml").write_text(settings)
    shop.play(0)
    with shop.daemon():
        until(lambda: "✓ 3 completed" in shop.run("tenure status"), "the tasks are not completed")
        until(lambda: shop.run("tenure spawn list") == "no processes\n", "processes live on")
        shop.play(1, 2)
