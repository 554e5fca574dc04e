// The live page: a list of workflows, one workflow, or a form if the server requires a token.
import { useEffect } from "preact/hooks";
import { asked } from "../calls";
import { title } from "../headline";
import { go, route } from "../route";
import { finished, follow, link, view, workflows } from "../session";
import { Announcer, Connection } from "./Connection";
import { Header } from "./Header";
import { Login } from "./Login";
import { Run } from "./Run";
import { Skip } from "./Skip";
import { prepare } from "./Static";
import { Workflows } from "./Workflows";

function Body() {
  const current = view.value;
  if (asked.value !== null) {
    return (
      <main id="main" tabIndex={-1} class="alone">
        <Login />
      </main>
    );
  }
  if (route.value.workflow && current) return <Run view={current} />;
  return (
    <main id="main" tabIndex={-1} class="alone">
      {route.value.workflow ? link.value.state === "fine" && <p class="empty">Loading …</p> : <Workflows />}
    </main>
  );
}

export function App() {
  const { workflow } = route.value;
  const current = view.value;
  const shown = asked.value === null && workflow ? current : null;
  const only = workflows.value?.length === 1 ? workflows.value[0]!.workflow : "";
  const ended = finished.value;
  useEffect(() => follow(workflow), [workflow]);
  useEffect(() => {
    if (ended) prepare(ended.page);
  }, [ended]);
  useEffect(() => {
    if (!workflow && only) go({ workflow: only }, true);
  }, [workflow, only]);
  useEffect(() => {
    document.title = workflow && current ? title(current) : "eligo: workflows";
  }, [workflow, current]);
  return (
    <>
      <Skip />
      <Header shown={shown} name={workflow ? (current?.title ?? "") : "Workflows"} live search={shown !== null} />
      {asked.value === null && <Connection />}
      <Announcer />
      <Body />
    </>
  );
}
