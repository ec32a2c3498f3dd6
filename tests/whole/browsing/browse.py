"""Uses the web page of a running server as a person does, in Chromium, and says what isn't as it should be.

    python3 browse.py URL TOKEN JOB FOLDER

FOLDER gets screenshots of each page at the widths of a desk and a phone. Prints a line of JSON with what was measured.
"""

import json
import re
import sys
import urllib.request

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

URL, TOKEN, JOB, FOLDER = sys.argv[1:]
DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PAGES = {
    "jobs": "/", "job": f"/jobs/{JOB}", "trials": f"/jobs/{JOB}/trials", "charts": f"/jobs/{JOB}/charts", "machines": f"/jobs/{JOB}/machines",
    "events": f"/jobs/{JOB}/events", "job file": f"/jobs/{JOB}/file", "trial": f"/jobs/{JOB}/trials/0", "hosts": "/hosts", "host": "/hosts/1", "failures": "/failures", "new job": f"/jobs/new?over={JOB}",
    "new job over files": "/jobs/new?over=files", "find": "/find?q=lr",
}
FILE = """name = "from the page"
[[model]]
arch = "mlp"
hidden = [4]
[training]
epochs = 3
optimizer = { name = "sgd", lr = 1e30 }
[data]
train = "not-looked-at.csv"
"""
SENT = """name = "sent by the page"
[data]
train = "parts/rows.csv"
label = "y"
shards = 2
[[model]]
arch = "mlp"
hidden = [4]
[training]
epochs = 2
"""
ROWS = "x,y\n" + "".join(f"{row},{row % 2}\n" for row in range(200))
# A column that counts the rows would be left out.
MIXED = "x,y\n" + "".join(f"{row % 7},{row % 2}\n" for row in range(200))
expect.set_options(timeout=60_000)


class Browsing:
    """A browser that has visited the server, with what went wrong in it."""

    def __init__(self, browser, size, scheme):
        self.context = browser.new_context(viewport=size, color_scheme=scheme)
        self.page = self.context.new_page()
        self.faults = []
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", lambda request: None if request.url.startswith((URL, "data:")) else self.faults.append(f"asked {request.url}"))
        self.page.set_default_timeout(60_000)

    def sign_in(self, to="/"):
        self.page.goto(URL + to)
        self.page.get_by_label("Token").fill(TOKEN)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.wait_for_url(URL + to)

    def is_sound(self, name):
        """Nothing has failed, and a reader without eyes or without a mouse finds everything."""
        found = Axe().run(self.page).response["violations"]
        serious = [rule for rule in found if rule["impact"] in ("serious", "critical")]
        where = [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in serious]
        assert not where, (name, where)
        assert not self.faults, (name, self.faults)


def brought(page, part):
    """The part of the page, where the reader sees it: a part out of sight stays as it was loaded."""
    found = page.locator(part)
    found.scroll_into_view_if_needed()
    return found


def state():
    request = urllib.request.Request(f"{URL}/v1/jobs/{JOB}", headers={"authorization": f"Bearer {TOKEN}"})
    return json.load(urllib.request.urlopen(request))


def signing_in(browser):
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    page.goto(f"{URL}/jobs/{JOB}?sort=epoch")
    visit.is_sound("sign in")
    page.get_by_label("Token").fill("nobody's")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("unknown")
    page.screenshot(path=f"{FOLDER}/sign-in.png")
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(f"{URL}/jobs/{JOB}?sort=epoch")
    assert "sojourn-session" not in page.evaluate("document.cookie"), "a script can read the cookie"
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(f"{URL}/sign-in")
    page.goto(URL)
    assert page.url.startswith(f"{URL}/sign-in"), page.url
    # Chromium notes the answer 401 to the wrong token, and nothing else.
    assert [fault for fault in visit.faults if "401" not in fault] == [], visit.faults
    visit.context.close()


def watching(browser):
    """A job moves without the page being loaded again."""
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    visit.sign_in(PAGES["job"])
    page.evaluate("window.same = true")
    expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#curves canvas")).to_be_visible()
    # The first screen has the answers: how far, what it costs, which trial.
    for part in ["#head .state", "#head progress", "#curves canvas", "#best a[href*='/trials/']", "#pace"]:
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= DESK["height"], (part, box)
    hops = brought(page, "#head").locator("progress").first
    before = int(hops.get_attribute("value"))
    page.wait_for_function("before => Number(document.querySelector('#head progress').value) > before", arg=before)
    # What the reader has opened and written stays while the page moves.
    page.locator("#extend summary").click()
    page.get_by_label("Epochs in all").fill("123")
    now = int(hops.get_attribute("value"))
    page.wait_for_function("before => Number(document.querySelector('#head progress').value) > before", arg=now)
    assert page.get_by_label("Epochs in all").input_value() == "123"
    assert page.evaluate("window.same") is True
    # A curve says which trial it is, and so does the legend, of which the best is named.
    expect(page.locator("#curves .keys")).to_contain_text("(best)")
    assert page.locator("#events").count() == 0, "the overview has a tail of the journal"
    page.get_by_role("navigation", name="Parts of the job").get_by_role("link", name="Machines").click()
    page.wait_for_url(URL + PAGES["machines"])
    expect(brought(page, "#matrix").locator("table")).to_contain_text("done")
    expect(brought(page, "#gantt").locator("svg.gantt")).to_be_visible()
    page.get_by_role("navigation", name="Parts of the job").get_by_role("link", name="Charts").click()
    page.wait_for_url(URL + PAGES["charts"])
    expect(page.locator("#settings canvas")).to_be_visible()
    over = brought(page, "#curves .u-over").bounding_box()
    for step in range(1, 40):
        page.mouse.move(over["x"] + over["width"] / 3, over["y"] + over["height"] * step / 40)
    expect(page.locator("#curves .said")).to_contain_text("trial ")
    page.get_by_label("logarithmic").check()
    expect(page.locator("#curves canvas")).to_be_visible()
    for per in ["hop", "time"]:
        page.locator("#curves [name=per]").select_option(per)
        expect(page.locator("#curves canvas")).to_be_visible()
    expect(page.locator("#scatter canvas")).to_be_visible()
    assert page.locator("#scatter [name=key] option").count() > 0
    checkpoint = page.get_by_role("link", name="Download the").first
    with page.expect_download() as download:
        checkpoint.click()
    assert download.value.suggested_filename.startswith(f"job-{JOB}-trial-"), download.value.suggested_filename
    visit.is_sound("job")
    visit.context.close()


def trial(browser):
    """A trial's page has its curves, where it has been, and buttons that lead back to it."""
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    visit.sign_in(PAGES["job"])
    page.locator("#best a").first.click()
    page.wait_for_url(re.compile(r"/trials/\d+$"))
    number = page.url.rsplit("/", 1)[1]
    expect(page.locator("h1")).to_contain_text(f"Trial {number}")
    expect(page.locator("#trial-curves [data-panel=loss] canvas")).to_be_visible()
    expect(page.locator("#trial-curves [data-panel=accuracy] canvas")).to_be_visible()
    page.get_by_label("logarithmic").check()
    expect(page.locator("#trial-curves [data-panel=loss] canvas")).to_be_visible()
    rows = brought(page, "#hops").locator("tbody tr")
    expect(rows.first).to_be_visible()
    assert rows.first.locator("a[href*='/hosts/']").count() == 1, rows.first.inner_text()
    expect(brought(page, "#gantt").locator("svg.gantt")).to_be_visible()
    before = rows.first.get_attribute("id")
    brought(page, "#hops")
    page.wait_for_function("before => document.querySelector('#hops tbody tr').id !== before", arg=before)
    visit.is_sound("trial")
    page.get_by_role("button", name=f"Stop trial {number}").click()
    page.wait_for_url(re.compile(rf"/trials/{number}$"))
    expect(page.locator("#head .state")).to_have_text("pruned")
    page.get_by_role("button", name=f"Go on trial {number}").click()
    expect(page.locator("#head .state")).to_have_text("running")
    visit.context.close()


def events(browser):
    """Events stand by hour and kind, and an address has the filter."""
    visit = Browsing(browser, DESK, "dark")
    page = visit.page
    visit.sign_in(PAGES["events"])
    expect(page.locator("#events .group").first).to_contain_text("By people")
    expect(page.locator("#events")).to_contain_text("was submitted")
    page.locator("[name=kind]").select_option("leases")
    page.locator("[name=trial]").fill("1")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**kind=leases**trial=1**")
    sentences = page.locator("#events .events li > span")
    expect(sentences.first).to_be_visible()
    granted = [text for text in sentences.all_inner_texts() if " gets lease " in text]
    assert granted and all("trial 1" in text for text in granted), granted[:5]
    assert "was submitted" not in page.locator("#events").inner_text()
    visit.is_sound("events")
    page.get_by_role("link", name="Show all").click()
    page.wait_for_url(URL + PAGES["events"])
    visit.context.close()


def leader_board(browser):
    visit = Browsing(browser, DESK, "dark")
    page = visit.page
    visit.sign_in(PAGES["trials"])
    expect(page.locator("#board .leads")).to_have_count(1)
    page.locator("#board thead a[title=trial]").click()
    page.wait_for_url("**sort=trial**")
    shown = lambda: page.locator("#board tbody tr").evaluate_all("rows => rows.map(row => Number(row.dataset.trial))")
    assert shown() == sorted(shown()) and len(shown()) == 4, shown()
    page.locator("#board thead a[title=trial]").click()
    page.wait_for_url("**down=true**")
    assert shown() == sorted(shown(), reverse=True), shown()
    page.get_by_label("Filter").fill("cnn")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**filter=cnn**")
    assert len(shown()) == 2, shown()
    visit.is_sound("filtered")
    visit.context.close()


def buttons(browser):
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    visit.sign_in(PAGES["job"])
    head = page.locator("#head")
    head.get_by_role("button", name="Pause").click()
    expect(head.locator(".state")).to_have_text("paused")
    head.get_by_role("button", name="Resume").click()
    expect(head.locator(".state")).to_have_text("running")
    epochs = state()["spec"]["training"]["epochs"]
    page.locator("#extend summary").click()
    page.get_by_label("Epochs in all").fill(str(epochs + 1))
    page.get_by_role("button", name="Extend").click()
    page.wait_for_load_state()
    page.goto(URL + PAGES["trials"])
    expect(page.locator("#trial-0")).to_contain_text(f"/{epochs + 1}")
    page.get_by_role("button", name="Stop trial 0").click()
    expect(page.locator("#trial-0 .state")).to_have_text("pruned")
    assert page.url == URL + PAGES["trials"], page.url
    page.get_by_role("button", name="Go on trial 0").click()
    expect(page.locator("#trial-0 .state")).to_have_text("running")
    clone = page.locator("#clone-1")
    clone.locator("summary").click()
    clone.get_by_label("Settings").fill("lr=1e-4")
    clone.get_by_role("button", name="Clone").click()
    expect(page.locator("#trial-4")).to_contain_text("1e-4")
    page.locator("#cancel summary").click()
    page.get_by_role("button", name="Cancel this job").click()
    expect(head.locator(".state")).to_have_text("cancelled")
    assert state()["summary"]["state"] == "cancelled"
    expect(page.locator("#next")).to_contain_text("sojourn export")
    page.goto(URL + PAGES["trials"])
    expect(page.locator("#board tbody tr").first).to_be_visible()
    assert page.locator("#board details").count() == 0, "a clone would be refused"
    visit.is_sound("cancelled")
    visit.context.close()


def sharing(browser):
    """A link shows its job to a browser without a session, until it is revoked."""
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    visit.sign_in(PAGES["job"])
    page.locator("#share summary").click()
    page.get_by_label("For whom").fill("reviewers")
    page.get_by_role("button", name="Make a link").click()
    address = page.get_by_label("Whoever has it").input_value()
    assert address.startswith(f"{URL}/share#"), address
    visit.is_sound("link")
    guests = []
    for name, size, scheme in [("desk", DESK, "light"), ("phone", PHONE, "dark")]:
        guest = Browsing(browser, size, scheme)
        seen = guest.page
        asked = []
        seen.on("request", lambda request: asked.append((request.url, request.headers.get("referer", ""))))
        seen.goto(address)
        seen.wait_for_url(f"{URL}/share/{JOB}")
        expect(seen.locator("#connection")).to_have_text("live")
        expect(seen.locator("#curves canvas")).to_be_visible()
        expect(seen.locator("#board tbody tr").first).to_be_visible()
        assert seen.locator("form[method=post]").count() == 0, "a guest has a button"
        secret = address.split("#")[1]
        assert not [one for one in asked if secret in one[0].split("#")[0] or secret in one[1]], "the secret was in an address"
        wide = seen.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{wide} pixels wider than a {name}"
        seen.screenshot(path=f"{FOLDER}/shared-{name}.png", full_page=True)
        hops = seen.locator("#head progress").first
        before = int(hops.get_attribute("value"))
        seen.evaluate("scrollTo(0, 0)")
        seen.wait_for_function("before => Number(document.querySelector('#head progress').value) > before", arg=before)
        guest.is_sound(f"shared on a {name}")
        guests.append(guest)
    # The column's head sorts the guest's board too.
    guests[0].page.locator("#board thead a[title=trial]").click()
    guests[0].page.wait_for_url(f"{URL}/share/{JOB}?sort=trial**")
    page.goto(URL + PAGES["job"])
    page.get_by_role("button", name="Revoke link").click()
    page.wait_for_load_state()
    for guest in guests:
        expect(guest.page.get_by_role("alert")).to_contain_text("open the link again")
        assert [fault for fault in guest.faults if "401" not in fault] == [], guest.faults
        guest.context.close()
    visit.is_sound("revoked")
    visit.context.close()


def new_job(browser):
    """A job file is checked as it is typed, and submitted over the data of the job that trains."""
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    visit.sign_in(PAGES["job"])
    page.get_by_role("link", name="New job over this data").click()
    page.wait_for_url(URL + PAGES["new job"])
    checked, field = page.locator("#checked"), page.get_by_label("Job file")
    field.fill(FILE.replace("epochs", "epocs"))
    expect(checked).to_contain_text("problem")
    checked.get_by_role("button", name="line 6").click()
    chosen = page.evaluate("(() => { const field = document.getElementById('text'); return field.value.slice(field.selectionStart, field.selectionEnd); })()")
    assert chosen == "epocs = 3", chosen
    visit.is_sound("job file with a problem")
    page.screenshot(path=f"{FOLDER}/new-job-problem-desk.png")
    field.evaluate("""(field, text) => {
        const data = new DataTransfer();
        data.items.add(new File([text], "job.toml"));
        field.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }""", FILE)
    expect(checked).to_contain_text("It can be submitted")
    assert field.input_value() == FILE
    visit.is_sound("good job file")
    page.screenshot(path=f"{FOLDER}/new-job-good-desk.png")
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(f"{URL}/jobs/*")
    expect(page.locator("h1")).to_contain_text("from the page")
    # With that learning rate it diverges at once, and what its trainers said is on the page of failures.
    expect(page.locator("#head .state")).to_have_text("failed")
    visit.is_sound("failed job")
    job = page.url.rsplit("/", 1)[1]
    page.goto(URL + PAGES["failures"])
    expect(page.locator("#failures table").first).to_contain_text(f"job {job}")
    page.locator("#failures table").nth(1).get_by_text("trial 0").click()
    page.wait_for_url(f"{URL}/jobs/{job}/trials/0")
    expect(page.locator("#failures table")).to_be_visible()
    visit.is_sound("trial that failed")
    visit.context.close()


def sending(browser):
    """Files of data are chosen, stopped on their way, refused for what is in them, and become a job."""
    visit = Browsing(browser, DESK, "dark")
    page = visit.page
    visit.sign_in("/jobs/new")
    page.get_by_label("Data", exact=True).select_option("files")
    checked, field, submit = page.locator("#checked"), page.get_by_label("Job file"), page.get_by_role("button", name="Submit")
    field.fill(SENT.replace("parts", "../parts"))
    expect(checked).to_contain_text("`sojourn submit` reads files anywhere")
    field.fill(SENT)
    expect(checked).to_contain_text("data.train: parts/rows.csv not chosen yet")
    submit.click()
    expect(submit).to_be_enabled()
    assert page.url == URL + "/jobs/new", page.url
    page.get_by_label("Files of the data").set_input_files({"name": "rows.csv", "mimeType": "text/csv", "buffer": ROWS.encode()})
    expect(page.locator("#taken")).to_contain_text("1 file")
    expect(checked.locator("[data-file]")).to_have_text("data.train: parts/rows.csv chosen")
    visit.is_sound("files that were chosen")
    page.screenshot(path=f"{FOLDER}/new-job-files-desk.png")

    # One that stays on its way until it is stopped.
    held = []
    page.route("**/jobs/new/data/*?name=*", lambda route: held.append(route))
    submit.click()
    with page.expect_request(lambda request: request.method == "DELETE"):
        page.get_by_role("button", name="Stop").click()
    expect(checked).to_contain_text("stopped")
    assert len(held) == 1 and held[0].request.url.endswith("?name=parts%2Frows.csv"), held
    page.unroute("**/jobs/new/data/*?name=*")
    visit.is_sound("files that were stopped")

    # What is wrong with the data is said, and it isn't sent twice.
    sent = []
    page.on("request", lambda request: sent.append(request.url) if request.method == "PUT" else None)
    field.fill(SENT.replace('"y"', '"z"'))
    submit.click()
    expect(checked).to_contain_text("1 problem")
    expect(checked).to_contain_text("z")
    visit.is_sound("data that is wrong")
    field.fill(SENT)
    submit.click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    expect(page.locator("h1")).to_contain_text("sent by the page")
    assert len(sent) == 1, sent
    expect(page.locator("#head .state")).to_have_text("finished")
    visit.is_sound("job of files")

    # A job file is written for files, anew where another column has the labels, and not over what somebody has written.
    page.goto(URL + "/jobs/new?over=files")
    drafts, drafted = page.get_by_role("button", name="Write a job file for them"), page.locator("#drafted")
    expect(drafts).to_be_disabled()
    sent.clear()
    page.get_by_label("Files of the data").set_input_files({"name": "drafted.csv", "mimeType": "text/csv", "buffer": MIXED.encode()})
    drafts.click()
    expect(drafted.locator("tbody tr")).to_have_count(2)
    expect(field).to_have_value(re.compile('name = "drafted"'))
    expect(field).to_have_value(re.compile('label = "y"'))
    expect(checked).to_contain_text("data.train: drafted.csv chosen")
    visit.is_sound("job file that was written")
    page.screenshot(path=f"{FOLDER}/new-job-drafted-desk.png")
    page.get_by_label("Column of the labels").select_option("x")
    expect(field).to_have_value(re.compile('label = "x"'))
    drafts.click()
    expect(field).to_have_value(re.compile('label = "y"'))
    own = SENT.replace("parts/rows.csv", "drafted.csv").replace("sent by the page", "of its own")
    field.fill(own)
    page.once("dialog", lambda dialog: dialog.dismiss())
    drafts.click()
    expect(field).to_have_value(own)
    assert len(sent) == 1, sent
    submit.click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    expect(page.locator("h1")).to_contain_text("of its own")

    # A folder is sent with its files' names.
    page.goto(URL + "/jobs/new?over=files")
    field.fill(SENT.replace("sent by the page", "a folder"))
    page.locator("#folder").evaluate("""(input, text) => {
        const data = new DataTransfer(), file = new File([text], "rows.csv");
        Object.defineProperty(file, "webkitRelativePath", { value: "parts/rows.csv" });
        data.items.add(file);
        Object.defineProperty(input, "files", { value: [file] });
        input.dispatchEvent(new Event("change"));
    }""", ROWS)
    expect(checked.locator("[data-file]")).to_have_text("data.train: parts/rows.csv chosen")
    submit.click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    expect(page.locator("h1")).to_contain_text("a folder")
    # A file that goes no further than the page is forgotten with it.
    page.goto(URL + "/jobs/new?over=files")
    field.fill(SENT.replace("sent by the page", "left"))
    page.locator("#files").evaluate("""(box, text) => {
        const data = new DataTransfer();
        data.items.add(new File([text], "rows.csv"));
        box.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }""", ROWS)
    expect(checked.locator("[data-file]")).to_have_text("data.train: parts/rows.csv chosen")
    page.route("**/jobs/new/data/*?name=*", lambda route: held.append(route))
    submit.click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    # That the server hears of it is seen by what is left in its folder.
    page.goto(URL + "/hosts")
    visit.context.close()


def comparing(browser):
    """Two jobs that are ticked stand side by side."""
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    visit.sign_in("/")
    for box in page.locator("#jobs input[name=job]").all()[:2]:
        box.check()
    # The list moves on, and the ticks stay.
    before = page.locator("#jobs").inner_text()
    page.wait_for_function("before => document.querySelector('#jobs').innerText !== before", arg=before)
    assert page.locator("#jobs input[name=job]:checked").count() == 2
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(f"{URL}/compare?job=*&job=*")
    expect(page.locator("#curves canvas")).to_be_visible()
    expect(page.locator("#curves .keys li")).to_have_count(page.locator("#curves").evaluate("chart => JSON.parse(chart.dataset.names).length"))
    expect(page.locator("#tables table").first.locator("thead th")).to_have_count(2)
    expect(page.locator("#tables")).to_contain_text("training.epochs")
    visit.is_sound("jobs side by side")
    page.screenshot(path=f"{FOLDER}/compare-desk.png", full_page=True)
    visit.context.close()


def host(browser):
    """A host is blocked and unblocked by its page's buttons."""
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    visit.sign_in("/hosts")
    page.locator("#host-1 a").first.click()
    page.wait_for_url(URL + PAGES["host"])
    head = page.locator("#head")
    page.locator("#block summary").click()
    page.get_by_role("button", name="Block this host").click()
    expect(head.locator(".state")).to_have_text("blocked")
    expect(brought(page, "#leases")).to_contain_text("holds no leases")
    visit.is_sound("blocked host")
    head.get_by_role("button", name="Unblock").click()
    expect(head.locator(".state")).to_have_text("live")
    expect(brought(page, "#leases").locator("tbody tr").first).to_be_visible()
    expect(page.locator("#cache tbody tr").first).to_contain_text("job ")
    visit.is_sound("host")
    visit.context.close()


def keys(browser):
    """Pages are gone to, found and read by keys alone."""
    visit = Browsing(browser, DESK, "dark")
    page = visit.page
    visit.sign_in("/hosts")
    press, dialog = page.keyboard.press, page.locator("#keys")
    press("?")
    expect(dialog).to_be_visible()
    visit.is_sound("list of keys")
    page.screenshot(path=f"{FOLDER}/keys-desk.png")
    press("Escape")
    expect(dialog).to_be_hidden()
    press("g")
    press("j")
    page.wait_for_url(f"{URL}/")
    # The rows of the table, and past its end; the newest job is the first.
    first, second = [row.get_attribute("href") for row in page.locator("#jobs tbody th a").all()[:2]]
    focused = "document.activeElement.getAttribute('href')"
    press("j")
    assert page.evaluate(focused) == first
    press("k")
    assert page.evaluate(focused) == first
    press("j")
    assert page.evaluate(focused) == second
    press("Enter")
    page.wait_for_url(re.compile(rf"{second.lstrip('.')}$"))
    press("3")
    page.wait_for_url(re.compile(r"/charts$"))
    # One thing that is found is gone to; of several there is a list.
    press("/")
    page.wait_for_url(f"{URL}/find")
    page.keyboard.type(f"{JOB}/0")
    press("Enter")
    page.wait_for_url(URL + PAGES["trial"])
    press("/")
    page.wait_for_url(f"{URL}/find")
    page.keyboard.type("lr")
    press("Enter")
    page.wait_for_url(f"{URL}/find?q=lr")
    expect(page.get_by_role("heading", name="Settings")).to_be_visible()
    # Letters in a field are text, and none does anything where keys are off.
    page.keyboard.type("?")
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Keys are on").uncheck()
    press("Escape")
    page.reload()
    page.locator("main").focus()
    press("?")
    expect(dialog).to_be_hidden()
    visit.is_sound("keys that are off")
    visit.context.close()


def told(browser):
    """A reader who asks for it is told when a job has ended, by whichever page is open then."""
    visit = Browsing(browser, DESK, "light")
    page = visit.page
    visit.context.grant_permissions(["notifications"], origin=URL)
    # A browser without a screen shows none: the page's calls are noted.
    page.add_init_script("""
        window.notes = [];
        window.Notification = class { constructor(title) { window.notes.push(title); } static requestPermission() { return Promise.resolve("granted"); } };
        window.Notification.permission = "granted";
    """)
    visit.sign_in("/jobs/new?over=files")
    page.locator("[name=text]").fill(SENT.replace("parts/", "").replace("sent by the page", "awaited").replace("epochs = 2", "epochs = 2000"))
    page.get_by_label("Files of the data").set_input_files({"name": "rows.csv", "mimeType": "text/csv", "buffer": ROWS.encode()})
    page.get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    button = page.locator("#notify button")
    button.click()
    expect(button).to_have_text("You will be told when it ends")
    visit.is_sound("job that is awaited")
    page.locator("#cancel summary").click()
    page.get_by_role("button", name="Cancel this job").click()
    page.goto(URL + "/hosts")
    page.wait_for_function("window.notes.length > 0")
    assert page.evaluate("window.notes") == ["awaited: cancelled"]
    visit.context.close()


def looks(browser):
    """Each page at both widths and in both schemes; what the first load weighs."""
    measured = {}
    for name, size, scheme in [("desk", DESK, "light"), ("phone", PHONE, "dark")]:
        visit = Browsing(browser, size, scheme)
        page = visit.page
        visit.sign_in("/")
        for title, path in PAGES.items():
            page.goto(URL + path)
            expect(page.locator("#connection")).to_have_text("live")
            page.screenshot(path=f"{FOLDER}/{title}-{name}.png", full_page=True)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{title} is {wide} pixels wider than a {name}"
            visit.is_sound(f"{title} on a {name}")
        measured[name] = page.evaluate("""() => ({
            first_paint_ms: Math.round(performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1),
        })""")
        visit.context.close()
    return measured


with sync_playwright() as playwright:
    # Tests may run as root, where Chromium has no sandbox. It visits this server alone.
    chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
    signing_in(chromium)
    watching(chromium)
    trial(chromium)
    events(chromium)
    leader_board(chromium)
    sharing(chromium)
    host(chromium)
    new_job(chromium)
    comparing(chromium)
    sending(chromium)
    keys(chromium)
    told(chromium)
    found = looks(chromium)
    buttons(chromium)
    chromium.close()
print(json.dumps(found))
