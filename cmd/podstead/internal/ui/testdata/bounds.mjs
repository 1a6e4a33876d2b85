// Checks the bounds of a terminal: node bounds.mjs DIRECTORY, which contains xterm.mjs and bounds.mjs of the page.

import assert from "node:assert/strict";

const { Terminal } = await import(`${process.argv[2]}/xterm.mjs`);
const { bound } = await import(`${process.argv[2]}/bounds.mjs`);

const accent = "\u0301";
const screen = { cols: 80, rows: 24, scrollback: 100, logLevel: "off" };

// show returns the lines of a terminal that gets messages, and the largest number of characters in a cell.
async function show(...messages) {
  const terminal = new Terminal(screen);
  bound(terminal);
  for (const message of messages) await new Promise((written) => terminal.write(message, written));
  const buffer = terminal.buffer.active;
  const lines = Array.from({ length: buffer.length }, (_, y) => buffer.getLine(y));
  const sizes = lines.flatMap((line) => Array.from({ length: line.length }, (_, x) => [...line.getCell(x).getChars()].length));
  return { text: lines.map((line) => line.translateToString(true)).join("\n").trimEnd(), largest: Math.max(...sizes) };
}

// What is not hostile is unchanged.
const family = "\u{1f468}\u200d\u{1f469}";
for (const text of [`e${accent}te${accent}`, `${family} 漢字`, `a${accent.repeat(16)}b`]) {
  assert.equal((await show(text)).text, text);
}
assert.equal((await show("ab\x1b[3b|\r\n\x1b[2Lc")).text, "abbbb|\nc");
assert.equal((await show("a\r\nb\r\nc\x1b[H\x1b[2M")).text, "c");

// The 17th accent is in a cell of its own, also if messages, or what xterm.js drops, divide accents or their bytes.
const bytes = new TextEncoder().encode(`a${accent.repeat(1000)}`);
const twice = (part) => `a${part.repeat(1000)}`;
for (const messages of [
  [bytes],
  Array.from(bytes, (byte) => Uint8Array.of(byte)),
  [Uint8Array.from({ length: 3000 }, (_, i) => (i === 0 ? 97 : [0xff, 0xcc, 0x81][i % 3]))],
  [twice("\u200d")],
  [twice(`${accent}\x7f`)],
  [twice(`${accent}\x1b[1<m`)],
  [twice(`${accent}\x1bX.\n\x9c`)],
  [`a${accent.repeat(16)}\x1b[79b${accent.repeat(1000)}`],
  [`\x1b[?7l${"x".repeat(100)}${accent.repeat(1000)}`],
]) {
  const { largest } = await show(...messages);
  assert.ok(largest > 1 && largest <= 17, `${largest} characters in a cell after ${JSON.stringify(messages[0]).slice(0, 80)}`);
}

// A sequence cannot repeat an operation for hours. Those of the second list have bounds of xterm.js.
for (const end of ["I", "L", "M", "S", "T", "Z", "b", ...["@", "A", "B", "C", "P", "X", " @", " A", "'}", "'~"]]) {
  for (const parameters of ["2147483647", "2147483647;1", "2147483647:1"]) await show(`x\x1b[${parameters}${end}`);
}
