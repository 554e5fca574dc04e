// Start of the page: one with its data inside shows them; one without follows its server.
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/parts.css";
import "./style/views.css";
import "./style/print.css";
import { keep } from "./calls";
import type { StaticPage } from "./documents";
import { linked, start as route } from "./route";
import { start as session } from "./session";
import { start as theme } from "./theme";
import { App } from "./views/App";
import { Static } from "./views/Static";

/** Stores the token of a link, and removes it from the address. */
function takeToken(): void {
  const link = linked(location.hash);
  if (!link) return;
  keep(link.token);
  history.replaceState(null, "", link.workflow ? `#/${encodeURIComponent(link.workflow)}` : location.pathname);
}

function begin(): void {
  const place = document.getElementById("page") ?? document.body.appendChild(document.createElement("div"));
  const written = document.getElementById("data")?.textContent;
  theme();
  if (!written) takeToken();
  route(!written);
  if (written) {
    render(<Static page={JSON.parse(written) as StaticPage} />, place);
  } else {
    session();
    render(<App />, place);
  }
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
