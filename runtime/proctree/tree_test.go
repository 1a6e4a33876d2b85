package proctree

import (
	"context"
	"errors"
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

// fakeCgroup returns a directory that lists processes like a cgroup.
func fakeCgroup(t *testing.T, pids ...int) string {
	t.Helper()
	dir := t.TempDir()
	var text strings.Builder
	for _, pid := range pids {
		fmt.Fprintln(&text, pid)
	}
	child := filepath.Join(dir, "child")
	if err := os.Mkdir(child, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, cgroup := range []string{dir, child} {
		if err := os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		text.Reset()
	}
	return dir
}

// startSleep starts a process with this mark, and kills it at the end of the test.
func startSleep(t *testing.T, mark string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), MarkVariable+"="+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// Between fork and exec, the process has the environment of the test.
	for end := time.Now().Add(time.Minute); ; <-time.After(time.Millisecond) {
		p, running := read(cmd.Process.Pid)
		if p.Mark == mark {
			return cmd
		}
		if time.Now().After(end) {
			t.Fatalf("the process has the mark %q, running: %v", p.Mark, running)
		}
	}
}

func is(mark string) func(string) bool { return func(m string) bool { return m == mark } }

func TestTree(t *testing.T) {
	const mark = "0123abcd-7-probe"
	marked, other := startSleep(t, mark), startSleep(t, mark+"1")
	cgroup := fakeCgroup(t, marked.Process.Pid, other.Process.Pid, 0, 1<<30)
	for _, test := range []struct {
		name string
		tree Tree
		want []int
	}{
		{"by the mark", Tree{Cgroup: cgroup, Belongs: is(mark)}, []int{marked.Process.Pid}},
		{"by the leader", Tree{Cgroup: cgroup, Belongs: is("none"), Leader: other.Process.Pid}, []int{other.Process.Pid}},
		{
			"by the parent",
			Tree{Cgroup: cgroup, Belongs: is("none"), Leader: os.Getpid()},
			[]int{marked.Process.Pid, other.Process.Pid},
		},
		{"cgroup does not exist", Tree{Cgroup: cgroup + "-none", Belongs: is(mark)}, nil},
	} {
		processes, _, err := test.tree.scan()
		var got []int
		for _, p := range processes {
			got = append(got, p.PID)
		}
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := (Tree{Cgroup: cgroup, Belongs: is(mark)}).Kill(ctx); err != nil {
		t.Error(err)
	}
	if err := marked.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the marked process exited with %v, want signal: killed", err)
	}
	if p, running := read(other.Process.Pid); !running {
		t.Errorf("process %v of another command was killed", p)
	}
	ctx, cancel = context.WithCancel(ctx)
	cancel()
	if err := (Tree{Cgroup: cgroup, Belongs: is(mark), Leader: other.Process.Pid}).Kill(ctx); err == nil ||
		!strings.Contains(err.Error(), "kill processes ["+strconv.Itoa(other.Process.Pid)+"]") {
		t.Errorf("cancelled kill: %v, want the processes that are left", err)
	}
}

func TestKillReusedPID(t *testing.T) {
	other := startSleep(t, "x")
	p, _ := read(other.Process.Pid)
	p.started = 1
	p.Kill()
	if _, running := read(other.Process.Pid); !running {
		t.Error("a process was killed that reuses the PID")
	}
}

// TestProcessThatExecutes: a process whose environment is not visible, because it executes another program, is awaited: it may turn out to
// be part of the tree.
func TestProcessThatExecutes(t *testing.T) {
	before := execTime
	execTime = time.Hour
	t.Cleanup(func() { execTime = before })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, check := range map[string]func(Tree) error{
		"kill": func(tree Tree) error { return tree.Kill(ctx) },
		"is empty": func(tree Tree) error {
			if tree.IsEmpty(ctx) {
				return errors.New("the tree is empty")
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", "read line; export "+MarkVariable+"=mark; exec sleep 1000")
			cmd.Env = []string{}
			input, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			for p, running := read(cmd.Process.Pid); !p.bare; p, running = read(cmd.Process.Pid) {
				if !running || ctx.Err() != nil {
					t.Fatalf("process %+v, running: %v", p, running)
				}
			}
			checked := make(chan error, 1)
			go func() { checked <- check(Tree{Cgroup: fakeCgroup(t, cmd.Process.Pid), Belongs: is("mark")}) }()
			select {
			case err := <-checked:
				t.Fatalf("not awaited: %v", err)
			case <-time.After(5 * pollInterval):
			}
			if err := input.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-checked; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestProcessWithoutEnvironment: a process that has no environment and is not part of the tree is not awaited for long.
func TestProcessWithoutEnvironment(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tree := Tree{Cgroup: fakeCgroup(t, cmd.Process.Pid), Belongs: is("mark")}
	if err := tree.Kill(ctx); err != nil || !tree.IsEmpty(ctx) {
		t.Errorf("tree of another command: %v", err)
	}
	if _, running := read(cmd.Process.Pid); !running {
		t.Error("a process of another command was killed")
	}
}

// TestWhile: a process must be in the cgroup and run, before and after it was used.
func TestWhile(t *testing.T) {
	cmd, other := startSleep(t, "x"), startSleep(t, "y")
	dir := fakeCgroup(t, cmd.Process.Pid)
	used := 0
	use := func() error { used++; return nil }
	if err := While(dir, cmd.Process.Pid, use); err != nil || used != 1 {
		t.Errorf("%v, used %d times, want once", err, used)
	}
	failed := errors.New("failed")
	if err := While(dir, cmd.Process.Pid, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v, want the error of the use", err)
	}
	if err := While(dir, other.Process.Pid, use); !errors.Is(err, ErrExited) {
		t.Errorf("a process of another cgroup: %v", err)
	}
	if err := While(dir, cmd.Process.Pid, func() error {
		_ = cmd.Process.Kill()
		_, err := cmd.Process.Wait()
		return err
	}); !errors.Is(err, ErrExited) {
		t.Errorf("a process that exits while it is used: %v", err)
	}
	if err := While(dir, cmd.Process.Pid, use); !errors.Is(err, ErrExited) {
		t.Errorf("a process that has exited: %v", err)
	}
}
