// The name of a task, as a link to its panel. Names are untrusted, so they are always shown as text.
import { pieces } from "../ansi";
import { href } from "../route";

export function Task({ name, short = true }: { name: string; short?: boolean }) {
  return (
    <a class={short ? "task short" : "task"} href={href({ task: name })} title={name}>
      <bdi>{name}</bdi>
    </a>
  );
}

/** The last lines of some output. */
export function Log({ lines, label }: { lines: string[]; label: string }) {
  if (!lines.length) return <p class="quiet">Nothing was printed.</p>;
  return (
    <pre class="log" tabIndex={0} role="region" aria-label={label}>
      {pieces(lines.join("\n")).map(({ text, look }, at) => (look ? <span key={at} class={look}>{text}</span> : text))}
    </pre>
  );
}
