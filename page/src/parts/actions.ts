// The actions on the server; each returns a message for the reader.
import { post } from "../calls";
import { many } from "../format";
import { address } from "../session";

export async function retry(workflow: string, tasks: string[] | null): Promise<string> {
  const { count } = await post<{ count?: number }>(`${address(workflow)}/retry`, { tasks });
  return count === undefined ? "Will be retried." : `${many(count, "task")} will be retried.`;
}

export async function release(workflow: string, tasks: string[]): Promise<string> {
  const { count } = await post<{ count?: number }>(`${address(workflow)}/release`, { tasks });
  return count ? "Released: another client gets it." : "No client is running it.";
}

export async function cancel(workflow: string): Promise<string> {
  await post(`${address(workflow)}/cancel`);
  return "Cancelled.";
}

export async function pause(workflow: string): Promise<string> {
  await post(`${address(workflow)}/pause`);
  return "Paused: running tasks finish.";
}

export async function resume(workflow: string): Promise<string> {
  await post(`${address(workflow)}/resume`);
  return "Resumed.";
}

export async function resize(workflow: string, workers: number): Promise<string> {
  await post(`${address(workflow)}/workers`, { workers });
  return `At most ${many(workers, "task")} at once.`;
}

export async function approve(client: string): Promise<string> {
  await post(`/v1/clients/${encodeURIComponent(client)}/approve`);
  return "Approved.";
}

export async function revoke(client: string): Promise<string> {
  await post(`/v1/clients/${encodeURIComponent(client)}/revoke`);
  return "Revoked.";
}
