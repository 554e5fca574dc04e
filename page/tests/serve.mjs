// A stand-in for the server: answers the addresses of the page with made-up runs that progress in real time.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { dagOf, detailOf, ganttOf, large, lineageOf, small, tableOf, viewOf } from "./fixtures.mjs";

const here = dirname(fileURLToPath(import.meta.url));
export const BUILT = join(here, "..", "..", "src", "eligo", "pages", "built");
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };

/** What a server does with a table, done the slow way. */
function asked(table, query) {
  const at = (name) => table.columns.indexOf(name);
  const search = (query.get("search") ?? "").toLowerCase();
  let rows = table.rows.filter((row) => row[at("task")].toLowerCase().includes(search));
  for (const name of ["state", "kind"]) if (query.get(name)) rows = rows.filter((row) => row[at(name)] === query.get(name));
  const sort = at(query.get("sort") ?? "place");
  const sign = query.get("descending") === "true" ? -1 : 1;
  rows.sort((first, second) => {
    if (first[sort] === null || second[sort] === null) return Number(first[sort] === null) - Number(second[sort] === null);
    return sign * (first[sort] < second[sort] ? -1 : first[sort] > second[sort] ? 1 : 0);
  });
  const offset = Number(query.get("offset") ?? 0);
  return { ...table, total: rows.length, rows: rows.slice(offset, offset + Math.min(1000, Number(query.get("limit") ?? 100))) };
}

export class Standin {
  constructor({ token = null, speed = 1, share = 0.55 } = {}) {
    this.token = token;
    this.runs = new Map([small(), large()].map((run) => [run.id, run]));
    const ended = { ...small(), id: "w-0", title: "survey of last week" };
    this.runs.set("w-0", ended);
    this.started = Date.now() / 1000;
    this.speed = speed;
    this.share = share;
    this.streams = new Set();
    this.posts = [];
    this.refuse = null;
    this.cut = false;
  }

  time(run) {
    if (run.id === "w-0") return run.end;
    return run.began + this.share * (run.end - run.began) + this.speed * (Date.now() / 1000 - this.started);
  }

  listen(port = 0) {
    this.server = createServer((ask, reply) => this.answer(ask, reply));
    return new Promise((found) => this.server.listen(port, "127.0.0.1", () => found(`http://127.0.0.1:${this.server.address().port}`)));
  }

  /** Ends all streams, and refuses new connections until `cut` is false again. */
  drop() {
    this.cut = true;
    for (const reply of this.streams) reply.destroy();
    this.streams.clear();
  }

  close() {
    for (const reply of this.streams) reply.destroy();
    this.server.closeAllConnections();
    return new Promise((done) => this.server.close(done));
  }

  answer(ask, reply) {
    const url = new URL(ask.url, "http://here");
    const json = (status, value) => {
      reply.writeHead(status, { "Content-Type": "application/json", "Content-Security-Policy": POLICY });
      reply.end(JSON.stringify(value));
    };
    if (this.cut) return ask.socket.destroy();
    const file = { "/": "index.html", "/page/page.js": "page.js", "/page/page.css": "page.css" }[url.pathname];
    if (file) {
      reply.writeHead(200, { "Content-Type": TYPES[file.split(".")[1]], "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff" });
      return reply.end(readFileSync(join(BUILT, file)));
    }
    if (this.token && ask.headers.authorization !== `Bearer ${this.token}`) return json(401, { error: "this token is not known here" });
    if (ask.method === "POST") return this.act(ask, url, json);
    if (url.pathname === "/v1/workflows") return json(200, { workflows: [...this.runs.values()].map((run) => this.line(run)) });
    const [, id, what] = url.pathname.match(/^\/v1\/workflows\/([^/]+)\/(.+)$/) ?? [];
    const run = this.runs.get(decodeURIComponent(id ?? ""));
    if (!run) return json(404, { error: "there is no such workflow here" });
    return this.tell(run, what, url.searchParams, reply, json);
  }

  line(run) {
    const { workflow, title: name, state, began: made, tasks, counts } = viewOf(run, this.time(run));
    return { workflow, name, owner: "ann", policy: "finish", state, made, tasks, counts, lost: 0, repeated: 0, saved: 0, missing: [], failures: [] };
  }

  tell(run, what, query, reply, json) {
    const time = this.time(run);
    const number = (name) => (query.has(name) ? Number(query.get(name)) : undefined);
    const name = query.get("name");
    const bare = ({ where: _, ...dag }) => dag;
    const answers = {
      view: () => viewOf(run, time),
      table: () => asked(tableOf(run, time), query),
      task: () => detailOf(run, name, time),
      dag: () => bare(dagOf(run, time)),
      "dag/states": () => ({ counts: dagOf(run, time).nodes.map((node) => node.counts) }),
      lineage: () => lineageOf(run, name, time),
      gantt: () => ganttOf(run, time, number("begin"), number("end"), number("limit")),
      attempts: () => this.attempts(run, number("after") ?? 0, number("limit") ?? 1000),
    };
    if (what === "events") return this.stream(run, reply);
    const found = answers[what]?.();
    return found ? json(200, found) : json(404, { error: name ? "there is no such task" : "there is nothing at this address" });
  }

  attempts(run, after, limit) {
    const part = run.attempts.slice(after, after + limit);
    const rows = part.map((one) => ({ task: run.tasks[one.task].name, attempt: one.attempt, client: one.worker, began: one.began, ended: one.ended, answer: one.good ? "done" : "failed", failure: null, code: one.good ? 0 : 3, memory: null, tail: null }));
    return { attempts: rows, after: after + limit < run.attempts.length ? after + limit : null };
  }

  stream(run, reply) {
    reply.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    this.streams.add(reply);
    const send = () => reply.write(`event: view\ndata: ${JSON.stringify(viewOf(run, this.time(run)))}\n\n`);
    send();
    const timer = setInterval(send, 1000);
    reply.on("close", () => {
      clearInterval(timer);
      this.streams.delete(reply);
    });
  }

  act(ask, url, json) {
    let text = "";
    ask.on("data", (piece) => (text += piece));
    ask.on("end", () => {
      this.posts.push({ path: url.pathname, body: JSON.parse(text || "{}"), key: ask.headers["idempotency-key"] });
      if (this.refuse) json(409, { error: this.refuse });
      else json(200, /\/(retry|release)$/.test(url.pathname) ? { count: 2 } : {});
    });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = new Standin({ token: process.env.TOKEN ?? null });
  console.log(await server.listen(Number(process.argv[2] ?? 8790)));
}
