"""Reports in a real browser, judged by axe: nothing that keeps people from reading them.

Wide and on a telephone, light and dark. It needs chromium, and axe (package axe-core-python).
"""

import html
import importlib.util
import json
import re
import shutil
import subprocess
from importlib import resources

import pytest

from mpc_rr.results.folder import write_results
from mpc_rr.running import run_study
from mpc_rr.show.report import report
from mpc_rr.study.file import load_scenario

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
AXE = "axe_core_python"
REPORTS = ("quickstart", "block_survey", "masked_salaries", "anonymous_survey", "rr_clusters")
LIMIT_S = 600
SAID = re.compile(r'<pre id="axe">(.*?)</pre>', re.DOTALL)
ASK = """<script>
axe.run(document, {resultTypes: ["violations"]}).then(found => {
  const told = document.createElement("pre");
  told.id = "axe";
  told.textContent = JSON.stringify({
    dark: matchMedia("(prefers-color-scheme: dark)").matches, width: innerWidth,
    passes: found.passes.length,
    violations: found.violations.map(v => [v.impact, v.id, v.nodes.map(n => n.html).slice(0, 3)]),
  });
  document.body.append(told);
});
</script>"""

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.skipif(importlib.util.find_spec(AXE) is None, reason=f"{AXE} is not installed"),
]


def judged(page, folder, *, dark, width):
    """What axe says of a page: with its impact, what is wrong, and where."""
    axe = resources.files(AXE).joinpath("axe.min.js").read_text(encoding="utf-8")
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"<script>{axe}</script>{ASK}</body>"))
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
            "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", f"--user-data-dir={folder / 'profile'}",
            f"--window-size={width},2000",
            f"--blink-settings=preferredColorScheme={int(not dark)}",
            "--virtual-time-budget=600000", "--dump-dom", file.as_uri(),
        ],
        capture_output=True, text=True, timeout=LIMIT_S, check=True,
    )  # fmt: skip
    (said,) = SAID.findall(done.stdout)
    found = json.loads(html.unescape(said))
    assert found["dark"] == dark
    assert found["passes"] > 5
    return found["violations"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The reports by name."""
    found = {}
    for name in REPORTS:
        folder = tmp_path_factory.mktemp(name) / "run"
        write_results(run_study(load_scenario(name), transport="memory", seed=1), folder)
        found[name] = report(folder)
    return found


@pytest.mark.parametrize(("dark", "width"), [(False, 1280), (True, 500)])
@pytest.mark.parametrize("name", REPORTS)
def test_axe_finds_nothing_in_a_report(pages, tmp_path, name, dark, width):
    assert judged(pages[name], tmp_path, dark=dark, width=width) == []


def test_axe_finds_what_is_wrong(pages, tmp_path):
    """A text as faint as the page, and a picture without words."""
    page = pages["quickstart"].replace("--dim: #60646c", "--dim: #e0e0e0")
    page = page.replace("</main>", '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="></main>')
    found = {name for _, name, _ in judged(page, tmp_path, dark=False, width=1280)}
    assert {"color-contrast", "image-alt"} <= found
