// The current place, kept after the # of the address, so that every place has a link.
import { signal } from "@preact/signals";

export const SECTIONS = ["overview", "tasks", "dag", "timeline", "workers", "failures"] as const;
export type Section = (typeof SECTIONS)[number];

export interface Route {
  workflow: string;
  section: string;
  task: string;
  search: string;
  state: string;
  /** The part of the timeline that is shown. */
  range: string;
}

export const route = signal<Route>({ workflow: "", section: "overview", task: "", search: "", state: "", range: "" });

let live = true;

export function parse(hash: string, withWorkflow: boolean): Route {
  const [path = "", rest = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  const workflow = withWorkflow ? (parts.shift() ?? "") : "";
  const words = new URLSearchParams(rest);
  const word = (name: string) => words.get(name) ?? "";
  return { workflow, section: parts[0] || "overview", task: word("task"), search: word("search"), state: word("state"), range: word("range") };
}

/** The token, and the workflow if there is one, in a link of `eligo page URL`; null if it is another link. */
export function linked(hash: string): { token: string; workflow: string } | null {
  if (!hash.startsWith("#token=")) return null;
  const words = new URLSearchParams(hash.slice(1));
  return { token: words.get("token") ?? "", workflow: words.get("workflow") ?? "" };
}

/** The address of a place. Parts that are not given stay the same, but filters are dropped with a change of the section. */
export function href(to: Partial<Route>): string {
  const now = route.peek();
  const moved = to.section !== undefined && to.section !== now.section;
  const full: Route = { ...now, ...(moved ? { search: "", state: "", range: "" } : {}), ...to };
  const words = new URLSearchParams();
  for (const name of ["task", "search", "state", "range"] as const) if (full[name]) words.set(name, full[name]);
  const path = [...(live ? [full.workflow] : []), full.section].map(encodeURIComponent).join("/");
  const text = words.toString();
  return `#/${path}${text ? `?${text}` : ""}`;
}

export function go(to: Partial<Route>, replace = false): void {
  const address = href(to);
  if (replace) {
    history.replaceState(null, "", address);
    follow();
  } else {
    location.hash = address;
  }
}

function follow(): void {
  const next = parse(location.hash, live);
  if (JSON.stringify(next) !== JSON.stringify(route.peek())) route.value = next;
}

export function start(isLive: boolean): void {
  live = isLive;
  window.addEventListener("hashchange", follow);
  follow();
}
