// The chosen theme, before anything is drawn. "auto" leaves it to the system.
"use strict";
try {
  const theme = localStorage.getItem("tenure.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage here: the system's choice it is.
}
