// What needs no browser: words for numbers, tables, events, ways through a dag.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pieces, plain } from "../src/ansi";
import { fit, start, zoom } from "../src/camera";
import type { Dag, View } from "../src/documents";
import { ago, bytes, failureWords, figure, length, many, number, percent, range, rate } from "../src/format";
import { headline, news, title } from "../src/headline";
import { lineage } from "../src/lineage";
import { linked } from "../src/route";
import { Events } from "../src/sse";
import { answer, csv, sorted, WHOLE } from "../src/table";
import { layout, marks, timeAt, across } from "../src/gantt";
import { padded, summary } from "../src/curve";

test("lengths of time take one unit or two", () => {
  const said = [0, 0.0421, 0.9999, 4.24, 6, 59.7, 61, 200, 3600, 7500, 90000].map((seconds) => length(seconds));
  assert.deepEqual(said, ["0 s", "42.1 ms", "1 s", "4.2 s", "6 s", "1 min", "1 min 1 s", "3 min 20 s", "1 h", "2 h 5 min", "1 d 1 h"]);
  assert.equal(length(null), "–");
  assert.equal(length(-5), "−5 s");
});

test("the time left is a range in one unit", () => {
  assert.equal(range(720, 1020), "12 to 17 min");
  assert.equal(range(0.1, 0.4), "less than 1 s");
  assert.equal(range(60, 61), "about 60 s");
  assert.equal(range(82, 115), "80 to 115 s");
  assert.equal(range(5400, 9000), "1.5 to 2.5 h");
  assert.equal(range(0, 8), "up to 8 s");
});

test("numbers are read at a glance", () => {
  assert.equal(number(10000), "10,000");
  assert.equal(figure(0.0421), "0.042");
  assert.equal(figure(3.4), "3.4");
  assert.equal(many(1, "task"), "1 task");
  assert.equal(many(2, "period", "periods"), "2 periods");
  assert.equal(bytes(3.2e9), "3.2 GB");
  assert.equal(bytes(999), "999 B");
  assert.equal(rate(0.5), "30 tasks a minute");
  assert.equal(rate(0), "not known yet");
  assert.equal(ago(10, 11), "just now");
  assert.equal(ago(10, 73), "1 min 3 s ago");
});

test("a share is 100 % only when all is done", () => {
  assert.equal(percent(9999, 10000), "99 %");
  assert.equal(percent(1, 10000), "< 1 %");
  assert.equal(percent(10, 10), "100 %");
  assert.equal(percent(0, 0), "0 %");
});

const columns = ["place", "task", "kind", "state"];
const rows = [
  [2, "b10", "x", "failed"],
  [1, "b9", "y", "done"],
  [null, "<b>", "x", "running"],
];

test("tables are sorted by number, by the order of states, and as people sort words; what is not known is last", () => {
  const names = (column: string, descending = false) => sorted(rows, columns, column, descending).map((row) => row[1]);
  assert.deepEqual(names("place"), ["b9", "b10", "<b>"]);
  assert.deepEqual(names("place", true), ["b10", "b9", "<b>"]);
  assert.deepEqual(names("state"), ["b9", "<b>", "b10"]);
  assert.deepEqual(names("task").slice(1), ["b9", "b10"]);
  assert.deepEqual(names("nothing"), ["b10", "b9", "<b>"]);
});

test("tables are searched, filtered and cut", () => {
  assert.equal(answer({ columns, rows }, { ...WHOLE, search: "B1" }).rows[0]?.[1], "b10");
  assert.equal(answer({ columns, rows }, { ...WHOLE, kind: "x" }).total, 2);
  const page = answer({ columns, rows }, { ...WHOLE, offset: 1, limit: 1 });
  assert.deepEqual([page.total, page.rows.length, page.rows[0]?.[1]], [3, 1, "b10"]);
});

test("comma-separated values keep commas and quotes, and nothing in them runs in a spreadsheet", () => {
  assert.equal(csv(["a", "b"], [['x,"y"', null], ["=1+1", -3]]), 'a,b\r\n"x,""y""",\r\n\'=1+1,-3\r\n');
});

test("events are found whatever the pieces they come in", () => {
  const text = ": hello\r\n\r\nevent: view\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata: x\n\n";
  for (const size of [1, 2, 3, 7, 1000]) {
    const events = new Events();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...events.push(text.slice(at, at + size)));
    assert.deepEqual(found, [
      { event: "view", data: '{"a":\n1}' },
      { event: "message", data: "x" },
    ]);
  }
});

test("lineage and the longest path come from the arcs", () => {
  const node = { label: "", kind: -1, x: 0, y: 0, w: 1, h: 1, count: 1, tasks: [], counts: {} };
  const dag = {
    aggregated: false, tasks: 5, width: 1, height: 1, kinds: [],
    nodes: [0, 1, 2, 3, 4].map((id) => ({ ...node, id })),
    arcs: [[0, 1, 1, []], [1, 2, 1, []], [0, 2, 1, []], [2, 3, 1, []]],
  } as Dag;
  const found = lineage(dag, 2);
  assert.deepEqual(found.above.sort(), [0, 1]);
  assert.deepEqual(found.below, [3]);
  assert.deepEqual(found.path, [0, 1, 2, 3]);
  assert.deepEqual(lineage(dag, 4), { above: [], below: [], self: 4, path: [4] });
});

test("the headline says how far it is and when it ends", () => {
  const view = { title: "survey", workflow: "w", state: "running", tasks: 10000, counts: { done: 4310, running: 16 }, left: [720, 1020], seconds: 200, failures_total: 0 } as unknown as View;
  assert.equal(headline(view), "4,310 of 10,000 tasks done, 16 running; 12 to 17 min left");
  assert.equal(title(view), "survey: 43 % done");
  const over = { ...view, state: "done", counts: { done: 10000 } } as View;
  assert.equal(headline(over), "All 10,000 tasks done in 3 min 20 s");
  assert.equal(headline({ ...view, state: "failed", counts: { done: 9, failed: 1 }, tasks: 10 } as View), "9 of 10 tasks done, 1 failed; ended after 3 min 20 s");
  assert.equal(news(view, { ...view, now: 3 }), null);
  assert.match(news(view, over) ?? "", /survey is done/);
  assert.match(news(view, { ...view, failures_total: 2 }) ?? "", /2 tasks failed/);
});

test("a curve is padded and described in words", () => {
  assert.deepEqual(padded([1, 2], 3), [1, 2, null]);
  const curve = { steps: [0, 1], lines: { seen: { y: [1] }, fifo: { y: [1, 0] } }, starved: [[0, 1]], averages: { seen: 1, fifo: 0.5 }, sampled: false, remark: "" };
  assert.match(summary(curve as never), /1 in this run, 0.5 first come, first served.*1 period /);
});

test("drawings fit, and zoom keeps the point under the pointer", () => {
  const camera = fit({ width: 1000, height: 10 }, { width: 500, height: 300 });
  const before = (250 - camera.x) / camera.scale;
  const closer = zoom(camera, 2, 250, 100);
  assert.ok(Math.abs((250 - closer.x) / closer.scale - before) < 1e-9);
});

test("the timeline's marks are round and its scale goes both ways", () => {
  const at = layout({ begin: 100, end: 400, workers: [{ name: "a", busy: 1 }], kinds: [], bars: [], attempts: 0, merged: 0 }, 800);
  assert.deepEqual(marks(at, 100), [0, 60, 120, 180, 240, 300]);
  assert.ok(Math.abs(timeAt(at, across(at, 250)) - 250) < 1e-9);
});

test("the token of a link is taken from behind its #", () => {
  assert.deepEqual(linked("#token=ab_-9&workflow=w-1"), { token: "ab_-9", workflow: "w-1" });
  assert.deepEqual(linked("#token=ab"), { token: "ab", workflow: "" });
  assert.equal(linked("#/w-1/tasks?task=token=ab"), null);
});

test("a failure is titled by its last line, and exit codes have words", () => {
  assert.equal(failureWords("exit code 137"), "exit code 137 (killed, perhaps out of memory)");
  assert.equal(failureWords("exit code 3"), "exit code 3");
  assert.equal(failureWords("exit code 130"), "exit code 130 (ended by signal 2)");
});

test("colours of terminals are drawn, and other control sequences left out", () => {
  assert.deepEqual(pieces("a\u001b[31mred\u001b[0m b\u001b[2K\u001b]0;title\u0007c"), [
    { text: "a", look: "" },
    { text: "red", look: "ansi-1" },
    { text: " b", look: "" },
    { text: "c", look: "" },
  ]);
  assert.equal(plain("\u001b[1;31mError\u001b[0m: x\u0008"), "Error: x");
});

test("a drawing that is too deep to be read whole begins with its upper part", () => {
  const window = { width: 1000, height: 600 };
  assert.deepEqual(start({ width: 400, height: 500 }, window), fit({ width: 400, height: 500 }, window));
  assert.deepEqual(start({ width: 9000, height: 90 }, window), fit({ width: 9000, height: 90 }, window));
  assert.deepEqual(start({ width: 100, height: 9000 }, window), { scale: 0.75, x: 462.5, y: 16 });
});
