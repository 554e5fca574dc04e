// The foot of a page: what it is about, and what can be taken along.
import type { ComponentChildren } from "preact";

export function Footer({ words, children }: { words: string; children?: ComponentChildren }) {
  return (
    <footer class="foot">
      <bdi>{words}; made by eligo</bdi>
      <span>{children}</span>
    </footer>
  );
}
