"""Loads a page of a running server in Chromium, each time as if for the first time.

    python3 first_paint.py URL TOKEN PATH LOADS

Prints a line of JSON: the median of the milliseconds to the first contentful paint, and of the bytes over the wire until the charts
are drawn.
"""

import json
import statistics
import sys

from playwright.sync_api import sync_playwright

URL, TOKEN, PATH, LOADS = sys.argv[1:]


def load(browser):
    """The milliseconds and the bytes of a load by a browser that has nothing of the server but a session."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    form, own = {"token": TOKEN, "to": "/v1/health"}, {"origin": URL, "sec-fetch-site": "same-origin"}
    answer = context.request.post(URL + "/sign-in", form=form, headers=own)
    assert answer.ok, answer.status
    page = context.new_page()
    page.set_default_timeout(60_000)
    network = context.new_cdp_session(page)
    network.send("Network.enable")
    sizes = []
    network.on("Network.loadingFinished", lambda said: sizes.append(said["encodedDataLength"]))
    page.goto(URL + PATH)
    page.wait_for_selector("#curves canvas, #curves svg")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    context.close()
    return paint, sum(sizes)


with sync_playwright() as playwright:
    # It may run as root, where Chromium has no sandbox. It visits this server alone.
    chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    loads = [load(chromium) for _ in range(int(LOADS))]
    paints, sizes = zip(*loads)
    print(json.dumps({"paint": statistics.median(paints), "bytes": statistics.median(sizes)}))
