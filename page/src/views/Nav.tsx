// The sections of a page.
import { number } from "../format";
import { href, route } from "../route";

export interface Entry {
  section: string;
  words: string;
  badge?: number;
}

export function Nav({ entries }: { entries: Entry[] }) {
  return (
    <nav class="nav" aria-label="Sections">
      <ul>
        {entries.map(({ section, words, badge }) => (
          <li key={section}>
            <a href={href({ section })} aria-current={route.value.section === section ? "page" : undefined}>
              {words}
              {!!badge && <span class="badge">{number(badge)}</span>}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
