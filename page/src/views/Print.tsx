// Prints all sections; fetches the data of those that were not shown yet first.
import type { View } from "../documents";
import { Action } from "../parts/Action";
import { remember } from "../parts/useLatest";
import { source } from "../session";
import { WHOLE } from "../table";
import { tableKey } from "./Tasks";
import { ganttKey } from "./Timeline";

export function Print({ view }: { view: View }) {
  const print = async () => {
    const from = source.peek()!;
    const [dag, gantt, table, states] = await Promise.all([from.dag(), from.gantt(), from.table(WHOLE), from.states()]);
    remember(`dag ${view.workflow}`, dag);
    remember(`states ${view.workflow}`, states);
    remember(ganttKey(view.workflow, null), gantt);
    remember(tableKey(view.workflow, WHOLE), table);
    window.print();
    return "";
  };
  return <Action label="Print all sections" act={print} />;
}
