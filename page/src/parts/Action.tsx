// A button that makes the server do something: asks first where that cannot be undone, and says what came of it.
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
  const [told, setTold] = useState<{ text: string; bad: boolean } | null>(null);
  const dialog = useRef<HTMLDialogElement>(null);

  const run = async () => {
    dialog.current?.close();
    setBusy(true);
    setTold(null);
    try {
      setTold({ text: await act(), bad: false });
    } catch (problem) {
      setTold({ text: said(problem), bad: true });
    }
    setBusy(false);
  };

  return (
    <span class="action">
      <button type="button" class={danger ? "danger" : ""} disabled={busy} onClick={() => (confirm ? dialog.current?.showModal() : void run())}>
        {busy ? `${label} …` : label}
      </button>
      <span role="status" class={told?.bad ? "told bad" : "told"}>
        {told?.text}
      </span>
      {confirm && (
        <dialog ref={dialog} aria-label={label}>
          <p>{confirm}</p>
          <div class="choices">
            <button type="button" class={danger ? "danger" : "main"} onClick={() => void run()}>
              {label}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Leave it as it is
            </button>
          </div>
        </dialog>
      )}
    </span>
  );
}
