package crilog

import (
	"encoding/binary"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// parse is the reverse of journald.Append.
func parse(t *testing.T, entry string) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for entry != "" {
		line, rest, _ := strings.Cut(entry, "\n")
		name, value, short := strings.Cut(line, "=")
		if !short {
			n := int(binary.LittleEndian.Uint64([]byte(rest)))
			value, rest = rest[8:8+n], rest[8+n+1:]
		}
		if _, twice := fields[name]; twice {
			t.Errorf("field %s twice", name)
		}
		fields[name], entry = value, rest
	}
	return fields
}

// TestFields checks the fields of all kinds of lines, and that the log has the same lines.
func TestFields(t *testing.T) {
	dir := t.TempDir()
	socket := filepath.Join(dir, "socket")
	server, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	f := openFed(t, Options{Rate: Rate{Lines: 5}})
	log := f.o.Path
	id := strings.Repeat("0123456789abcdef", 4)
	f.CopyTo(NewJournal(JournalFields{ID: id, Image: "example.com/app:1", Pod: "web", UID: "u", Container: "app", Restarts: "2"}, socket))
	long := strings.Repeat("l", 16<<10)
	f.put(Stdout, "one\n\x00\xff\x1b[m\n\n"+long+"tail\n")
	f.put(Stderr, "dropped 1\ndropped 2\n")
	f.finish()
	common := map[string]string{
		"SYSLOG_IDENTIFIER": "web-app", "CONTAINER_NAME": "web-app", "CONTAINER_TAG": "web-app", "CONTAINER_ID": id[:12],
		"CONTAINER_ID_FULL": id,
		"IMAGE_NAME":        "example.com/app:1", "POD": "web", "POD_UID": "u", "CONTAINER": "app", "PODSTEAD_RESTARTS": "2",
		"OBJECT_SYSTEMD_UNIT": "podstead@web.service",
	}
	type line struct{ priority, stream, partial, message string }
	for i, want := range []line{
		{"6", "stdout", "", "one"},
		{"6", "stdout", "", "\x00\xff\x1b[m"},
		{"6", "stdout", "", ""},
		{"6", "stdout", "true", long},
		{"6", "stdout", "", "tail"},
		{"3", "stderr", "", "podstead: 2 lines dropped in 1s (rate limit 5 lines/s)"},
	} {
		var buf [64 << 10]byte
		if err := server.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := server.Read(buf[:])
		if err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		got := parse(t, string(buf[:n]))
		if _, err := time.Parse(time.RFC3339Nano, got["SYSLOG_TIMESTAMP"]); err != nil {
			t.Error(err)
		}
		delete(got, "SYSLOG_TIMESTAMP")
		expected := map[string]string{"PRIORITY": want.priority, "PODSTEAD_STREAM": want.stream, "MESSAGE": want.message}
		if want.partial != "" {
			expected["CONTAINER_PARTIAL_MESSAGE"] = want.partial
		}
		maps.Copy(expected, common)
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("line %d (-want +got)\n%s", i, diff)
		}
	}
	lines := 0
	for _, err := range Read(t.Context(), log, ReadOptions{}) {
		if lines++; err != nil {
			t.Fatal(err)
		}
	}
	if lines < 5 {
		t.Errorf("%d lines in the log", lines)
	}
}

// TestNoJournald checks that a container without journald is not blocked, and that its log reports what the journal does not have.
func TestNoJournald(t *testing.T) {
	dir := t.TempDir()
	f := openFed(t, Options{})
	f.CopyTo(NewJournal(JournalFields{Pod: "web", Container: "app"}, filepath.Join(dir, "socket")))
	f.put(Stdout, strings.Repeat("a line\n", 20000))
	f.finish()
	lines, last := 0, ""
	for e, err := range Read(t.Context(), f.o.Path, ReadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		lines, last = lines+1, string(e.Text)
	}
	const want = "podstead: 20000 lines of the log are not in the journal, journald did not accept them in time"
	if lines != 20001 || last != want {
		t.Errorf("%d lines, the last is %q", lines, last)
	}
}
