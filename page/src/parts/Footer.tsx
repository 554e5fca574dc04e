// The footer of a page: its subject, and the downloads.
import type { ComponentChildren } from "preact";

export function Footer({ words, children }: { words: string; children?: ComponentChildren }) {
  return (
    <footer class="foot">
      <bdi>{words}; made by eligo</bdi>
      <span>{children}</span>
    </footer>
  );
}
