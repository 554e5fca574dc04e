// The number of tasks in each state, as a bar and as numbers.
import type { Counts, State } from "../documents";
import { STATES } from "../documents";
import { number, percent } from "../format";
import { href } from "../route";
import { count, meaning, slug, total } from "../states";
import { Mark } from "./Mark";

/** "4 done, 2 running". */
export function described(counts: Counts): string {
  return STATES.filter((state) => count(counts, state))
    .map((state) => `${number(count(counts, state))} ${state}`)
    .join(", ");
}

/** The bar alone, with a description in words. */
export function Bar({ counts, small = false }: { counts: Counts; small?: boolean }) {
  const whole = total(counts);
  return (
    <div class={small ? "bar small" : "bar"} role="img" aria-label={whole ? described(counts) : "no tasks"}>
      {STATES.filter((state) => count(counts, state)).map((state) => (
        <span key={state} class={`segment ${slug[state]}`} style={{ flexGrow: count(counts, state) }} title={`${number(count(counts, state))} ${state}`} />
      ))}
    </div>
  );
}

function Entry({ state, counts, whole, linked }: { state: State; counts: Counts; whole: number; linked: boolean }) {
  const found = count(counts, state);
  const inside = (
    <>
      <span class={`swatch ${slug[state]}`}>
        <Mark state={state} />
      </span>
      <strong>{number(found)}</strong>
      <span class="name">{state}</span>
      {found > 0 && <span class="share">{percent(found, whole)}</span>}
    </>
  );
  return (
    <li class={found ? "" : "none"} title={meaning[state]}>
      {linked && found ? <a href={href({ section: "tasks", state, search: "", task: "" })}>{inside}</a> : <span>{inside}</span>}
    </li>
  );
}

export function StateBar({ counts, linked = true }: { counts: Counts; linked?: boolean }) {
  const whole = total(counts);
  return (
    <div class="statebar">
      <Bar counts={counts} />
      <ul class="legend">
        {STATES.map((state) => (
          <Entry key={state} state={state} counts={counts} whole={whole} linked={linked} />
        ))}
      </ul>
    </div>
  );
}
