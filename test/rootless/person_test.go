//go:build e2e

package rootless_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/test/internal/rig"
)

// limit bounds a command on a loaded host.
const limit = 3 * time.Minute

// owner is the start of the comment of users of tests in /etc/passwd. The PID of the test follows.
const owner = "podstead test "

// person is an ordinary user with a home directory, a runtime directory and subordinate IDs.
type person struct {
	name     string
	uid, gid int
	subIDs   [2]int // the first one and the number
	dir      string // with home, run and bin
	env      []string
}

// newPerson adds a user, who is removed with all processes when the test ends.
func newPerson(t *testing.T) *person {
	t.Helper()
	repository, err := rig.Repository()
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("%05x", rand.IntN(1<<20))
	p := &person{name: "pst" + id, dir: filepath.Join(filepath.Dir(os.TempDir()), "u"+id)} // a short path: sockets are in it
	if err := os.Mkdir(p.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(p.dir); err != nil {
			t.Error(err)
		}
	})
	home, run := filepath.Join(p.dir, "home"), p.runDir()
	command(t, "useradd", "--create-home", "--home-dir", home, "--shell", "/bin/sh", "--comment", owner+strconv.Itoa(os.Getpid()), p.name)
	t.Cleanup(func() {
		if err := p.remove(); err != nil {
			t.Error(err)
		}
	})
	if err := p.read(); err != nil {
		t.Fatal(err)
	}
	if p.subIDs[1] == 0 {
		t.Fatal("useradd has written no line to /etc/subuid")
	}
	if err := errors.Join(os.Chmod(p.dir, 0o755), os.Mkdir(run, 0o700), os.Chown(run, p.uid, p.gid), os.Chmod(home, 0o755),
		os.Mkdir(filepath.Join(p.dir, "bin"), 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"podstead", "podstead-compose", "podstead-monitor", "containerd-shim-podstead-v1"} {
		command(t, "cp", filepath.Join(repository, "bin", name), filepath.Join(p.dir, "bin"))
	}
	command(t, "cp", "-r", filepath.Join(repository, "examples"), p.dir)
	command(t, "chmod", "-R", "a+rX", filepath.Join(p.dir, "examples"))
	p.env = []string{
		"HOME=" + home, "XDG_RUNTIME_DIR=" + run, "PATH=" + filepath.Join(p.dir, "bin") + ":" + os.Getenv("PATH"), "NO_COLOR=1",
		"USER=" + p.name, "TZ=UTC",
	}
	return p
}

// runDir is the runtime directory of the user.
func (p *person) runDir() string { return filepath.Join(p.dir, "r") }

// read reads the IDs of the user. A useradd that was killed has written no subordinate ones.
func (p *person) read() error {
	fields, err := entry("/etc/passwd", p.name)
	if err != nil {
		return err
	}
	if len(fields) < 4 {
		return fmt.Errorf("/etc/passwd: %v", fields)
	}
	var errs [4]error
	p.uid, errs[0] = strconv.Atoi(fields[2])
	p.gid, errs[1] = strconv.Atoi(fields[3])
	ids, err := entry("/etc/subuid", p.name)
	if errors.Is(err, errNoEntry) {
		return errors.Join(errs[:]...)
	}
	if err != nil {
		return err
	}
	if len(ids) != 3 {
		return fmt.Errorf("/etc/subuid: %v", ids)
	}
	p.subIDs[0], errs[2] = strconv.Atoi(ids[1])
	p.subIDs[1], errs[3] = strconv.Atoi(ids[2])
	return errors.Join(errs[:]...)
}

// errNoEntry reports that a file such as /etc/passwd has no line for a user.
var errNoEntry = errors.New("no line")

// entry returns the fields of the line for a user in a file such as /etc/passwd.
func entry(file, name string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); fields[0] == name {
			return fields, nil
		}
	}
	return nil, fmt.Errorf("%s: %s: %w", file, name, errNoEntry)
}

// sweep removes the users of tests that were killed.
func sweep(string) error {
	text, err := os.ReadFile("/etc/passwd")
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSpace(line), ":")
		if len(fields) < 6 || !strings.HasPrefix(fields[4], owner) {
			continue
		}
		pid, _ := strconv.Atoi(strings.TrimPrefix(fields[4], owner))
		program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // another process may have its PID
		if strings.HasSuffix(strings.TrimSuffix(program, " (deleted)"), ".test") {
			continue
		}
		p := &person{name: fields[0]}
		if readErr := p.read(); readErr != nil {
			err = errors.Join(err, readErr)
			continue
		}
		err = errors.Join(err, p.remove(), os.RemoveAll(filepath.Dir(fields[5])))
	}
	return err
}

// remove kills all processes of the user and removes the user.
func (p *person) remove() error {
	if p.uid < 1000 {
		return fmt.Errorf("remove user %s: %d is the ID of a user of the system", p.name, p.uid)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for len(p.processes("")) > 0 {
		for _, pid := range p.processes("") {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("processes of user %s do not exit: %v", p.name, p.processes(""))
		}
	}
	out, err := exec.CommandContext(ctx, "userdel", p.name).CombinedOutput()
	if err != nil {
		return fmt.Errorf("remove user %s: %w: %s", p.name, err, out)
	}
	return nil
}

// processes returns the processes of the user, and of its subordinate IDs, whose command line contains a text.
func (p *person) processes(text string) []int {
	entries, _ := os.ReadDir("/proc")
	var found []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			continue
		}
		// The directory of a process that cannot be dumped belongs to root.
		status, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "status"))
		_, after, _ := strings.Cut(string(status), "\nUid:")
		fields := strings.Fields(after)
		if len(fields) == 0 {
			continue
		}
		uid, err := strconv.Atoi(fields[0])
		if err != nil || uid != p.uid && (uid < p.subIDs[0] || uid >= p.subIDs[0]+p.subIDs[1]) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), text) {
			found = append(found, pid)
		}
	}
	return found
}

// one returns the process of the user with this text in its command line.
func (p *person) one(t *testing.T, text string) int {
	t.Helper()
	var found []int
	await(t, func() bool { // a child has the command line of its parent until it executes its program
		found = p.processes(text)
		return len(found) <= 1
	})
	if len(found) != 1 {
		t.Fatalf("processes with %q: %v, want one", text, found)
	}
	return found[0]
}

// credential has the IDs of the user.
func (p *person) credential() *syscall.Credential {
	return &syscall.Credential{Uid: uint32(p.uid), Gid: uint32(p.gid)}
}

// try runs a command as the user, and returns what it has written.
func (p *person) try(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out, errs bytes.Buffer
	path := args[0]
	if path == "podstead" {
		path = filepath.Join(p.dir, "bin/podstead")
	}
	cmd := exec.CommandContext(ctx, path, args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = filepath.Join(p.dir, "home"), p.env, &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential()}
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// run is try for a command that must succeed.
func (p *person) run(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, err := p.try(t, args...)
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(p.dir, "home/.local/share/podstead/daemon.log"))
		t.Fatalf("%v: %v\n%s\n%s\nlog:\n%s", args, err, out, errs, log[max(0, len(log)-4000):])
	}
	return out
}

// kill kills processes and waits until they have exited.
func kill(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(limit/time.Millisecond)); n != 1 {
			t.Fatalf("process %d does not exit: %v", pid, err)
		}
	}
}

// command runs a command as root that must succeed.
func command(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
}
