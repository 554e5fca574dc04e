// The page in a real browser on a real server with real clients: from start to end, through a kill, and with many tasks.
import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, before, test } from "node:test";
import { axe, Browser, overflows, shot, there as browsing } from "./browser.mjs";
import { got, Place, rest, there as installed } from "./eligo.mjs";

const options = { skip: !(browsing && installed) };
if (!installed) console.error("eligo: TESTS OF THE PAGE ON A REAL SERVER ARE SKIPPED: eligo is not installed in .venv");
const EVIL = "<script>alert(1)</script>";
let browser;

before(async () => {
  if (!options.skip) browser = await Browser.start();
});

after(async () => {
  await browser?.stop();
});

/** Layers of tasks; one fails always, and with the client named eve everything does. */
function layers(count, wide, seconds) {
  const tasks = [];
  for (let i = 0; i < count; i += 1) {
    const after = i < wide ? [] : [tasks[i - wide].name, tasks[i - wide + ((i + 1) % wide ? 1 : 1 - wide)].name];
    tasks.push({ name: `fit_${i}`, run: `case "$PWD" in *client-eve*) echo this machine is broken >&2; exit 7;; esac; sleep ${seconds}`, after: [...new Set(after)] });
  }
  tasks.push({ name: EVIL, run: "echo cannot open sample.bam >&2; exit 3", after: [] });
  tasks.push({ name: "summary", run: "true", after: [EVIL] });
  return tasks;
}

const number = (text) => Number(text.replaceAll(",", "").match(/\d+/)[0]);
const shown = async (page) => number(await page.locator(".legend strong").first().innerText());

test("a run is watched from start to end, and every question has its answer", options, async () => {
  const place = new Place();
  try {
    const { url } = await place.serve([]);
    const sent = place.begin(["submit", url, place.write(layers(60, 12, 0.15), "survey"), "--no-files", "--retries", "3"]);
    await new Promise((resolve) => sent.once("exit", resolve));
    const { workflow } = (await got(`${url}/v1/workflows`)).workflows[0];
    const page = await browser.open(`${url}/`);
    await page.waitForSelector(".headline");
    assert.equal(await shown(page), 0);
    place.work(url, "eve");
    while ((await got(`${url}/v1/workflows/${workflow}/view`)).attempts < 3) await rest(0.1);
    for (const name of ["ann", "bob"]) place.work(url, name);
    await page.waitForFunction(() => /\d+ running/.test(document.querySelector(".headline").textContent), null, { timeout: 30000 });
    await page.waitForFunction(() => document.body.innerText.includes("left"), null, { timeout: 30000 });
    await shot(page, "real-overview-under-way");
    // what is running
    const running = (await got(`${url}/v1/workflows/${workflow}/view`)).counts.running;
    assert.ok(running >= 0);
    assert.match(await page.locator(".headline").innerText(), /of 62 tasks done/);
    // while it runs, the page shows what the server reports
    for (let look = 0; look < 5; look += 1) {
      const low = (await got(`${url}/v1/workflows/${workflow}/view`)).counts.done;
      await rest(1.6);
      const done = await shown(page);
      const high = (await got(`${url}/v1/workflows/${workflow}/view`)).counts.done;
      assert.ok(low <= done && done <= high, `${low} <= ${done} <= ${high}`);
    }
    while ((await got(`${url}/v1/workflows/${workflow}/view`)).state === "running") await rest(0.2);
    await rest(1.6);
    assert.equal(await shown(page), (await got(`${url}/v1/workflows/${workflow}/view`)).counts.done);
    const text = await page.locator("main").innerText();
    assert.match(text, /Would another order have helped\?[\s\S]*first come, first served/i);
    assert.match(text, /eve/); // which worker is bad
    await shot(page, "real-overview-ended");
    // what failed and why
    await page.goto(`${url}/#/${workflow}/failures`);
    await page.waitForSelector(".cause");
    const causes = await page.locator("main").innerText();
    assert.match(causes, /exit code 3/);
    assert.match(causes, /cannot open sample\.bam/);
    assert.ok(causes.includes(EVIL));
    await shot(page, "real-failures");
    for (const [section, sign] of [["workers", ".workers tbody tr"], ["tasks", ".rows tbody tr"], ["timeline", ".timeline canvas"], ["dag", ".dag canvas"]]) {
      await page.goto(`${url}/#/${workflow}/${section}`);
      await page.waitForSelector(sign);
      await rest(0.5);
      await shot(page, `real-${section}`);
      assert.deepEqual(await axe(page), []);
      assert.equal(await overflows(page), false);
    }
    assert.match((await got(`${url}/v1/workflows/${workflow}/view`)).clients[0].remark, /failed|no work/);
    assert.deepEqual(page.problems, []);
    assert.deepEqual(page.elsewhere, []);
    const phone = await browser.open(`${url}/#/${workflow}/overview`, { width: 360, dark: true });
    await phone.waitForSelector(".headline");
    await rest(0.5);
    assert.equal(await overflows(phone), false);
    await shot(phone, "real-phone-dark");
  } finally {
    await place.end();
  }
});

test("a server that is killed and comes back is shown rightly", options, async () => {
  const place = new Place();
  try {
    const { server, url } = await place.serve([place.write(layers(200, 20, 0.1), "killed")]);
    const port = new URL(url).port;
    const { workflow } = (await got(`${url}/v1/workflows`)).workflows[0];
    const page = await browser.open(`${url}/#/${workflow}/overview`);
    for (const name of ["ann", "bob"]) place.work(url, name);
    await page.waitForFunction(() => Number(document.querySelector(".legend strong")?.textContent ?? 0) > 5, null, { timeout: 60000 });
    await place.kill(server);
    await page.waitForSelector(".lost", { timeout: 10000 });
    await shot(page, "real-lost");
    await rest(1);
    await place.serve([], port);
    await page.waitForSelector(".lost", { state: "detached", timeout: 20000 });
    await page.waitForFunction((name) => document.querySelector(".headline").textContent.includes(name), "200 of 202", { timeout: 120000 });
    const truth = (await got(`${url}/v1/workflows/${workflow}/view`)).counts;
    assert.equal(truth.done, 200);
  } finally {
    await place.end();
  }
});

test("a hundred thousand tasks", options, async () => {
  const place = new Place();
  try {
    const tasks = [];
    for (let i = 0; i < 100_000; i += 1) tasks.push({ name: `k${Math.floor(i / 2000) % 5}_${i}`, run: "true", after: i < 2000 ? [] : [`k${(Math.floor(i / 2000) + 4) % 5}_${i - 2000}`] });
    const { url } = await place.serve([place.write(tasks, "large")]);
    const { workflow } = (await got(`${url}/v1/workflows`)).workflows[0];
    const page = await browser.open("about:blank");
    const began = Date.now();
    await page.goto(`${url}/#/${workflow}/overview`, { waitUntil: "commit" });
    await page.waitForSelector(".headline");
    const took = Date.now() - began;
    console.log(`eligo: the first view of 100,000 tasks after ${took} ms`);
    assert.ok(took < 5000, `${took} ms`); // within a second on a machine that does nothing else
    await rest(1.5);
    await shot(page, "real-large-overview");
    await page.goto(`${url}/#/${workflow}/dag`);
    await page.waitForSelector(".dag canvas");
    await rest(1);
    await shot(page, "real-large-dag");
    await page.goto(`${url}/#/${workflow}/tasks?search=k3_7777`);
    await page.waitForFunction(() => document.querySelectorAll(".rows tbody tr").length === 11, null, { timeout: 10000 });
    assert.deepEqual(page.problems.filter((text) => !text.includes("about:blank")), []);
  } finally {
    await place.end();
  }
});

test("a run on this machine is shown while it is active", options, async () => {
  const place = new Place();
  try {
    const tasks = Array.from({ length: 40 }, (_, i) => ({ name: `t${i}`, run: "sleep 1", after: i < 4 ? [] : [`t${i - 4}`] }));
    const run = place.begin(["run", place.write(tasks, "here"), "--page", "--workers", "4"]);
    const [, url, token] = await place.says(run, /page: ([^\s#]+)(#token=\S+)/);
    const page = await browser.open(`${url}${token}`);
    await page.waitForFunction(() => Number(document.querySelector(".legend strong")?.textContent ?? 0) > 3, null, { timeout: 20000 });
    await shot(page, "real-run");
    const reader = await browser.open(url); // without the token, as another user of this machine
    await reader.waitForSelector(".headline");
    assert.equal(await reader.locator(".head .action").count(), 0);
    assert.equal((await fetch(`${url}v1/workflows/run/pause`, { method: "POST", body: "{}" })).status, 403);
    await reader.context().close();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assert.equal((await got(`${url}v1/workflows/run/view`)).state, "held");
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.evaluate(() => (location.hash = "#/run/workers"));
    await page.getByLabel("Tasks at a time").fill("3");
    await page.getByRole("button", { name: "Change" }).click();
    await page.getByText("At most 3 tasks at once.").waitFor();
    assert.equal((await got(`${url}v1/workflows/run/view`)).workers, 3);
    await page.evaluate(() => (location.hash = "#/run/overview"));
    await page.waitForSelector(".headline");
    await page.waitForFunction(() => document.querySelector(".headline").textContent.includes("done in"), null, { timeout: 60000 });
    await page.waitForSelector(".notice");
    if (run.exitCode === null) await new Promise((resolve) => run.once("exit", resolve));
    assert.equal(run.exitCode, 0);
    await assert.rejects(fetch(url)); // it ends with the run, once the tab has everything
    assert.match(await page.locator(".notice").innerText(), /holds all of its data[\s\S]*here\.json\.run\/report\.html/);
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save report.html" }).click()]);
    assert.equal(saved.suggestedFilename(), "report.html");
    for (const [section, sign] of [["tasks", ".rows tbody tr"], ["timeline", ".timeline canvas"], ["dag", ".dag canvas"]]) {
      await page.evaluate((name) => (location.hash = `#/run/${name}`), section);
      await page.waitForSelector(sign);
    }
    assert.deepEqual(await axe(page), []);
    assert.equal(await page.locator(".lost").count(), 0);
    assert.deepEqual(page.problems, []);
    const later = place.begin(["page", "here.json.run"]);
    const [, again] = await place.says(later, /page: ([^\s#]+)/);
    assert.equal(again, url); // every folder has its own port
    assert.equal((await got(`${again}v1/workflows/run/view`)).counts.done, 40);
    assert.deepEqual(page.elsewhere, []);
  } finally {
    await place.end();
  }
});

test("every page that the product writes is in order", options, async () => {
  const place = new Place();
  try {
    const tasks = Array.from({ length: 30 }, (_, i) => ({ name: `fit_${i}`, run: i === 7 ? "echo no input >&2; exit 3" : "true", seconds: 2, after: i < 5 ? [] : [`fit_${i - 5}`] }));
    const flow = place.write(tasks, "real");
    const words = [
      ["compare", flow, "--policy", "finish,fifo", "--rates", "2,8", "--runs", "3", "-o", "compare.html"],
      ["explain", flow, "-o", "explain.html"],
      ["cluster", flow, "--size", "4", "-o", "cluster.html"],
      ["run", flow, "-q"],
      ["report", "real.json.run", "-o", "report.html"],
    ];
    for (const each of words) {
      const child = place.begin(each);
      if (child.exitCode === null) await new Promise((resolve) => child.once("exit", resolve));
    }
    for (const name of ["compare", "explain", "cluster", "report"]) {
      const page = await browser.open(pathToFileURL(join(place.folder, `${name}.html`)).href);
      const sections = await page.locator("nav a").evaluateAll((all) => all.map((one) => one.getAttribute("href")));
      for (const section of sections.length ? sections : [""]) {
        if (section) await page.evaluate((to) => (location.hash = to), section);
        await rest(0.3);
        for (const width of [1280, 360]) {
          await page.setViewportSize({ width, height: 800 });
          await rest(0.2);
          assert.deepEqual(await axe(page), [], `${name} ${section} at ${width}`);
          assert.equal(await overflows(page), false, `${name} ${section} is wider than ${width}`);
          await shot(page, `written-${name}-${section.split("/").pop() || "page"}-${width}`, false);
        }
      }
      assert.deepEqual(page.problems, []);
      await page.context().close();
    }
  } finally {
    await place.end();
  }
});
