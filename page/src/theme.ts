// Light or dark: as the reader's system has it, until the reader says otherwise; paper is always light.
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
    // Some browsers keep nothing for files; the choice then lasts as long as the page.
  }
}

/** The browser takes its picture of the page right after it has said so: whatever changes must have changed by then. */
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

/** The value of a colour of the style sheet, for what is drawn by hand. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
