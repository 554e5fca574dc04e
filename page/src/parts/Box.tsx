// A part of a view with its heading.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface Words {
  title: string;
  children: ComponentChildren;
  beside?: ComponentChildren;
  tone?: "bad" | "good" | "";
  kind?: string;
  level?: 2 | 3;
}

export function Box({ title, children, beside, tone = "", kind = "", level = 2 }: Words) {
  const id = useId();
  const Heading = `h${level}` as "h2";
  return (
    <section class={`box ${tone} ${kind}`} aria-labelledby={id}>
      <div class="top">
        <Heading id={id}>{title}</Heading>
        {beside}
      </div>
      {children}
    </section>
  );
}
