// The name of a task, which opens what is known of it. Names come from anywhere: they are text and nothing else.
import { href } from "../route";

export function Task({ name, short = true }: { name: string; short?: boolean }) {
  return (
    <a class={short ? "task short" : "task"} href={href({ task: name })} title={name}>
      <bdi>{name}</bdi>
    </a>
  );
}

/** The last lines that something printed. */
export function Log({ lines, label }: { lines: string[]; label: string }) {
  if (!lines.length) return <p class="quiet">Nothing was printed.</p>;
  return (
    <pre class="log" tabIndex={0} role="region" aria-label={label}>
      {lines.join("\n")}
    </pre>
  );
}
