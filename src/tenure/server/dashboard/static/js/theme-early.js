// Applies the chosen theme before the first paint. "auto" uses the system's theme.
"use strict";
try {
  const theme = localStorage.getItem("tenure.theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // No storage: use the system's theme.
}
