// A document that is fetched repeatedly during a run, never twice at the same time.
import { useEffect, useRef, useState } from "preact/hooks";
import { said } from "../calls";

export interface Latest<T> {
  value: T | null;
  problem: string;
}

const KEPT = 40;
const kept = new Map<string, unknown>();

/** Caches an answer, so that a view does not start empty when it is shown again or printed. */
export function remember(key: string, value: unknown): void {
  kept.delete(key);
  kept.set(key, value);
  if (kept.size > KEPT) kept.delete(kept.keys().next().value!);
}

/**
 * `key` identifies the document: when it changes, the document is fetched at once; when only `stamp` changes,
 * at most once in `pause` milliseconds. A late answer for an old key is dropped.
 */
export function useLatest<T>(ask: () => Promise<T>, key: string, stamp: unknown, pause = 2000): Latest<T> {
  const [state, setState] = useState<Latest<T> & { key: string }>({ value: (kept.get(key) as T) ?? null, problem: "", key });
  const last = useRef({ key: "", at: 0, number: 0 });
  const latest = useRef(ask);
  latest.current = ask;

  useEffect(() => {
    const anew = last.current.key !== key;
    const wait = anew ? 0 : Math.max(0, last.current.at + pause - performance.now());
    const timer = setTimeout(async () => {
      const number = ++last.current.number;
      Object.assign(last.current, { key, at: performance.now() });
      try {
        const value = await latest.current();
        remember(key, value);
        if (number === last.current.number) setState({ value, problem: "", key });
      } catch (problem) {
        if (number === last.current.number) setState((now) => ({ ...now, problem: said(problem) }));
      }
    }, wait);
    return () => clearTimeout(timer);
  }, [key, stamp]);

  return state;
}
