// The workers of the run: when each was last seen, its speed, its results, and its current tasks.
import { useState } from "preact/hooks";
import type { Client, View } from "../documents";
import { ago, clock, figure, length, many, number } from "../format";
import { Action } from "../parts/Action";
import { approve, resize, revoke } from "../parts/actions";
import { Scroll } from "../parts/Scroll";
import { Task } from "../parts/Task";
import { now } from "../session";

function Holds({ client }: { client: Client }) {
  if (!client.held) return <span class="quiet">nothing</span>;
  const first = client.holds.slice(0, 2);
  return (
    <span class="names">
      {first.map((held) => (
        <span key={held.task}>
          <Task name={held.task} /> <span class="quiet">{length(Math.max(0, Math.round(now.value - held.since)))}</span>
        </span>
      ))}
      {client.holds.length > 2 && (
        <details>
          <summary>and {number(client.held - 2)} more</summary>
          {client.holds.slice(2).map((held) => (
            <div key={held.task}>
              <Task name={held.task} />
            </div>
          ))}
        </details>
      )}
    </span>
  );
}

function Reputation({ client }: { client: Client }) {
  const whole = client.done + client.failed + client.lost;
  return (
    <div class="bar small" aria-hidden="true">
      {whole > 0 &&
        (
          [
            ["done", client.done],
            ["failed", client.failed],
            ["again", client.lost],
          ] as const
        ).map(([name, value]) => value > 0 && <span key={name} class={`segment ${name}`} style={{ flexGrow: value }} />)}
    </div>
  );
}

function status(client: Client): string {
  if (!client.approved) return "not approved";
  if (client.paused > 0) return `paused for ${length(client.paused)}`;
  return client.alive ? "connected" : "not connected";
}

function Row({ client, view }: { client: Client; view: View }) {
  return (
    <tr class={client.bad ? "bad" : ""}>
      <th scope="row">
        <bdi>{client.name || client.client}</bdi>
        {client.bad && <span class="tag bad">bad</span>}
        {client.name && client.name !== client.client && <span class="quiet id">{client.client}</span>}
        {client.remark && <p class="remark">{client.remark}</p>}
      </th>
      <td data-head="State">
        <span class={`dot ${client.alive && client.approved ? "on" : "off"}`} aria-hidden="true" />
        {status(client)}
      </td>
      <td class="num" data-head="Last seen" title={clock(client.seen)}>
        {ago(client.seen, now.value)}
      </td>
      <td class="num" data-head="Speed">{client.speed === null ? "–" : `${figure(Number(client.speed.toFixed(2)))} ×`}</td>
      <td class="num" data-head="Done">{number(client.done)}</td>
      <td class="num" data-head="Failed">{number(client.failed)}</td>
      <td class="num" data-head="Lost">{number(client.lost)}</td>
      <td class="rep" data-head="Share">
        <Reputation client={client} />
      </td>
      <td data-head="Tasks now">
        <Holds client={client} />
      </td>
      {view.can.approve && (
        <td class="noprint">
          {client.approved ? (
            <Action
              label="Revoke"
              danger
              confirm={`${client.name || client.client} gets no more tasks, and its current tasks go to other clients.`}
              act={() => revoke(client.client)}
            />
          ) : (
            <Action label="Approve" act={() => approve(client.client)} />
          )}
        </td>
      )}
    </tr>
  );
}

/** The number of tasks that a run on this machine runs at a time. */
function Size({ view }: { view: View }) {
  const [wanted, setWanted] = useState<number | null>(null);
  const workers = wanted ?? view.workers;
  return (
    <p class="controls">
      <label>
        Tasks at a time{" "}
        <input type="number" min={1} max={100000} value={workers} onInput={(event) => setWanted(Math.max(1, Math.floor(Number(event.currentTarget.value)) || 1))} />
      </label>{" "}
      <Action label="Change" act={() => resize(view.workflow, workers)} />
    </p>
  );
}

/** The number of rows shown; workers with problems come first, so they are among these. */
const SHOWN = 300;

const HEADS: [words: string, number: boolean, meaning: string][] = [
  ["Worker", false, ""],
  ["State", false, ""],
  ["Last seen", true, ""],
  ["Speed", true, "compared with the median of the workers at the same kinds of tasks: 2 is twice as fast"],
  ["Done", true, "attempts that succeeded"],
  ["Failed", true, "attempts that failed"],
  ["Lost", true, "attempts whose result never arrived"],
  ["Share", false, "shares of done, failed and lost attempts"],
  ["Tasks now", false, "tasks that it is running"],
];

export function Workers({ view }: { view: View }) {
  const alive = view.clients.filter((client) => client.alive).length;
  const bad = view.clients.filter((client) => client.bad).length;
  if (!view.clients.length) {
    return <p class="empty">No workers yet. {view.source === "server" && <>Start one with: <code>eligo work {location.origin}</code></>}</p>;
  }
  return (
    <>
      <p class="headline small">
        {view.ended === null ? `${number(alive)} of ${many(view.clients.length, "worker")} connected` : `${many(view.clients.length, "worker")} took part`}
        {bad ? `; ${number(bad)} with problems` : "; none with problems"}
      </p>
      {view.can.workers && <Size view={view} />}
      <Scroll label="Workers" card>
        <table class="plain workers">
          <thead>
            <tr>
              {HEADS.map(([words, numeric, meaning]) => (
                <th key={words} scope="col" class={numeric ? "num" : ""} title={meaning}>
                  {words}
                </th>
              ))}
              {view.can.approve && (
                <th scope="col" class="noprint">
                  Access
                </th>
              )}
            </tr>
          </thead>
          <tbody>
            {view.clients.slice(0, SHOWN).map((client) => (
              <Row key={client.client} client={client} view={view} />
            ))}
          </tbody>
        </table>
      </Scroll>
      {view.clients.length > SHOWN && <p class="quiet">and {number(view.clients.length - SHOWN)} more</p>}
    </>
  );
}
