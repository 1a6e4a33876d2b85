package daemon

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/supervisor/event"
)

const catalog = "../../packaging/podstead.catalog"

// TestCatalog checks that journalctl accepts the catalog, and that the variables in it are fields of events.
func TestCatalog(t *testing.T) {
	text, err := os.ReadFile(catalog)
	if err != nil {
		t.Fatal(err)
	}
	entries := bytes.Count(text, []byte("\n-- "))
	for _, m := range regexp.MustCompile(`@(\w+)@`).FindAllSubmatch(text, -1) {
		if !slices.Contains([]string{"POD", "CONTAINER", "REASON"}, string(m[1])) {
			t.Errorf("the catalog has the variable %s", m[0])
		}
	}
	if _, err := exec.LookPath("journalctl"); err != nil {
		return // TestJournald of test/systemd runs it
	}
	root := t.TempDir()
	for _, dir := range []string{"usr/lib/systemd/catalog", "var/lib/systemd/catalog"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "usr/lib/systemd/catalog/podstead.catalog"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--update-catalog"}, {"--list-catalog"}} {
		out, err := exec.CommandContext(t.Context(), "journalctl", append(args, "--root="+root)...).CombinedOutput()
		if err != nil {
			t.Fatalf("journalctl %v: %v\n%s", args, err, out)
		}
		if args[0] == "--list-catalog" {
			if n := bytes.Count(out, []byte("podstead: ")); n != entries {
				t.Errorf("journalctl knows %d of %d entries\n%s", n, entries, out)
			}
		}
	}
}

// TestSend checks the fields of events, and that events of earlier runs are not sent again.
func TestSend(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "socket")
	server, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	r := event.NewRing(10)
	r.Restore([]event.Event{{Seq: 5, Kind: api.EventPodAccepted, Pod: "earlier"}})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e := event.New(api.EventContainerBackOff, at, "web", event.Fields{"container": "app", "pod": "web_default(u)", "delay": "40s"})
	e.UID, e.Container, e.Attempt, e.Cause = "u", "app", 3, 7
	r.Add(e)
	r.Add(event.New(api.EventConfigReloaded, at, "", event.Fields{"changes": "a\nb"}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what remains is sent
	sendToJournal(ctx, r, socket)
	for _, want := range []string{
		"PRIORITY=4\nPOD=web\nOBJECT_SYSTEMD_UNIT=podstead@web.service\nSYSLOG_IDENTIFIER=podstead\nSYSLOG_TIMESTAMP=2026-01-02T03:04:05Z\nMESSAGE_ID=" +
			api.EventContainerBackOff.MessageID() + "\nPOD_UID=u\nCONTAINER=app\nREASON=BackOff\n" +
			"PODSTEAD_EVENT=ContainerBackOff\nPODSTEAD_TYPE=Warning\nPODSTEAD_SEQ=1000000001\nPODSTEAD_CAUSE=7\nPODSTEAD_ATTEMPT=3\n" +
			"MESSAGE=web/app: Back-off restarting failed container app in pod web_default(u) for 40s\n",
		"PRIORITY=6\nSYSLOG_IDENTIFIER=podstead\nSYSLOG_TIMESTAMP=2026-01-02T03:04:05Z\nMESSAGE_ID=" +
			api.EventConfigReloaded.MessageID() + "\nREASON=ConfigReloaded\n" +
			"PODSTEAD_EVENT=ConfigReloaded\nPODSTEAD_TYPE=Normal\nPODSTEAD_SEQ=1000000002\nMESSAGE\n" +
			"\x1b\x00\x00\x00\x00\x00\x00\x00Configuration reloaded, a\nb\n",
	} {
		var buf [4096]byte
		if err := server.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := server.Read(buf[:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(buf[:n]), "\n")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

// TestSubject checks the beginnings of messages.
func TestSubject(t *testing.T) {
	for want, e := range map[string]event.Event{"": {}, "web: ": {Pod: "web"}, "web/app: ": {Pod: "web", Container: "app"}} {
		if got := subject(&e); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
