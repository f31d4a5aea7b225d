/** Elements from a tag, attributes and children. */

export type Child = Node | string | number | null | undefined | false;

type Listeners = { [K in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[K]) => void };

export interface Attributes {
  on?: Listeners;
  [attribute: string]: string | number | boolean | undefined | Listeners;
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value as Listeners)) {
        element.addEventListener(event, listener as EventListener);
      }
    } else if (value === true) {
      element.setAttribute(name, "");
    } else if (value !== false && value !== undefined) {
      element.setAttribute(name, String(value));
    }
  }
  append(element, children);
  return element;
}

function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Puts these children in place of those that an element has. */
export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** Writes a text only where it differs, so that nothing is laid out again for nothing. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Drawings of buttons: 16 by 16, in the colour of the text. */
const ICONS = {
  play: "M5 3.2v9.600l7.600-4.800z",
  pause: "M4.500 3h2.500v10h-2.500zM9 3h2.500v10h-2.500z",
  step: "M3.500 3.200v9.600l6.500-4.800zM11 3h2v10h-2z",
  stop: "M4 4h8v8h-8z",
  close: "M4.200 3.200 8 7l3.800-3.800 1 1L9 8l3.800 3.800-1 1L8 9l-3.800 3.800-1-1L7 8 3.200 4.200z",
  more: "M3 6.800h2.400v2.400H3zM6.800 6.800h2.400v2.400H6.800zM10.600 6.800H13v2.400h-2.400z",
  sun: "M8 4.800a3.200 3.200 0 1 1 0 6.400 3.200 3.200 0 0 1 0-6.400zM7.300 1h1.400v2.200H7.300zM7.300 12.800h1.400V15H7.300zM1 7.300h2.200v1.400H1zM12.800 7.300H15v1.400h-2.200zM2.600 3.600l1-1 1.500 1.600-1 1zM10.900 11.900l1-1 1.500 1.500-1 1zM2.600 12.400l1.500-1.500 1 1-1.500 1.500zM10.900 4.100l1.500-1.500 1 1-1.500 1.500z",
  moon: "M6.200 1.800a6.400 6.400 0 1 0 8 8A5.600 5.600 0 0 1 6.200 1.800z",
  download: "M7.300 2h1.400v6.200l2.200-2.200 1 1L8 10.900 4.100 7l1-1 2.200 2.200zM2.500 12.200h11v1.500h-11z",
  link: "M6.900 9.100a.7.7 0 0 1 0-1l2.200-2.200a.7.7 0 1 1 1 1L7.900 9.100a.7.7 0 0 1-1 0zM8.300 4.300 9.700 2.900a2.900 2.900 0 0 1 4.100 4.100l-1.400 1.400-1-1 1.400-1.400a1.500 1.500 0 0 0-2.100-2.100L9.300 5.300zM7.700 11.700l-1.400 1.400a2.900 2.900 0 0 1-4.100-4.100l1.400-1.400 1 1-1.400 1.400a1.500 1.500 0 0 0 2.100 2.100l1.400-1.400z",
} as const;

export type IconName = keyof typeof ICONS;

export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/** A button that stays `aria-disabled` and cannot be clicked again while its work is under way. */
export function button(
  attributes: Attributes & { icon?: IconName; class?: string },
  label: string,
  work: () => void | Promise<void>,
): HTMLButtonElement {
  const { icon: drawing, ...rest } = attributes;
  const element = h("button", { type: "button", ...rest }, drawing ? icon(drawing) : null, h("span", {}, label));
  let busy = false;
  element.addEventListener("click", () => {
    if (busy || element.disabled) return;
    const done = work();
    if (!(done instanceof Promise)) return;
    busy = true;
    element.setAttribute("aria-busy", "true");
    void done.finally(() => {
      busy = false;
      element.removeAttribute("aria-busy");
    });
  });
  return element;
}
