// A browser for tests: opens pages, notes whatever goes wrong in them, and asks axe about them.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const here = dirname(fileURLToPath(import.meta.url));
export const BUILT = join(here, "..", "..", "src", "eligo", "pages", "built");
export const SHOTS = join(here, "..", "..", "out", "page");
export const CHROMIUM = process.env.CHROMIUM || "/usr/bin/chromium";
export const there = existsSync(CHROMIUM);

const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export class Browser {
  static async start() {
    const browser = new Browser();
    browser.folder = mkdtempSync(join(tmpdir(), "eligo-page-"));
    browser.inner = await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS, chromiumSandbox: false });
    return browser;
  }

  async stop() {
    await this.inner.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A page with `problems` (errors of the console and of scripts) and `elsewhere` (requests that leave its origin). */
  async open(url, { width = 1600, height = 1000, dark = false, token = null, media = null } = {}) {
    const context = await this.inner.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", acceptDownloads: true, bypassCSP: false });
    if (token) await context.addInitScript((given) => sessionStorage.setItem("eligo-token", given), token);
    const page = await context.newPage();
    page.problems = [];
    page.elsewhere = [];
    const origin = new URL(url).origin;
    page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
    page.on("pageerror", (error) => page.problems.push(String(error)));
    page.on("dialog", (dialog) => {
      page.problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const address = new URL(request.url());
      if (!["data:", "blob:"].includes(address.protocol) && address.origin !== origin) page.elsewhere.push(request.url());
    });
    if (media) await page.emulateMedia({ media });
    await page.goto(url, { waitUntil: "load" });
    return page;
  }

  /** The document as a static page, written to a file as Python does it; gives back its address. */
  write(document, name = "page") {
    const read = (file) => readFileSync(join(BUILT, file), "utf8");
    const data = JSON.stringify(document).replaceAll("<", "\\u003c");
    const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>eligo</title><style>${read("page.css")}</style></head><body><div id="page"></div><script type="application/json" id="data">${data}</script><script>${read("page.js")}</script></body></html>`;
    const path = join(this.folder, `${name}.html`);
    writeFileSync(path, html);
    return pathToFileURL(path).href;
  }
}

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** What axe finds that is serious or critical, one line each. */
export async function axe(page) {
  if (!(await page.evaluate("typeof window.axe !== 'undefined'"))) await page.evaluate(readFileSync(AXE, "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.failureSummary}`).join(" | ")}`);
}

export async function shot(page, name, full = true) {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`), fullPage: full });
}

/** Whether the page is wider than the window. */
export const overflows = (page) => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
