// Figures and facts of static pages.
import type { Figure, Value } from "../documents";
import { figure as digits } from "../format";

/** A picture is shown as an image: nothing in it can run. */
const address = (svg: string): string => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;

export function Figures({ figures }: { figures: Figure[] }) {
  return (
    <div class="figures">
      {figures.map((one) => (
        <figure key={one.title}>
          <img src={address(one.svg)} alt={one.alt} />
          <figcaption>
            <b>{one.title}</b> <span class="quiet">{one.alt}</span>
          </figcaption>
        </figure>
      ))}
    </div>
  );
}

export function Facts({ facts }: { facts: [string, Value][] }) {
  if (!facts.length) return null;
  return (
    <dl class="factgrid">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === "number" ? digits(value) : String(value ?? "–")}</dd>
        </div>
      ))}
    </dl>
  );
}
