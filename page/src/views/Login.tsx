// The form for the token, if the server requires one.
import { useState } from "preact/hooks";
import { asked, keep } from "../calls";
import { again } from "../session";

export function Login() {
  const [given, setGiven] = useState("");
  return (
    <form
      class="login box"
      onSubmit={(event) => {
        event.preventDefault();
        keep(given.trim());
        again();
      }}
    >
      <h1>This server requires a token</h1>
      <p>
        The operator of the server makes one with <code>eligo token</code>; the scope <code>read</code> is enough to view this page.
      </p>
      <label for="token">Token</label>
      <input id="token" type="password" autocomplete="off" spellcheck={false} required value={given} onInput={(event) => setGiven(event.currentTarget.value)} />
      {asked.value && (
        <p class="message bad" role="alert">
          {asked.value}
        </p>
      )}
      <button type="submit" class="main">
        Show the page
      </button>
      <p class="quiet">The token is kept in this tab only, until you close it.</p>
    </form>
  );
}
