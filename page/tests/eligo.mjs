// The real server, its clients and runs, as processes that are ended by their ids.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
export const PYTHON = process.env.PYTHON || join(here, "..", "..", ".venv", "bin", "python");
export const there = existsSync(PYTHON);

export class Place {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "eligo-real-"));
    this.processes = [];
  }

  /** A workflow in a file. */
  write(tasks, name = "flow") {
    const path = join(this.folder, `${name}.json`);
    writeFileSync(path, JSON.stringify({ name, tasks }));
    return path;
  }

  /** A command of eligo; `said` has what it prints. */
  begin(words) {
    const child = spawn(PYTHON, ["-m", "eligo", ...words], { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    child.said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (child.said += text));
    this.processes.push(child);
    return child;
  }

  /** Comes back with what a command says that fits. */
  async says(child, pattern, seconds = 60) {
    for (const until = Date.now() + 1000 * seconds; Date.now() < until; await rest(0.05)) {
      const found = child.said.match(pattern);
      if (found) return found;
      if (child.exitCode !== null) break;
    }
    throw new Error(`nothing like ${pattern} was said, but: ${child.said}`);
  }

  async serve(words, port = 0) {
    const files = words.length ? ["--no-files"] : [];
    const access = words.includes("--tokens") ? [] : ["--open"];
    const server = this.begin(["serve", ...words, ...files, ...access, "--port", String(port), "--store", "s.db", "-q"]);
    const [, url] = await this.says(server, /serving on (\S+)/);
    return { server, url };
  }

  work(url, name) {
    const folder = join(this.folder, `client-${name}`);
    mkdirSync(folder, { recursive: true });
    return this.begin(["work", url, "--name", name, "--folder", folder, "--cores", "1"]);
  }

  async kill(child, signal = "SIGKILL") {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }

  async end() {
    for (const child of this.processes.reverse()) await this.kill(child);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export function rest(seconds) {
  return new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
}

export async function got(url) {
  const reply = await fetch(url);
  if (!reply.ok) throw new Error(`${url}: ${reply.status}`);
  return reply.json();
}
