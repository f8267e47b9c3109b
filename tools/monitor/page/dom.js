// Makes and updates elements. Texts become text nodes, never markup, so no name can add an element.

// Format controls, such as U+202E, would make a name read as another one.
const kFormatControls = /[\u0080-\u009f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g;
const shown = (child) => (typeof child === "string" ? child.replace(kFormatControls, " ") : child);

function make(namespace, name, attributes, children) {
  const element = document.createElementNS(namespace, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.map(shown));
  return element;
}

export function el(name, attributes = {}, ...children) {
  return make("http://www.w3.org/1999/xhtml", name, attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return make("http://www.w3.org/2000/svg", name, attributes, children);
}

export const byId = (id) => document.getElementById(id);

// An unchanged text is left alone: a selection in it and a screen reader's place survive.
export function setText(element, text) {
  const clean = shown(text);
  if (element.textContent !== clean) element.textContent = clean;
}

export function show(id, isShown, text) {
  const element = byId(id);
  element.hidden = !isShown;
  if (text !== undefined) setText(element, text);
}

// Below a list that is cut: "The newest 50 of 132 revocations." Empty and hidden when all are shown, since
// the list names it as its description.
export function showPart(id, missing, text) {
  show(id, missing > 0, missing > 0 ? text : "");
}

// A chart: an image for a screen reader, whose title and description say what it shows.
export function drawing(container, width, height, title, description, children) {
  const id = container.id;
  container.replaceChildren(
    svg(
      "svg",
      { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-labelledby": `${id}-name ${id}-says` },
      svg("title", { id: `${id}-name` }, title),
      svg("desc", { id: `${id}-says` }, description),
      ...children,
    ),
  );
}

// The width of a chart; of a phone while the chart is not laid out yet.
export const widthOf = (container) => Math.max(240, Math.floor(container.clientWidth) || 320);

export function legend(container, entries) {
  const text = entries.map((each) => each.name).join("\n");
  if (container.dataset.text === text) return;
  container.dataset.text = text;
  container.replaceChildren(...entries.map((each) => el("span", { class: each.look }, each.name)));
}

const kColours = 7;
const looks = new Map();

// The same colour for a name in every chart. The first seven names, the busiest, differ.
export function colourOf(name) {
  if (!looks.has(name)) looks.set(name, `c${looks.size % kColours}`);
  return looks.get(name);
}

function fillCell(cell, content) {
  const { text = "", look = "", share, button } = typeof content === "object" ? content : { text: String(content) };
  if (cell.className !== look) cell.className = look;
  if (button) {
    const made = cell.querySelector("button") ?? cell.appendChild(el("button", { type: "button" }));
    setText(made, text);
    made.setAttribute("aria-pressed", String(button.isPressed));
    made.onclick = button.press;
  } else if (share !== undefined) {
    if (!cell.firstChild) cell.append("", el("meter", { min: 0, max: 1, "aria-hidden": "true" }));
    cell.firstChild.data = `${text} `;
    cell.lastChild.value = share;
  } else {
    setText(cell, text);
  }
}

// Shows `items`, each {key, cells}, in this order. A row keeps its elements while its key stays, so the
// focus inside it survives. The first cell names the row.
export function fillTable(id, items) {
  const body = byId(id).tBodies[0];
  const known = new Map([...body.rows].map((row) => [row.dataset.key, row]));
  items.forEach(({ key, cells }, index) => {
    let row = known.get(key);
    known.delete(key);
    if (!row) {
      row = el("tr", {}, ...cells.map((_, i) => (i === 0 ? el("th", { scope: "row" }) : el("td"))));
      row.dataset.key = key;
    }
    cells.forEach((content, i) => fillCell(row.cells[i], content));
    if (body.rows[index] !== row) body.insertBefore(row, body.rows[index] ?? null);
  });
  for (const row of known.values()) row.remove();
}
