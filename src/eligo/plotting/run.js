const rows = JSON.parse(document.getElementById("data").textContent), most = 500;
const body = document.querySelector("#tasks tbody"), box = document.getElementById("find"), said = document.getElementById("said");
let by = -1, down = false;
function show() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = rows.filter(row => words.every(word => row.some(cell => String(cell ?? "").toLowerCase().includes(word))));
  if (by >= 0) found.sort((a, b) => (down ? -1 : 1) * (a[by] === b[by] ? 0 : a[by] === null ? 1 : b[by] === null ? -1 :
    a[by] < b[by] ? -1 : 1));
  body.textContent = "";
  for (const row of found.slice(0, most)) {
    const line = body.insertRow();
    row.forEach((cell, place) => {
      const at = line.insertCell();
      at.textContent = cell === null ? "" : typeof cell === "number" ? cell.toLocaleString("en") : cell;
      if (place > 2) at.className = "number";
    });
  }
  said.textContent = found.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " tasks" +
    (found.length > most ? ", of which the first " + most + " are shown: write something to find others" : "");
}
document.querySelectorAll("#tasks th").forEach((head, place) => head.onclick = () => {
  down = by === place && !down;
  by = place;
  show();
});
box.oninput = show;
show();
