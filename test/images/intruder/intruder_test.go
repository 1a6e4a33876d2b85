package main

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

// TestOutcome: the outcome of an attempt is a word, an error its name.
func TestOutcome(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ attempt, want string }{
		{"", "no such attempt"},
		{"nonsense", "no such attempt"},
		{"read", "want 1 words"},
		{"read " + file, "4 bytes"},
		{"read " + file + "/x", "ENOTDIR"},
		{"read " + dir + "/none", "ENOENT"},
		{"write " + file, "done"},
		{"list " + dir, "1 entries"},
		{"truncate " + file + " x", `strconv.ParseInt: parsing "x": invalid syntax`},
		{"fill " + dir + "/big 1", "done"},
		{"inodes " + dir + "/many 10", "done"},
		{"nest " + dir + "/deep 20", "done"},
		{"setuid " + dir + "/suid", "urwxr-xr-x"},
		{"find " + dir + " suid", dir + "/suid"},
		{"find " + dir + " none", "nothing"},
		{"above " + file, "found"},
	} {
		if got := outcome(test.attempt); got != test.want {
			t.Errorf("%s: %s, want %s", test.attempt, got, test.want)
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "many"))
	if err != nil || len(entries) != 10 {
		t.Errorf("%d files, %v", len(entries), err)
	}
}

// TestPackets: packets have the checksums that a receiver verifies.
func TestPackets(t *testing.T) {
	v4 := netip.MustParseAddr("192.0.2.1")
	p := packet(v4, netip.MustParseAddr("192.0.2.2"), 7, "text")
	if got := checksum(p[:20]); got != 0 {
		t.Errorf("checksum over the header: %#x, want 0", got)
	}
	if length := binary.BigEndian.Uint16(p[2:]); int(length) != len(p) || string(p[28:]) != "text" {
		t.Errorf("packet % x has length field %d", p, length)
	}
	from, to := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	p = packet6(from, to, []byte{136, 0, 0, 0, 0x60, 0, 0, 0})
	pseudo := append(append(from.AsSlice(), to.AsSlice()...), 0, 0, 0, 8, 0, 0, 0, 58)
	if got := checksum(append(pseudo, p[40:]...)); got != 0 {
		t.Errorf("checksum over the message: %#x, want 0", got)
	}
}
