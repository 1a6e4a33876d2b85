// Bounds of what the output of a container can do to the page: xterm.js has none for these.

const maxJoined = 16; // zero-width characters in a cell after the first character, such as accents

// bound sets the bounds of a terminal.
export function bound(terminal) {
  const unicode = terminal._core.unicodeService; // the public interface has no widths
  const widths = unicode._activeProvider;
  unicode.register({
    version: "bounded",
    wcwidth: (character) => widths.wcwidth(character),
    // The properties of a character are, from the lowest bit: that it joins the cell before, two bits of its width, and what the provider
    // needs at the next character: here how many have joined. xterm.js passes 0 as the properties before if there is nothing to join.
    charProperties(character, before) {
      const properties = widths.charProperties(character, before);
      if (!(properties & 1)) return properties;
      const joined = (before >> 3) + 1;
      return joined > maxJoined ? 1 << 1 : (joined << 3) | properties; // too many: in a cell of its own
    },
  });
  unicode.activeVersion = "bounded";
  // Control sequences that repeat an operation are ignored if their count is larger than the screen: true means that they are handled.
  for (const final of "LMST") terminal.parser.registerCsiHandler({ final }, ([count]) => count > terminal.rows); // lines
  for (const final of "IZb") terminal.parser.registerCsiHandler({ final }, ([count]) => count > terminal.cols); // tabs and characters
}
