// Control sequences of terminals in the output of tasks: colours are drawn, everything else is left out.

export interface Piece {
  text: string;
  /** Classes of the style: ansi-1 (red) to ansi-7, ansi-bold, ansi-faint. */
  look: string;
}

const SEQUENCE = /\u001b(?:\[([0-9;:?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f]/g;

/** A text in pieces of one style each. */
export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let [colour, bold, faint, from] = ["", false, false, 0];
  const add = (part: string) => {
    if (part) found.push({ text: part, look: [colour, bold && "ansi-bold", faint && "ansi-faint"].filter(Boolean).join(" ") });
  };
  for (const match of text.matchAll(SEQUENCE)) {
    add(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] !== "m") continue;
    const codes = (match[1] || "0").split(/[;:]/).map(Number);
    // Colours of 256 or more are left out with their parameters.
    for (const code of codes[0] === 38 || codes[0] === 48 ? [] : codes) {
      if (code === 0) [colour, bold, faint] = ["", false, false];
      else if (code === 1) bold = true;
      else if (code === 2) faint = true;
      else if (code === 22) [bold, faint] = [false, false];
      else if (code === 39) colour = "";
      else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour = `ansi-${code % 10}`;
    }
  }
  add(text.slice(from));
  return found;
}

/** A text without control sequences. */
export const plain = (text: string): string => text.replace(SEQUENCE, "");
