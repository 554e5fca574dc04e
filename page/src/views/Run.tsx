// One run, live or saved in a file; the sections are the same.
import type { ComponentChildren } from "preact";
import type { View } from "../documents";
import { many } from "../format";
import { Footer } from "../parts/Footer";
import { route } from "../route";
import { printing } from "../theme";
import { Dag } from "./Dag";
import { Failures } from "./Failures";
import { Nav, type Entry } from "./Nav";
import { Overview } from "./Overview";
import { TaskPanel } from "./TaskPanel";
import { Tasks } from "./Tasks";
import { Timeline } from "./Timeline";
import { Workers } from "./Workers";
import { Print } from "./Print";

const sections = (view: View): (Entry & { shown: () => ComponentChildren })[] => [
  { section: "overview", words: "Overview", shown: () => <Overview view={view} /> },
  { section: "tasks", words: "Tasks", shown: () => <Tasks view={view} /> },
  { section: "dag", words: "Dag", shown: () => <Dag view={view} /> },
  { section: "timeline", words: "Timeline", shown: () => <Timeline view={view} /> },
  { section: "workers", words: "Workers", shown: () => <Workers view={view} /> },
  { section: "failures", words: "Failures", badge: view.failures_total, shown: () => <Failures view={view} /> },
];

/** The selected section; in print all of them, one below the other. */
export function Sections({ entries }: { entries: (Entry & { shown: () => ComponentChildren })[] }) {
  const current = entries.find(({ section }) => section === route.value.section) ?? entries[0]!;
  const all = printing.value ? entries : [current];
  return (
    <>
      {all.map(({ section, words, shown }) => (
        <section key={section} class={`section ${section}`} aria-label={words}>
          {(printing.value || section !== "overview") && <h2 class={printing.value ? "title" : "sr"}>{words}</h2>}
          {shown()}
        </section>
      ))}
    </>
  );
}

export function Run({ view, extra }: { view: View; extra?: ComponentChildren }) {
  const entries = sections(view);
  return (
    <>
      <Nav entries={entries} />
      <div class={route.value.task ? "body beside" : "body"}>
        <main id="main" tabIndex={-1}>
          <Sections entries={entries} />
        </main>
        {route.value.task && <TaskPanel key={route.value.task} task={route.value.task} view={view} />}
      </div>
      <Footer words={`${view.title}, ${many(view.tasks, "task")}, policy ${view.policy}`}>
        {extra}
        <Print view={view} />
      </Footer>
    </>
  );
}
