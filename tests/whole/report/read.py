"""Opens a report in Chromium without a network, as whoever it was sent to does, and says what isn't as it should be.

    python3 read.py FILE

Prints a line of JSON with what the report says.
"""

import json
import pathlib
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

FILE = pathlib.Path(sys.argv[1]).resolve().as_uri()
expect.set_options(timeout=60_000)

with sync_playwright() as playwright:
    # Tests may run as root, where Chromium has no sandbox. It opens this file alone.
    chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    faults, asked = [], []
    page.on("console", lambda said: faults.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith("data:") else asked.append(request.url))
    page.goto(FILE)
    expect(page.locator("#curves canvas")).to_be_visible()
    expect(page.locator("#settings canvas")).to_be_visible()
    # A curve says which trial it is.
    over = page.locator("#curves .u-over").bounding_box()
    for step in range(1, 40):
        page.mouse.move(over["x"] + over["width"] / 3, over["y"] + over["height"] * step / 40)
    expect(page.locator("#curves .said")).to_contain_text("trial ")
    page.get_by_label("logarithmic").check()
    expect(page.locator("#curves canvas")).to_be_visible()
    assert not faults, faults
    # What is no part of the file stays out, though a script asks for it.
    blocked = page.evaluate("""() => new Promise((done) => {
        document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
        fetch("data:,").then(() => done("fetched"), () => {});
    })""")
    assert blocked == "connect-src", blocked
    found = Axe().run(page).response["violations"]
    serious = [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in found if rule["impact"] in ("serious", "critical")]
    assert not serious, serious
    outside = page.evaluate("""() => [...document.querySelectorAll("[src], [href], [srcset], [action], [data]")]
        .map((node) => node.outerHTML).filter((html) => !html.includes('href="data:,"'))""")
    assert not outside, outside
    texts = lambda where: page.locator(where).all_inner_texts()
    print(json.dumps({
        "asked": asked,
        "head": page.locator("#head").inner_text(),
        "trials": texts("#board tbody tr th"),
        "efficiencies": texts("#efficiencies tbody tr th"),
        "replay": page.locator("#replay-title + *").inner_text(),
        "digests": page.locator("#digests").inner_text(),
        "spec": page.locator("#spec").text_content(),
    }))
    chromium.close()
