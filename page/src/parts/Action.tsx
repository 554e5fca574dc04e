// A button for an action on the server: it asks for confirmation if the action cannot be undone, and shows the result.
import { useRef, useState } from "preact/hooks";
import { said } from "../calls";

interface Words {
  label: string;
  act: () => Promise<string>;
  confirm?: string;
  danger?: boolean;
}

export function Action({ label, act, confirm, danger }: Words) {
  const [busy, setBusy] = useState(false);
  const [message, setMessage] = useState<{ text: string; bad: boolean } | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);

  const run = async () => {
    dialog.current?.close();
    setBusy(true);
    setMessage(null);
    try {
      setMessage({ text: await act(), bad: false });
    } catch (problem) {
      setMessage({ text: said(problem), bad: true });
    }
    setBusy(false);
  };

  return (
    <span class="action">
      <button type="button" class={danger ? "danger" : ""} disabled={busy} onClick={() => (confirm ? dialog.current?.showModal() : void run())}>
        {busy ? `${label} …` : label}
      </button>
      <span role="status" class={message?.bad ? "message bad" : "message"}>
        {message?.text}
      </span>
      {confirm && (
        <dialog ref={dialog} aria-label={label}>
          <p>{confirm}</p>
          <div class="choices">
            <button type="button" class={danger ? "danger" : "main"} onClick={() => void run()}>
              {label}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Do nothing
            </button>
          </div>
        </dialog>
      )}
    </span>
  );
}
