package rootless

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/bootid"
)

func TestIDsOf(t *testing.T) {
	const text = "root:10:5\nada:100000:65536\n# comment\n1000:300000:10\nada:bad:1\nada:1:-1\nadam:5:5\nada:200000:1\n"
	got := idsOf(text, "ada", 1000)
	if want := []idRange{{100000, 65536}, {300000, 10}, {200000, 1}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := idsOf("", "ada", 1000); got != nil {
		t.Errorf("got %v of an empty file", got)
	}
}

// TestMapping tests that the user is root and that its ranges follow without a gap.
func TestMapping(t *testing.T) {
	got := strings.Join(mapping(1000, []idRange{{100000, 65536}, {300000, 10}}), " ")
	if want := "0 1000 1 1 100000 65536 65537 300000 10"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFreeRange(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "100000:65536",
		"ada:100000:65536\n":                "165536:65536",
		"ada:165536:65536\nbob:100000:10\n": "231072:65536",
	} {
		if got := freeRange(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// namespaces returns namespaces with directories of their own.
func namespaces(t *testing.T) *Namespaces {
	t.Helper()
	return &Namespaces{StateDir: t.TempDir(), RunDir: t.TempDir()}
}

// TestRecord tests that processes of an earlier boot, and those of a damaged record, are not used.
func TestRecord(t *testing.T) {
	n := namespaces(t)
	boot, err := bootid.Read()
	if err != nil {
		t.Fatal(err)
	}
	if r, err := n.read(); err != nil || r != (names{BootID: boot}) {
		t.Errorf("without a record: %v, %v", r, err)
	}
	want := names{BootID: boot, Holder: process{5, 6}, Pasta: process{7, 8}}
	if err := n.write(want); err != nil {
		t.Fatal(err)
	}
	if r, err := n.read(); err != nil || r != want {
		t.Errorf("got %v, %v, want %v", r, err, want)
	}
	want.BootID = "another"
	if err := n.write(want); err != nil {
		t.Fatal(err)
	}
	if r, err := n.read(); err != nil || r != (names{BootID: boot}) {
		t.Errorf("of another boot: %v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(n.StateDir, recordFile), []byte(`{"bootID":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := n.read(); err != nil || r != (names{BootID: boot}) {
		t.Errorf("damaged: %v, %v", r, err)
	}
}

// TestProcess tests that a process is identified by its start, too, and that nothing else is killed.
func TestProcess(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	p := processOf(cmd.Process.Pid)
	if !p.runs() || p.namespace("user") != processOf(os.Getpid()).namespace("user") {
		t.Errorf("%v does not run here", p)
	}
	other := process{p.PID, p.Start + 1}
	if err := other.kill(); err != nil || other.runs() || !p.runs() {
		t.Errorf("another process with this ID: %v", err)
	}
	if err := killAll(t.Context(), func() (left []process, err error) {
		if p.runs() {
			left = append(left, p)
		}
		return left, nil
	}); err != nil {
		t.Error(err)
	}
	if err := <-exited; err == nil {
		t.Error("the process was not killed")
	}
	if p.runs() || processOf(cmd.Process.Pid) == p {
		t.Error("the process still runs")
	}
	if (process{}).runs() {
		t.Error("no process runs")
	}
}

// TestFind tests that a process with another run directory is not used: in its namespaces, the paths of the user are other directories.
func TestFind(t *testing.T) {
	n := namespaces(t)
	self := processOf(os.Getpid())
	if got := n.find(names{Holder: self}); got != self {
		t.Errorf("got %v, want %v", got, self)
	}
	if got := n.find(names{Holder: process{self.PID, self.Start + 1}}); got != (process{}) {
		t.Errorf("a process that has exited: %v", got)
	}
	n.RunDir = filepath.Join(n.RunDir, "missing")
	if got := n.find(names{Holder: self}); got != (process{}) {
		t.Errorf("without the run directory: %v", got)
	}
}

// TestLock tests that a second lock is refused while the first one is held.
func TestLock(t *testing.T) {
	n := namespaces(t)
	fd, err := n.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.held = fd
	done := make(chan error)
	go func() {
		_, err := n.lock(t.Context())
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("locked twice: %v", err)
	default:
	}
	n.unlock()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestRunReportsOutput tests that the error of a program has its last line.
func TestRunReportsOutput(t *testing.T) {
	err := run(t.Context(), "/bin/sh", []string{"-c", "echo first; echo last >&2; exit 3"})
	if err == nil || err.Error() != "sh: exit status 3: last" {
		t.Errorf("got %v", err)
	}
	if err := run(t.Context(), "/bin/sh", []string{"-c", "exit 0"}); err != nil {
		t.Error(err)
	}
}
