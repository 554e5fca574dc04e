// Follows one workflow: a stream of complete views, reopened whenever it ends.
import { call, get, Refused, said } from "./calls";
import type { View } from "./documents";
import { Events } from "./sse";

const SOONEST = 500;
const LATEST = 5000;
/** The server sends something every 15 s; after this long without data the connection is lost. */
const SILENCE = 40_000;
/** A hidden page polls at this interval instead of keeping a stream open. */
const UNSEEN = 30_000;

export interface Listener {
  view(view: View): void;
  lost(why: string): void;
  gone(why: string): void;
  /** The run has ended: the last view came before. The promise settles once its data are here. */
  ended(end: End): Promise<void>;
}

/** The last event of a stream: the path of the report on the machine of the run, if it was written. */
export interface End {
  report: string | null;
}

/** How long to wait before the n-th attempt in a row; random, so that pages do not reconnect all at once. */
export function pause(tries: number, scatter = Math.random()): number {
  return Math.min(LATEST, SOONEST * 2 ** tries) * (0.75 + 0.25 * scatter);
}

export class Stream {
  private stopped = false;
  private tries = 0;
  /** Whether the page comes from a run on this machine: it ends with the run, so even a hidden page keeps its stream. */
  private local = false;
  private open = false;
  private abort: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly address: string,
    private readonly listener: Listener,
  ) {
    document.addEventListener("visibilitychange", this.seen);
    window.addEventListener("online", this.again);
    this.again();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.abort?.abort();
    document.removeEventListener("visibilitychange", this.seen);
    window.removeEventListener("online", this.again);
  }

  private readonly seen = (): void => {
    if (!this.local || !this.open) this.again();
  };

  /** Reconnect at once. */
  readonly again = (): void => {
    clearTimeout(this.timer);
    this.abort?.abort();
    if (this.stopped) return;
    const abort = new AbortController();
    this.abort = abort;
    void (document.hidden && !this.local ? this.look(abort) : this.listen(abort));
  };

  private async look(abort: AbortController): Promise<void> {
    try {
      this.heard(await get<View>(`${this.address}/view`, abort.signal));
    } catch (problem) {
      this.failed(problem, abort);
      return;
    }
    if (!abort.signal.aborted) this.timer = setTimeout(this.again, UNSEEN);
  }

  private async listen(abort: AbortController): Promise<void> {
    let watch: ReturnType<typeof setTimeout> | undefined;
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => abort.abort("silence"), SILENCE);
    };
    try {
      alive();
      const answer = await call(`${this.address}/events`, { signal: abort.signal, headers: { Accept: "text/event-stream" } });
      this.open = true;
      const reader = answer.body!.getReader();
      const decoder = new TextDecoder();
      const events = new Events();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        alive();
        for (const { event, data } of events.push(decoder.decode(value, { stream: true }))) {
          if (event === "view") this.heard(JSON.parse(data) as View);
          // The stream stays open until the data are here: as long as it is, the process of the page waits.
          if (event === "ended") void this.listener.ended(JSON.parse(data) as End).finally(() => this.stop());
        }
      }
      this.failed(null, abort);
    } catch (problem) {
      this.failed(problem, abort);
    } finally {
      clearTimeout(watch);
      this.open = false;
    }
  }

  private heard(view: View): void {
    this.tries = 0;
    this.local = view.source === "run";
    this.listener.view(view);
  }

  private failed(problem: unknown, abort: AbortController): void {
    if (this.stopped || (abort.signal.aborted && abort.signal.reason !== "silence")) return;
    const why = problem === null ? "the server ended the connection" : said(problem);
    if (problem instanceof Refused && [401, 403, 404].includes(problem.status)) {
      this.listener.gone(why);
      if (problem.status === 401) return;
    } else {
      this.listener.lost(why);
    }
    this.timer = setTimeout(this.again, pause(this.tries));
    this.tries += 1;
  }
}
