// Static pages, opened from a disk: the same bundle with its data inside.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { axe, Browser, looks, shot, there } from "./browser.mjs";
import { emptyPage, planPage, reportPage, runPage, SCRIPT, small } from "./fixtures.mjs";

const options = { skip: !there };
let browser;
const urls = {};

before(async () => {
  if (!there) return;
  browser = await Browser.start();
  const run = small();
  for (const [name, document] of Object.entries({ run: runPage(run), plan: planPage(run), report: reportPage() })) urls[name] = browser.write(document, name);
});

after(() => browser?.stop());

const VIEWS = [
  ["run", "#/overview", ".headline"],
  ["run", "#/tasks", ".rows tbody tr"],
  ["run", "#/dag?task=merge-3", ".panel .log"],
  ["run", "#/timeline", ".timeline canvas"],
  ["run", "#/failures", ".cause"],
  ["plan", "#/overview", ".chart canvas"],
  ["plan", "#/order", ".rows tbody tr"],
  ["plan", "#/dag", ".dag canvas"],
  ["plan", "#/figures", ".figures img"],
  ["report", "", ".report-table"],
];

function clean(page) {
  assert.deepEqual(page.problems, []);
  assert.deepEqual(page.elsewhere, []);
}

for (const [kind, hash, sign] of VIEWS) {
  test(`${kind} ${hash} is in order at 1,600 and 360 pixels, light and dark`, options, async () => {
    const page = await browser.open(`${urls[kind]}${hash}`);
    await page.waitForSelector(sign);
    await looks(page, `static-${kind}-${hash.replace(/\W+/g, "") || "all"}`);
    clean(page);
    await page.context().close();
  });
}

test("a run that is written down has no actions, and its table is searched and sorted in the browser", options, async () => {
  const page = await browser.open(`${urls.run}#/tasks`);
  await page.waitForSelector(".rows tbody tr");
  for (const name of ["Cancel the run", "Retry all failed tasks"]) assert.equal(await page.getByRole("button", { name }).count(), 0);
  await page.getByLabel("Name contains").fill("script");
  await page.waitForFunction(() => document.querySelectorAll(".rows tbody tr").length === 1);
  assert.equal(await page.locator(".rows tbody .task").innerText(), SCRIPT);
  await page.getByLabel("Name contains").fill("");
  await page.getByRole("button", { name: "Task", exact: true }).click();
  await page.getByRole("button", { name: "Task", exact: true }).click();
  await page.waitForFunction(() => document.querySelector("[aria-sort=descending]"));
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as JSON", exact: true }).click()]);
  assert.equal(JSON.parse(readFileSync(await download.path(), "utf8")).rows.length, 45);
  clean(page);
  await page.context().close();
});

test("a run in which nothing has happened is shown without trouble", options, async () => {
  const page = await browser.open(browser.write(emptyPage(), "empty"));
  for (const section of ["Overview", "Tasks", "Dag", "Timeline", "Workers", "Failures"]) {
    await page.getByRole("navigation").getByRole("link", { name: section }).click();
    await page.waitForTimeout(100);
    await shot(page, `static-empty-${section.toLowerCase()}-1600-light`);
    assert.deepEqual(await axe(page), []);
  }
  clean(page);
  await page.context().close();
});

test("titles say what is gained", options, async () => {
  const page = await browser.open(urls.plan);
  await page.waitForSelector(".headline");
  assert.equal(await page.title(), "survey.yaml: gain 34 %");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save all data" }).click()]);
  assert.equal(JSON.parse(readFileSync(await download.path(), "utf8")).kind, "plan");
  await page.context().close();
});

for (const [kind, sections] of [["run", 6], ["plan", 4]]) {
  test(`${kind} on paper is light, shows all sections, and has no controls`, options, async () => {
    const page = await browser.open(urls[kind], { width: 1000, dark: true });
    await page.waitForSelector(".headline");
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    await page.waitForTimeout(300);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
    assert.equal(await page.locator("section.section").count(), sections);
    assert.equal(await page.locator("button:not(.sort):visible, input:visible, select:visible").count(), 0);
    await shot(page, `static-${kind}-print`);
    const paper = await page.pdf({ format: "A4" });
    assert.ok(paper.length > 10_000);
    await page.emulateMedia({ media: "screen" });
    await page.waitForTimeout(200);
    assert.equal(await page.locator("section.section").count(), 1);
    clean(page);
    await page.context().close();
  });
}
