// The live page in a real browser, against a stand-in for the server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { axe, Browser, CHROMIUM, looks, overflows, shot, there } from "./browser.mjs";
import { LONG, SCRIPT } from "./fixtures.mjs";
import { Standin } from "./serve.mjs";

if (!there) console.error(`eligo: TESTS OF THE PAGE ARE SKIPPED: there is no browser at ${CHROMIUM}`);
const options = { skip: !there };
let browser;
let server;
let url;

before(async () => {
  if (!there) return;
  browser = await Browser.start();
  server = new Standin();
  url = await server.listen();
});

after(async () => {
  await browser?.stop();
  await server?.close();
});

const VIEWS = [
  ["list", "#/", ".flows"],
  ["overview", "#/w-1/overview", ".chart canvas"],
  ["overview-large", "#/w-2/overview", ".chart canvas"],
  ["overview-ended", "#/w-0/overview", ".chart canvas"],
  ["tasks", "#/w-1/tasks", ".rows tbody tr"],
  ["dag", "#/w-1/dag", ".dag canvas"],
  ["dag-large", "#/w-2/dag", ".dag canvas"],
  ["dag-task", "#/w-1/dag?task=merge-3", ".panel .log"],
  ["timeline", "#/w-1/timeline", ".timeline canvas"],
  ["timeline-large", "#/w-2/timeline", ".timeline canvas"],
  ["workers", "#/w-2/workers", ".workers tbody tr"],
  ["failures", "#/w-0/failures", ".cause"],
];

function clean(page) {
  assert.deepEqual(page.problems, []);
  assert.deepEqual(page.elsewhere, []);
}

for (const [name, hash, sign] of VIEWS) {
  test(`${name} is in order at 1,600 and 360 pixels, light and dark`, options, async () => {
    const page = await browser.open(`${url}/${hash}`);
    await page.waitForSelector(sign);
    await looks(page, `live-${name}`);
    clean(page);
    await page.context().close();
  });
}

test("the first view is there within a second", options, async () => {
  const took = [];
  for (let game = 0; game < 3; game += 1) {
    const page = await browser.open("about:blank");
    const began = Date.now();
    await page.goto(`${url}/#/w-2/overview`, { waitUntil: "commit" });
    await page.waitForSelector(".headline");
    took.push(Date.now() - began);
    await page.context().close();
  }
  assert.ok(Math.min(...took) < 1000, `it took ${took} ms`);
});

test("the title says the name and how much is done", options, async () => {
  const page = await browser.open(`${url}/#/w-2/overview`);
  await page.waitForSelector(".headline");
  assert.match(await page.title(), /^mosaic of the sky: \d+ % done$/);
  await page.context().close();
});

test("names are text, whatever they are", options, async () => {
  const page = await browser.open(`${url}/#/w-1/tasks`);
  await page.getByRole("link", { name: SCRIPT }).first().click();
  await page.waitForSelector(".panel");
  assert.equal(await page.locator(".panel h2").innerText(), SCRIPT);
  assert.equal(await page.locator("#page script").count(), 0);
  await page.goto(`${url}/#/w-1/tasks?task=${encodeURIComponent(LONG)}`);
  await page.waitForFunction((name) => document.querySelector(".panel h2")?.textContent === name, LONG);
  assert.equal(await overflows(page), false);
  clean(page);
  await page.context().close();
});

test("a lost connection is said, and the data is right when it is back", options, async () => {
  const own = new Standin({ speed: 5 });
  const address = await own.listen();
  const page = await browser.open(`${address}/#/w-1/overview`);
  await page.waitForSelector(".headline");
  own.drop();
  await page.waitForSelector(".lost");
  assert.match(await page.locator(".lost").innerText(), /Connection lost at \d\d:\d\d:\d\d; reconnecting/);
  await shot(page, "live-lost-1600-light");
  await page.waitForTimeout(2500);
  own.cut = false;
  await page.waitForSelector(".lost", { state: "detached", timeout: 8000 });
  const shown = Number((await page.locator(".legend strong").first().innerText()).replaceAll(",", ""));
  const right = own.line(own.runs.get("w-1")).counts.done;
  assert.ok(Math.abs(shown - right) <= 2, `${shown} shown, ${right} right`);
  await page.context().close();
  await own.close();
});

test("a server that wants a token is given one, which stays in the tab", options, async () => {
  const own = new Standin({ token: "sesame" });
  const address = await own.listen();
  const page = await browser.open(`${address}/`, { width: 1600 });
  await page.waitForSelector(".login");
  assert.deepEqual(await axe(page), []);
  await page.getByLabel("Token").fill("wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".login .message");
  assert.equal(await page.locator(".login .message").innerText(), "this token is not known here");
  await shot(page, "live-login-1600-light");
  await page.getByLabel("Token").fill("sesame");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".flows");
  assert.equal(await page.evaluate(() => JSON.stringify(localStorage)), "{}");
  await page.getByRole("link", { name: "survey", exact: true }).click();
  await page.waitForSelector(".headline");
  await page.context().close();
  await own.close();
});

test("actions ask first where they cannot be undone, and show the server's sentence", options, async () => {
  const own = new Standin();
  const address = await own.listen();
  const page = await browser.open(`${address}/#/w-1/overview`);
  await page.getByRole("button", { name: "Cancel the run" }).click();
  await shot(page, "live-cancel-1600-light", false);
  assert.deepEqual(own.posts, []);
  own.refuse = "this run has ended already";
  await page.getByRole("dialog").getByRole("button", { name: "Cancel the run" }).click();
  await page.getByText("this run has ended already").waitFor();
  assert.equal(own.posts[0].path, "/v1/workflows/w-1/cancel");
  assert.match(own.posts[0].key, /^[0-9a-f]{32}$/);
  own.refuse = null;
  await page.goto(`${address}/#/w-0/failures`);
  await page.getByRole("button", { name: "Retry all failed tasks" }).click();
  await page.getByText("2 tasks will be retried.").waitFor();
  assert.deepEqual(own.posts.at(-1).body, { tasks: null });
  await page.goto(`${address}/#/w-1/workers`);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByText("Approved.").waitFor();
  assert.equal(own.posts.at(-1).path, "/v1/clients/c-3/approve");
  await page.context().close();
  await own.close();
});

test("tasks are searched, sorted and paged by the server, and saved by the browser", options, async () => {
  const page = await browser.open(`${url}/#/w-2/tasks`);
  await page.waitForSelector(".rows tbody tr");
  assert.equal(await page.locator(".rows tbody tr").count(), 100);
  const asked = page.waitForRequest(/sort=took/);
  await page.getByRole("button", { name: "Took" }).click();
  await asked;
  await page.getByRole("button", { name: "Later" }).click();
  await page.getByText("101 to 200 of 10,000").waitFor();
  await page.getByLabel("Name contains").fill("fit-001");
  await page.waitForFunction(() => document.querySelectorAll(".rows tbody tr").length === 10);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as CSV" }).click()]);
  const lines = readFileSync(await download.path(), "utf8").trim().split("\r\n");
  assert.equal(lines[0], "place,task,kind,state,client,began,took,expected,tries,code,memory");
  assert.equal(lines.length, 11);
  clean(page);
  await page.context().close();
});

test("a task is found from anywhere by its name, with keys alone", options, async () => {
  const page = await browser.open(`${url}/#/w-2/overview`);
  await page.waitForSelector(".headline");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.getByRole("combobox", { name: "Find a task" }).focus();
  await page.keyboard.type("mosaic-3");
  await page.waitForSelector(".found [role=option] .state");
  await shot(page, "live-search-1600-light", false);
  assert.deepEqual(await axe(page), []);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".panel");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "mosaic-3");
  await page.keyboard.press("Escape");
  await page.waitForSelector(".panel", { state: "detached" });
  clean(page);
  await page.context().close();
});

test("the dag is walked with keys and pressed with the pointer", options, async () => {
  const page = await browser.open(`${url}/#/w-1/dag`);
  const canvas = page.locator(".dag canvas");
  await canvas.waitFor();
  await page.waitForTimeout(300);
  await canvas.focus();
  await page.keyboard.press("ArrowDown");
  await page.waitForSelector(".panel");
  await page.getByText("Selected:").first().waitFor();
  const first = await page.locator(".panel h2").innerText();
  await page.keyboard.press("ArrowDown");
  await page.waitForFunction((before) => document.querySelector(".panel h2").textContent !== before, first);
  await page.keyboard.press("+");
  await page.keyboard.press("0");
  await page.goto(`${url}/#/w-2/dag`);
  await page.waitForFunction(() => document.querySelector(".dag")?.textContent.includes("25 groups"));
  await page.waitForTimeout(200);
  const { width, height } = await canvas.boundingBox();
  const dag = await (await fetch(`${url}/v1/workflows/w-2/dag`)).json();
  const scale = Math.min(1.6, (width - 32) / dag.width, (height - 32) / dag.height);
  const node = dag.nodes[1];
  await canvas.click({ position: { x: width / 2 + (node.x - dag.width / 2) * scale, y: height / 2 + (node.y - dag.height / 2) * scale } });
  await page.waitForSelector(".group");
  await shot(page, "live-dag-group-1600-light");
  assert.deepEqual(await axe(page), []);
  clean(page);
  await page.context().close();
});

test("dragging zooms the timeline, and fetches that period", options, async () => {
  const page = await browser.open(`${url}/#/w-2/timeline`);
  const canvas = page.locator(".timeline canvas");
  await canvas.waitFor();
  const box = await canvas.boundingBox();
  const asked = page.waitForRequest(/gantt\?begin=/);
  await page.mouse.move(box.x + 400, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 520, box.y + 100, { steps: 4 });
  await page.mouse.up();
  await asked;
  await page.getByRole("button", { name: "Show the whole run" }).waitFor();
  assert.match(page.url(), /timeline\?range=/); // so a link leads back to it
  await page.waitForTimeout(400);
  await page.mouse.move(box.x + 600, box.y + 60);
  await page.waitForSelector(".tip");
  await shot(page, "live-timeline-closer-1600-light");
  clean(page);
  await page.context().close();
});

test("workflows are switched, and ended ones stay within reach", options, async () => {
  const page = await browser.open(`${url}/#/w-1/overview`);
  await page.waitForSelector(".switcher select");
  await page.getByRole("combobox", { name: "Workflow" }).selectOption("w-0");
  await page.waitForFunction(() => document.querySelector("h1").textContent === "survey of last week");
  await page.getByText("ended with failures").waitFor();
  assert.equal(await page.getByRole("button", { name: "Cancel the run" }).count(), 0);
  clean(page);
  await page.context().close();
});

test("the choice of colours is remembered", options, async () => {
  const page = await browser.open(`${url}/#/w-1/overview`);
  await page.getByLabel("Colours").selectOption("dark");
  await page.reload();
  await page.waitForSelector(".headline");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.context().close();
});

test("a hidden page closes its stream and polls now and then", options, async () => {
  const own = new Standin();
  const address = await own.listen();
  const page = await browser.open(`${address}/#/w-1/overview`);
  await page.waitForSelector(".headline");
  assert.equal(own.streams.size, 1);
  const asked = page.waitForRequest(/\/view$/);
  const turn = (hidden) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await turn(true);
  await asked;
  await page.waitForTimeout(300);
  assert.equal(own.streams.size, 0);
  await turn(false);
  await page.waitForTimeout(500);
  assert.equal(own.streams.size, 1);
  clean(page);
  await page.context().close();
  await own.close();
});
