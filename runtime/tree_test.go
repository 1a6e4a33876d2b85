package runtime

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// cgroupOf is a folder that lists processes as a cgroup does.
func cgroupOf(t *testing.T, pids ...int) string {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&text, pid)
	}
	below := filepath.Join(dir, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, below} {
		if err := os.WriteFile(filepath.Join(at, "cgroup.procs"), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		text.Reset()
	}
	return dir
}

// sleeper starts a process with this mark, and ends it with the test.
func sleeper(t *testing.T, mark string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), markVariable+"="+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// Between fork and exec, the environment is this process's.
	for end := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		p, lives := look(cmd.Process.Pid)
		if p.mark == mark {
			return cmd
		}
		if time.Now().After(end) {
			t.Fatalf("the process has the mark %q, lives: %v", p.mark, lives)
		}
	}
}

func TestTree(t *testing.T) {
	m := mark{instance: "0123abcd", number: 7, limited: true}
	mine, other := sleeper(t, m.String()), sleeper(t, m.String()+"1")
	cgroup := cgroupOf(t, mine.Process.Pid, other.Process.Pid, 0, 1<<30)
	for _, test := range []struct {
		name string
		tree tree
		want []int
	}{
		{"by the mark", tree{cgroup: cgroup, belongs: m.is}, []int{mine.Process.Pid}},
		{"by the leader", tree{cgroup: cgroup, belongs: mark{}.is, leader: other.Process.Pid}, []int{other.Process.Pid}},
		{"by the parent", tree{cgroup: cgroup, belongs: mark{}.is, leader: os.Getpid()}, []int{mine.Process.Pid, other.Process.Pid}},
		{"of no cgroup", tree{cgroup: cgroup + "-none", belongs: m.is}, nil},
	} {
		members, err := test.tree.members()
		var got []int
		for _, p := range members {
			got = append(got, p.pid)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := (tree{cgroup: cgroup, belongs: m.is}).kill(ctx); err != nil {
		t.Error(err)
	}
	if err := mine.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process ended with %v", err)
	}
	if p, lives := look(other.Process.Pid); !lives {
		t.Errorf("process %v of another command has ended", p)
	}
	ctx, cancel = context.WithCancel(ctx)
	cancel()
	if err := (tree{cgroup: cgroup, belongs: m.is, leader: other.Process.Pid}).kill(ctx); err == nil ||
		!strings.Contains(err.Error(), "end processes ["+strconv.Itoa(other.Process.Pid)+"]") {
		t.Errorf("a kill that was given up: %v", err)
	}
}

func TestProcessNumberReused(t *testing.T) {
	other := sleeper(t, "x")
	p, _ := look(other.Process.Pid)
	p.started = "1"
	p.kill()
	if _, lives := look(other.Process.Pid); !lives {
		t.Error("a process was killed that had another's number")
	}
}

func TestFormerMarks(t *testing.T) {
	var pids []int
	for _, m := range []string{"0123abcd-1-probe", "0123abcd-1-probe", "89abcdef-2-probe", "0123abcd-3-hook", "x-y-probe", "probe", ""} {
		pids = append(pids, sleeper(t, m).Process.Pid)
	}
	got, err := formerMarks(cgroupOf(t, pids...), "89abcdef")
	want := []mark{{instance: "0123abcd", number: 1, limited: true}} // the hook's process leads no session: it was left on purpose
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mark{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestExecsClosed(t *testing.T) {
	e := newExecs()
	if !e.begin(func() { <-e.closing }) {
		t.Error("a command was refused")
	}
	e.close()
	e.close()
	if e.begin(func() {}) {
		t.Error("a command was begun after the end")
	}
}
