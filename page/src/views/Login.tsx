// Asks for a token where the server wants one.
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
        Whoever runs it makes one with <code>eligo token</code>; one that may read is enough to look.
      </p>
      <label for="token">Token</label>
      <input id="token" type="password" autocomplete="off" spellcheck={false} required value={given} onInput={(event) => setGiven(event.currentTarget.value)} />
      {asked.value && (
        <p class="told bad" role="alert">
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
