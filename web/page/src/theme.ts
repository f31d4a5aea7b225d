/** Dark or light, before anything is painted: what the visitor chose, else what the system says. */

const chosen = localStorageText("volta-theme");
if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;

function localStorageText(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // Storage is refused: the system's choice holds.
  }
}
