// Markdown of agents and people. It becomes elements from a fixed list, whose contents are text: markup in the text is
// shown as it is written, links lead to web pages only, and pictures are shown as links, so that nothing is loaded.
import { html, useMemo, useState } from "../html.js";
import { number } from "../format.js";

const LONG = 4000; // characters that are shown at first
const DEEP = 4; // levels of lists and quotes; deeper ones are text

export function Markdown({ text }) {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && text.length > LONG;
  const blocks = useMemo(() => blocksOf((isCut ? text.slice(0, LONG) : text).split(/\r\n|\r|\n/), 0), [text, isCut]);
  return html`<div class="markdown">${blocks}</div>
    ${isCut && html`<button class="button small" onClick=${() => setWhole(true)}>
      Show all ${number(text.length)} characters</button>`}`;
}

const FENCE = /^ {0,3}(```+|~~~+)(.*)$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)]) +(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function blocksOf(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const [block, next] = blockAt(lines, at, depth);
    if (block !== null) blocks.push(block);
    at = next;
  }
  return blocks;
}

// One block and the line after it.
function blockAt(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence[1]);
  const heading = HEADING.exec(line);
  if (heading) return [html`<p class=${`heading h${heading[1].length}`}>${inline(heading[2])}</p>`, at + 1];
  if (RULE.test(line)) return [html`<hr />`, at + 1];
  if (depth < DEEP && QUOTE.test(line)) return quote(lines, at, depth);
  if (depth < DEEP && ITEM.test(line)) return list(lines, at, depth);
  if (line.includes("|") && DIVIDER.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) return table(lines, at);
  return paragraph(lines, at);
}

function fenced(lines, at, mark) {
  let end = at + 1;
  while (end < lines.length && !(lines[end].trim().startsWith(mark) && !lines[end].trim().slice(mark.length).trim())) end += 1;
  return [html`<pre tabindex="0">${lines.slice(at + 1, end).join("\n")}</pre>`, end + 1];
}

function quote(lines, at, depth) {
  const inner = [];
  while (at < lines.length && QUOTE.test(lines[at])) inner.push(QUOTE.exec(lines[at++])[1]);
  return [html`<blockquote>${blocksOf(inner, depth + 1)}</blockquote>`, at];
}

function list(lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const isNumbered = /\d/.test(mark);
  const items = [];
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (item && item[1].length <= indent.length && /\d/.test(item[2]) === isNumbered) {
      items.push([item[3]]);
    } else if (lines[at].trim() && (item || /^ {2,}/.test(lines[at])) && items.length) {
      items.at(-1).push(lines[at].replace(new RegExp(`^ {0,${indent.length + 4}}`), (spaces) => (item ? spaces.slice(indent.length + 2) : "")));
    } else if (!lines[at].trim() && /^( {2,}|\s*([-*+]|\d+[.)]) )/.test(lines[at + 1] ?? "")) {
      items.at(-1).push("");
    } else {
      break;
    }
    at += 1;
  }
  const drawn = items.map((inner) => html`<li>${inner.length === 1 ? inline(inner[0]) : blocksOf(inner, depth + 1)}</li>`);
  return [isNumbered ? html`<ol start=${parseInt(mark, 10)}>${drawn}</ol>` : html`<ul>${drawn}</ul>`, at];
}

function table(lines, at) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim()));
  const head = cells(lines[at]);
  const rows = [];
  for (at += 2; at < lines.length && lines[at].includes("|"); at += 1) rows.push(cells(lines[at]));
  return [html`<div class="scroll" tabindex="0" role="region" aria-label="Table"><table class="table">
    <thead><tr>${head.map((cell) => html`<th>${cell}</th>`)}</tr></thead>
    <tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
  </table></div>`, at];
}

// A line break of the text stays one: agents write for terminals.
function paragraph(lines, at) {
  const inner = [lines[at++]];
  while (at < lines.length && lines[at].trim() && !startsBlock(lines[at])) inner.push(lines[at++]);
  return [html`<p>${inline(inner.join("\n"))}</p>`, at];
}

const startsBlock = (line) => [FENCE, HEADING, QUOTE, ITEM].some((start) => start.test(line));

const INLINE = new RegExp([
  "(`{1,5})([^`]|[^`][^]{0,2000}?[^`])\\1(?!`)", // code: 1, 2
  "!?\\[([^\\]\\n]{1,500})\\]\\(([^()\\s]{1,2000})\\)", // a link or picture: 3, 4
  "\\*\\*(?=\\S)([^]{0,300}?\\S)\\*\\*", // strong: 5
  "(?<![\\w*])[*](?=[^\\s*])([^*]{0,1000}?[^\\s*])[*](?![\\w*])|(?<!\\w)_(?=[^\\s_])([^_]{0,1000}?[^\\s_])_(?!\\w)", // emphasis: 6, 7
  "(https?://[^\\s<>\"'`)\\]]*[^\\s<>\"'`)\\].,;:!?])", // an address: 8
].join("|"), "g");

function inline(text, depth = 0) {
  if (depth > DEEP) return [text];
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(INLINE)) {
    parts.push(text.slice(from, found.index), element(found, depth));
    from = found.index + found[0].length;
  }
  parts.push(text.slice(from));
  return parts.filter((part) => part !== "");
}

function element([whole, , code, label, target, strong, star, underscore, url], depth) {
  if (code !== undefined) return html`<code>${code}</code>`;
  if (label !== undefined) return isWeb(target) ? link(target, label) : whole;
  if (strong !== undefined) return html`<strong>${inline(strong, depth + 1)}</strong>`;
  if (url !== undefined) return isWeb(url) ? link(url, url) : url;
  return html`<em>${inline(star ?? underscore, depth + 1)}</em>`;
}

// No javascript:, no data:, and no path of this server that somebody else has chosen.
function isWeb(target) {
  try {
    return ["http:", "https:", "mailto:"].includes(new URL(target).protocol);
  } catch {
    return false;
  }
}

const link = (target, text) => html`<a class="text" href=${target} target="_blank" rel="noopener noreferrer nofollow">${text}</a>`;
