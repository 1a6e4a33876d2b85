//go:build e2e

package hostile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/test/internal/rig"
)

// TestRuntimeBinaryProtected: while probes run commands in a container, one of its processes waits for processes of the OCI runtime. It
// tries to overwrite the runtime's binary (CVE-2019-5736; the probe's command is a script for /proc/self/exe, which makes the runtime
// run itself), and to reach files of the host through the runtime's open files (CVE-2024-21626).
func TestRuntimeBinaryProtected(t *testing.T) {
	f := newFixture(t, options{})
	mounts, volumes := libraries()
	f.create("attacker", Play("c", "try", "watch-runtime "+f.victim()+"/a", "await /tmp/enough", "runtime-access")+mounts+`
  [containers.readinessProbe]
  exec = { command = ["/bin/runtime"] }
  periodSeconds = 0.2
  timeoutSeconds = 5
  failureThreshold = 30
  [containers.livenessProbe]
  exec = { command = ["sh", "-c", "echo x >> /tmp/probes; [ $(wc -l < /tmp/probes) -lt 8 ] || touch /tmp/enough"] }
  periodSeconds = 0.2
  timeoutSeconds = 5
  failureThreshold = 30
`+volumes)
	var met string
	f.Await(func() error {
		text := f.MustRun("logs", "attacker")
		_, after, found := strings.Cut(text, "runtime-access: ")
		if !found {
			return fmt.Errorf("not finished: %s", text)
		}
		met, _, _ = strings.Cut(after, "\n")
		return nil
	})
	events := f.MustRun("events", "attacker")
	f.MustRun("delete", "attacker")
	seen := false
	for thing := range strings.SplitSeq(met, ", ") {
		if strings.Contains(thing, "and wrote") || strings.Contains(thing, "reached") {
			f.Error(thing)
		}
		program, saw := strings.CutPrefix(thing, "saw ")
		seen = seen || saw && !strings.HasPrefix(program, "/bin/") // the runtime has another name in each version
	}
	if !seen {
		f.Errorf("no process of the OCI runtime was seen, only: %s\n%s", met, events)
	}
}

// libraries returns volumes with the shared libraries of a runtime that is not linked statically.
func libraries() (mounts, volumes string) {
	mounts = "volumeMounts = {"
	for i, dir := range []string{"/lib", "/lib64"} {
		if _, err := os.Stat(dir); err == nil {
			mounts += fmt.Sprintf(" lib%d = { mountPath = %q, readOnly = true },", i, dir)
			volumes += fmt.Sprintf("[[volumes]]\nname = \"lib%d\"\nhostPath = { path = %q }\n", i, dir)
		}
	}
	return strings.TrimSuffix(mounts, ",") + " }\n", volumes
}

// TestWorkingDirectory: a working directory that is a file descriptor of the OCI runtime does not lead to the host (CVE-2024-21626),
// neither for a container nor for a command in it.
func TestWorkingDirectory(t *testing.T) {
	f := newFixture(t, options{})
	var text strings.Builder
	text.WriteString("restartPolicy = \"Never\"\n")
	const first, last = 3, 16
	for i := first; i <= last; i++ {
		fmt.Fprint(&text, Play(fmt.Sprint("c", i), "try", "above "+f.victim()+"/a"), fmt.Sprintf("workingDir = \"/proc/self/fd/%d\"\n", i))
	}
	f.create("descriptors", text.String())
	p := f.Until("descriptors", "done", ended)
	for _, c := range p.Status.ContainerStatuses {
		end := c.State.Terminated
		if end == nil || end.Reason != "StartError" { // it must not even start
			f.Errorf("container %s terminated with %+v, outcomes %v", c.Name, end, f.outcomes("descriptors", c.Name))
		}
	}
	f.MustRun("delete", "descriptors")

	f.commandsInDescriptors()
}

// commandsInDescriptors runs commands in a working directory that a container has replaced with a link to a descriptor. With runc it is
// that of the host's cgroup directory. With crun, no descriptor is known to be one of the host, so there is a container for each.
func (f *fixture) commandsInDescriptors() {
	f.Helper()
	descriptors, refusal := []int{7}, "chdir to cwd"
	if filepath.Base(rig.RuntimeUnderTest()) == "crun" {
		descriptors, refusal = []int{3, 4, 5, 6, 7}, "chdir `/tmp/here`"
	}
	var text strings.Builder
	for _, i := range descriptors {
		text.WriteString(Play(fmt.Sprint("c", i), "stay", "wait 1ms") + fmt.Sprintf(`
workingDir = "/tmp/here"
  [containers.lifecycle.postStart]
  exec = { command = ["sh", "-c", "rmdir /tmp/here && ln -s /proc/self/fd/%d /tmp/here"] }
  [containers.livenessProbe]
  exec = { command = ["sh", "-c", "/bin/intruder try 'above %s/a' > /proc/1/fd/1"] }
  periodSeconds = 1
  timeoutSeconds = 5
  failureThreshold = 100
`, i, f.victim()))
	}
	f.create("links", text.String())
	f.Await(func() error {
		events := strings.Split(f.MustRun("events", "links"), "\n")
		for _, i := range descriptors {
			refused := slices.ContainsFunc(events, func(line string) bool {
				return strings.Contains(line, fmt.Sprintf("links/c%d warning: ", i)) && strings.Contains(line, refusal)
			})
			if log := f.MustRun("logs", "links", "-c", fmt.Sprint("c", i)); strings.Contains(log, ": found") {
				f.Fatal(log)
			} else if !refused && !strings.Contains(log, "above ") {
				return fmt.Errorf("no command has run in container c%d:\n%s", i, strings.Join(events, "\n"))
			}
		}
		return nil
	})
	f.MustRun("delete", "links")
}

// TestSurface: the daemon and the shims, or the monitor, have sockets for root only, none of them abstract (a container on the host network
// could reach those: CVE-2020-15257), no port, and no file or directory that others can read or write, except those that containers see.
func TestSurface(t *testing.T) {
	f := newFixture(t, options{})
	f.Until(neighbour, "ready", isReady)
	processes, err := f.Holders()
	f.Check(err)
	if len(processes) == 0 {
		f.Error("no process holds the containers")
	}
	daemon, err := f.DaemonPID(f.Ctx())
	f.Check(err)
	for _, p := range append(processes, rig.Process{PID: daemon, Command: "podstead daemon"}) {
		dir, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", p.PID))
		f.Check(err)
		for _, s := range f.socketsOf(p.PID) {
			if s.table == "unix" && !strings.HasPrefix(s.address, "@") && !filepath.IsAbs(s.address) { // that of a shim for attach
				s.address = filepath.Join(dir, s.address)
			}
			f.checkSocket(p.Command, s)
		}
	}
	for dir, mode := range map[string]os.FileMode{f.StateDir(): 0o711, f.RunDir(): 0o711, f.LogDir(): 0o750} {
		info, err := os.Stat(dir)
		f.Check(err)
		if info.Mode().Perm()&^mode != 0 {
			f.Errorf("mode of %s is %v, want at most %v", dir, info.Mode().Perm(), mode)
		}
	}
}

// TestUserNamespacesKeepDirectoriesClosed: while pods with a user namespace run, the directory of the container engine is closed to others,
// and only the group of a pod's root can enter the directory of a root file system.
func TestUserNamespacesKeepDirectoriesClosed(t *testing.T) {
	f := newFixture(t, options{})
	f.create("mapped", "hostUsers = false\nshareProcessNamespace = true\n"+Play("c", "stay", "wait 1ms"))
	f.Until("mapped", "ready", isReady)
	f.hasMode(filepath.Join(f.RunDir(), "engine"), 0o700)
	roots := filepath.Join(f.RunDir(), "rootfs")
	f.hasMode(roots, 0o711)
	dirs, err := filepath.Glob(filepath.Join(roots, "*"))
	f.Check(err)
	if len(dirs) != 2 { // of the container and of the process that shares its PID namespace
		f.Errorf("root file systems %q, want 2", dirs)
	}
	for _, dir := range dirs {
		f.hasMode(dir, 0o710)
		var stat unix.Stat_t
		f.Check(unix.Stat(dir, &stat))
		if stat.Uid != 0 || stat.Gid < 65536 {
			f.Errorf("%s belongs to %d:%d, want root and the group of the pod's root", dir, stat.Uid, stat.Gid)
		}
	}
	f.MustRun("delete", "mapped")
	if left, err := filepath.Glob(filepath.Join(roots, "*")); err != nil || len(left) > 0 {
		f.Errorf("the deleted pod has left %q, %v", left, err)
	}
}

func (f *fixture) hasMode(dir string, want os.FileMode) {
	f.Helper()
	info, err := os.Stat(dir)
	f.Check(err)
	if got := info.Mode().Perm(); got != want {
		f.Errorf("mode of %s is %#o, want %#o", dir, got, want)
	}
}

// socket is an entry of the kernel's socket tables.
type socket struct{ table, address, inode string }

// socketsOf returns the listening and the named sockets of a process.
func (f *fixture) socketsOf(pid int) (list []socket) {
	f.Helper()
	held := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	f.Check(err)
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			held[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	const listening = "0A"
	for _, table := range []string{"unix", "tcp", "tcp6", "udp", "udp6", "raw", "packet"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			switch {
			case len(fields) > 7 && table == "unix" && held[fields[6]]:
				list = append(list, socket{table, fields[7], fields[6]})
			case len(fields) > 9 && table != "unix" && held[fields[9]] && (!strings.HasPrefix(table, "tcp") || fields[3] == listening):
				list = append(list, socket{table, fields[1], fields[9]})
			}
		}
	}
	return list
}

// checkSocket fails the test for a socket that a user other than root can reach.
func (f *fixture) checkSocket(owner string, s socket) {
	f.Helper()
	if s.table != "unix" || strings.HasPrefix(s.address, "@") {
		f.Errorf("%s has the %s socket %s", owner, s.table, s.address)
		return
	}
	s.address = strings.TrimSuffix(s.address, "~") // the daemon renames its socket when it listens
	var stat unix.Stat_t
	if err := unix.Stat(s.address, &stat); err != nil {
		f.Errorf("%s has the socket %s: %v", owner, s.address, err)
		return
	}
	for path := s.address; path != "/" && path != f.Dir; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		f.Check(err)
		const others = 0o007
		closed := info.Mode().Perm()&others == 0 || !info.IsDir() && info.Mode().Perm()&0o002 == 0
		if closed {
			return
		}
	}
	f.Errorf("%s has the socket %s, which everybody can connect to", owner, s.address)
}

// TestOutputEscaping: output that looks like a log entry stays one line of this container with its real time. Commands print a
// termination message without its escape codes.
func TestOutputEscaping(t *testing.T) {
	f := newFixture(t, options{})
	const forged = "2020-01-01T00:00:00.000000000Z stderr F forged"
	f.create("words", "restartPolicy = \"Never\"\n"+fmt.Sprintf(`
[[containers]]
name = "c"
image = %q
command = ["sh", "-c", "echo %s; printf 'half\\rover\\033[2J\\n'; printf 'last\\033]0;title\\007\\033[2Jwords\\n' > /dev/termination-log; truncate -s 512G /etc/hosts /etc/hostname; exit 3"]
`, Intruder, forged))
	p := f.Until("words", "done", ended)
	end := p.Status.ContainerStatuses[0].State.Terminated
	if end == nil || !strings.HasPrefix(end.Message, "last") || len(end.Message) > 4096 {
		f.Fatalf("container terminated with %+v", end)
	}
	var forgeries int
	for line := range strings.Lines(f.MustRun("logs", "words", "--timestamps")) {
		if strings.Contains(line, "forged") {
			forgeries++
			if strings.HasPrefix(line, "2020") {
				f.Errorf("the log has the entry %q", line)
			}
		}
	}
	if forgeries != 1 {
		f.Errorf("the forged entry occurs %d times, want 1", forgeries)
	}
	for _, command := range [][]string{{"get"}, {"get", "words"}, {"events", "words"}, {"why", "words"}, {"get", "words", "-o", "json"}} {
		if out := f.MustRun(command...); strings.ContainsAny(out, "\x1b\x07\r") {
			f.Errorf("podstead %v prints %q", command, out)
		}
	}
	f.MustRun("delete", "words")
}

// TestTerminationLog: the termination log cannot be replaced, and at most 4096 bytes of it are read.
func TestTerminationLog(t *testing.T) {
	f := newFixture(t, options{})
	f.create("last", "restartPolicy = \"Never\"\n"+Play("c", "try",
		"remove /dev/termination-log", "truncate /dev/termination-log 1024", "link /dev/termination-log /tmp/link",
		"truncate /etc/hosts 1024"))
	p := f.Until("last", "done", ended)
	f.compare("last", "c", []Try{
		{"remove /dev/termination-log", "EBUSY"},
		{"truncate /dev/termination-log 1024", "done"},
		{"link /dev/termination-log /tmp/link", "EXDEV"},
	})
	if end := p.Status.ContainerStatuses[0].State.Terminated; end == nil || len(end.Message) > 4096 {
		f.Errorf("container terminated with %+v", end)
	}
	f.create("after", Play("c", "stay", "wait 1ms")) // another pod: the hosts files of all pods are rewritten
	f.Until("after", "ready", func(p *api.Pod) bool { return isReady(p) })
	f.MustRun("delete", "last", "after")
}

// TestStoppedRuntime: a container that stops every process that enters its PID namespace stops the OCI runtime. Probes fail at their
// timeout nevertheless, a command of exec fails, and when its client is killed, nothing of it is left.
func TestStoppedRuntime(t *testing.T) {
	f := newFixture(t, options{})
	f.create("stopper", Play("c", "stay", "stop-all 300")+`
  [containers.readinessProbe]
  exec = { command = ["true"] }
  timeoutSeconds = 1
  failureThreshold = 1
`)
	f.outcomes("stopper", "c")
	f.Await(func() error {
		if events := f.MustRun("events", "stopper"); strings.Count(events, "Readiness probe failed: command timed out") < 2 {
			return fmt.Errorf("events:\n%s", events)
		}
		return nil
	})
	f.Await(func() error { // the OCI runtime can leave the PID namespace before it is stopped, and the command may be stopped instead
		ctx, cancel := context.WithTimeout(f.Ctx(), deadline/3)
		defer cancel()
		_, err := f.Podstead(ctx, "exec", "stopper", "--", "true")
		if err == nil || !strings.Contains(err.Error(), "stops the OCI runtime") {
			return fmt.Errorf("exec: %w", err)
		}
		return nil
	})
	file := "-session.pid" // which the OCI runtime writes
	if f.Monitor != "" {
		file = "/init.pid"
	}
	session := func() (pids []int) { // of the OCI runtime
		all, err := f.Processes()
		f.Check(err)
		for _, p := range all {
			if strings.Contains(p.Command, file) {
				pids = append(pids, p.PID)
			}
		}
		return pids
	}
	var clients []*exec.Cmd
	f.Await(func() error {
		client := f.Command(f.Ctx(), "exec", "stopper", "--", "true")
		f.Check(client.Start())
		clients = append(clients, client)
		if len(session()) == 0 {
			return errors.New("the OCI runtime does not run")
		}
		return nil
	})
	for _, client := range clients {
		_ = client.Process.Kill() // it may have exited
		_ = client.Wait()
	}
	f.Await(func() error {
		if left := session(); len(left) > 0 {
			return fmt.Errorf("the OCI runtime runs without its client: %v", left)
		}
		return nil
	})
	f.MustRun("delete", "stopper")
}
