// Numbers and times in a form that is easy to read.

const UNITS: [seconds: number, name: string][] = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A whole number with separators for thousands: 10,000. */
export function number(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return Math.round(value).toLocaleString("en-US");
}

/** A number with its significant digits only: 0.042, 3.4, 128. */
export function figure(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return number(value);
  if (size >= 10) return value.toFixed(1);
  if (size >= 1) return value.toFixed(2).replace(/0$/, "");
  return size === 0 ? "0" : String(Number(value.toPrecision(2)));
}

/** A number and a noun: "1 task", "3 tasks". */
export function many(count: number, one: string, more = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : more}`;
}

/** A share in percent: 100 only if all is done, 0 only if nothing is. */
export function percent(part: number, whole: number): string {
  if (!whole) return "0 %";
  const share = (100 * part) / whole;
  if (share > 0 && share < 1) return "< 1 %";
  return `${share > 99 && share < 100 ? 99 : Math.round(share)} %`;
}

/** A length of time in one unit or two: 850 ms, 4.2 s, 3 min 20 s, 2 h 5 min. */
export function length(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 0) return `−${length(-seconds)}`;
  if (seconds === 0) return "0 s";
  if (seconds < 0.9995) return `${Number((seconds * 1000).toPrecision(3))} ms`;
  if (seconds < 9.95) return `${Number(seconds.toFixed(1))} s`;
  const whole = Math.round(seconds);
  const at = UNITS.findIndex(([size]) => whole >= size);
  const [size, name] = UNITS[at] ?? [1, "s"];
  const next = UNITS[at + 1];
  const first = Math.floor(whole / size);
  const rest = next ? Math.floor((whole - first * size) / next[0]) : 0;
  return next && rest ? `${first} ${name} ${rest} ${next[1]}` : `${first} ${name}`;
}

/** How much time is left, as a range in one unit: "12 to 17 min". */
export function range(least: number, most: number): string {
  if (most < 1) return "less than 1 s";
  const [size, name] = UNITS.find(([unit]) => most >= (unit === 60 ? 3 : 1.5) * unit) ?? [1, "s"];
  const step = size > 60 && most / size < 10 ? 0.1 : size === 1 && most > 30 ? 5 : 1;
  const [low, high] = [least, most].map((value) => Number((Math.round(value / size / step) * step).toFixed(1)));
  if (low === high) return `about ${high} ${name}`;
  return low === 0 ? `up to ${high} ${name}` : `${low} to ${high} ${name}`;
}

const CODES: Record<number, string> = {
  126: "not executable",
  127: "command not found",
  134: "aborted",
  137: "killed, perhaps out of memory",
  139: "segmentation fault",
  143: "terminated",
};

/** What an exit code stands for; empty for the codes of programs themselves. */
export function codeWords(code: number): string {
  if (CODES[code]) return CODES[code]!;
  return code > 128 && code < 160 ? `ended by signal ${code - 128}` : "";
}

/** A failure with its exit code in words: "exit code 137 (killed, perhaps out of memory)". */
export function failureWords(failure: string): string {
  const code = /^exit code (\d+)$/.exec(failure)?.[1];
  const words = code ? codeWords(Number(code)) : "";
  return words ? `${failure} (${words})` : failure;
}

/** How long ago something was: "just now", "12 s ago". */
export function ago(then: number, now: number): string {
  const seconds = Math.max(0, now - then);
  return seconds < 1.5 ? "just now" : `${length(Math.round(seconds))} ago`;
}

const pad = (value: number) => String(value).padStart(2, "0");

/** A time of day, with the date if it differs from that of `now`: 14:03:22. */
export function clock(time: number | null | undefined, now?: number): string {
  if (time === null || time === undefined) return "–";
  const date = new Date(time * 1000);
  const said = `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
  const same = now !== undefined && date.toDateString() === new Date(now * 1000).toDateString();
  return same ? said : `${day(time)} ${said}`;
}

/** A day: 2026-03-01. */
export function day(time: number): string {
  const date = new Date(time * 1000);
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
}

/** A size in bytes: 3.2 GB. */
export function bytes(size: number | null | undefined): string {
  if (size === null || size === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let value = size;
  let at = 0;
  while (value >= 999.5 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 || value >= 99.5 ? Math.round(value) : Number(value.toPrecision(2))} ${units[at]}`;
}

/** The rate at which tasks end: "3.2 tasks a second", "14 tasks an hour". */
export function rate(each: number): string {
  if (!(each > 0)) return "not known yet";
  if (each >= 0.95) return `${figure(each)} tasks a second`;
  if (each * 60 >= 0.95) return `${figure(each * 60)} tasks a minute`;
  return `${figure(each * 3600)} tasks an hour`;
}
