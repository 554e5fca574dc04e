// Content that may be wider than the window scrolls by itself, with the keyboard, too.
import type { ComponentChildren } from "preact";

interface Words {
  label: string;
  children: ComponentChildren;
  tall?: boolean;
  card?: boolean;
}

export function Scroll({ label, children, tall = false, card = false }: Words) {
  return (
    <div class={`scroll${tall ? " tall" : ""}${card ? " card" : ""}`} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
