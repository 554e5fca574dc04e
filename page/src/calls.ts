// Calls to the server that the page came from; the token is kept for this tab only.
import { signal } from "@preact/signals";

const KEPT = "eligo-token";

/** The server's message when it required a token; null if it requires none. */
export const asked = signal<string | null>(null);

export class Refused extends Error {
  constructor(
    readonly status: number,
    sentence: string,
  ) {
    super(sentence);
  }
}

export function token(): string {
  try {
    return sessionStorage.getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}

export function keep(given: string): void {
  if (given) sessionStorage.setItem(KEPT, given);
  else sessionStorage.removeItem(KEPT);
  asked.value = null;
}

async function sentence(answer: Response): Promise<string> {
  try {
    const said = (await answer.json()) as { error?: unknown };
    if (typeof said.error === "string") return said.error;
  } catch {
    // The answer is not the server's: a proxy may have sent it.
  }
  return `the server answered ${answer.status}`;
}

export async function call(address: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  const mine = token();
  if (mine) headers.set("Authorization", `Bearer ${mine}`);
  const answer = await fetch(address, { ...options, headers, cache: "no-store", credentials: "same-origin" });
  if (answer.ok) return answer;
  const said = await sentence(answer);
  if (answer.status === 401) asked.value = mine ? said : "";
  throw new Refused(answer.status, said);
}

export async function get<T>(address: string, signal?: AbortSignal): Promise<T> {
  const answer = await call(address, signal ? { signal } : {});
  return (await answer.json()) as T;
}

export async function post<T>(address: string, body: unknown = {}): Promise<T> {
  const key = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const answer = await call(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", "Idempotency-Key": key },
    body: JSON.stringify(body),
  });
  return (await answer.json()) as T;
}

/** What went wrong, as one sentence. */
export function said(problem: unknown): string {
  if (problem instanceof Refused) return problem.message;
  return "the server cannot be reached";
}

export function query(values: Record<string, string | number | boolean | null | undefined>): string {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "" && value !== false) pairs.set(name, String(value));
  }
  const text = pairs.toString();
  return text ? `?${text}` : "";
}
