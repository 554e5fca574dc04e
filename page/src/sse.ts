// A parser of server-sent events: EventSource cannot send the header with the token.

export interface Event {
  event: string;
  data: string;
}

/** Splits a stream of text into events, however the text is divided into pieces. */
export class Events {
  private rest = "";
  private event = "";
  private data: string[] = [];

  push(text: string): Event[] {
    const found: Event[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") this.end(found);
      else this.take(line);
    }
    return found;
  }

  private take(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.event = value;
    else if (field === "data") this.data.push(value);
  }

  private end(found: Event[]): void {
    if (this.data.length) found.push({ event: this.event || "message", data: this.data.join("\n") });
    this.event = "";
    this.data = [];
  }
}
