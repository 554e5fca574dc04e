// What may be wider than the window scrolls by itself, for those with a keyboard, too.
import type { ComponentChildren } from "preact";

export function Scroll({ label, children, tall = false }: { label: string; children: ComponentChildren; tall?: boolean }) {
  return (
    <div class={tall ? "scroll tall" : "scroll"} tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}
