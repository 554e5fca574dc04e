// Light or dark: as set in the reader's system, unless the reader chooses; print is always light.
import { options } from "preact";
import { computed, effect, signal } from "@preact/signals";

export type Choice = "auto" | "light" | "dark";
const KEPT = "eligo-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const paper = window.matchMedia("print");

function kept(): Choice {
  try {
    const value = localStorage.getItem(KEPT);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export const choice = signal<Choice>(kept());
const system = signal(dark.matches);
export const printing = signal(paper.matches);
export const theme = computed<"light" | "dark">(() => {
  if (printing.value) return "light";
  return choice.value === "auto" ? (system.value ? "dark" : "light") : choice.value;
});

export function choose(next: Choice): void {
  choice.value = next;
  try {
    localStorage.setItem(KEPT, next);
  } catch {
    // Some browsers store nothing for local files; then the choice lasts as long as the page.
  }
}

/** The browser prints right after this event, so every change must be complete when the handler returns. */
function print(on: boolean): void {
  const before = options.debounceRendering;
  options.debounceRendering = (render) => render();
  printing.value = on;
  options.debounceRendering = before;
}

export function start(): void {
  dark.addEventListener("change", () => (system.value = dark.matches));
  paper.addEventListener("change", () => print(paper.matches));
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}

/** The value of a colour of the style sheet, for drawings on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
