//go:build e2e

package rootless_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/podstead/podstead/test/hostile"
)

// TestHostile makes the attempts of package hostile in a pod of an ordinary user, beside another pod of the same user. A container gets no
// further than one of root, and files of the user that are not its volumes are as before.
func TestHostile(t *testing.T) {
	newNetwork(t)
	p := newPerson(t)
	p.apply(t)
	other := p.one(t, httpd)
	victim := filepath.Join(p.dir, "home", "victim") // the user could change it
	if err := errors.Join(os.Mkdir(victim, 0o755), os.WriteFile(filepath.Join(victim, "a"), []byte("private"), 0o644),
		os.Chown(victim, p.uid, p.gid), os.Chown(filepath.Join(victim, "a"), p.uid, p.gid)); err != nil {
		t.Fatal(err)
	}
	abstract, path := "@podstead-"+p.name, filepath.Join(victim, "socket")
	for _, address := range []string{abstract, path} {
		l, err := net.Listen("unix", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
	address := strings.TrimSpace(p.run(t, "podstead", "get", "web", "-o", "jsonpath={.status.podIP}"))
	for _, attempts := range []struct {
		name, text string
		tries      []hostile.Try
	}{
		{"kernel", "", hostile.Kernel()},
		{"devices", "", hostile.Devices("device b 8 0", "core "+devices+"|"+devices)},
		{"files", hostile.FileVolume, hostile.Files(victim)},
		{"processes", "", hostile.Processes(other, os.Getpid())},
		{"sockets", "", hostile.Sockets(abstract, path, filepath.Join(p.runDir(), "podstead/podstead.sock"))},
		{"control", "", hostile.Control(address)},
	} {
		for i := range attempts.tries {
			adjust(&attempts.tries[i])
		}
		file := filepath.Join(p.dir, attempts.name+".toml")
		text := "name = \"" + attempts.name + "\"\nrestartPolicy = \"Never\"\nimageArchives = [\"" +
			filepath.Join(p.dir, "examples/images/intruder.tar") + "\"]\n" +
			hostile.Play("c", "try", hostile.Attempts(attempts.tries)...) + attempts.text
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out := strings.ReplaceAll(p.run(t, "podstead", "run", file), "c | ", "")
		for _, line := range hostile.Mismatches(hostile.Outcomes(out), attempts.tries) {
			t.Error(line)
		}
		if !strings.HasSuffix(out, "finished\n") {
			t.Errorf("%s:\n%s", attempts.name, out)
		}
	}
	if text, err := os.ReadFile(filepath.Join(victim, "a")); err != nil || string(text) != "private" {
		t.Errorf("file of the user: %q, %v", text, err)
	}
	if after := p.one(t, httpd); after != other {
		t.Errorf("the container of the other pod is process %d, was %d", after, other)
	}
	p.run(t, "podstead", "daemon", "stop", "--pods")
	await(t, func() bool { return len(p.processes("")) == 0 })
}

// devices are the nodes in /dev of a container of runc. Those of crun have core, too.
const devices = "fd full mqueue null ptmx pts random shm stderr stdin stdout termination-log tty urandom zero"

// adjust changes the expected outcome to that in a user namespace, if the kernel has another one.
func adjust(t *hostile.Try) {
	switch path := t.Attempt[strings.IndexByte(t.Attempt, ' ')+1:]; {
	case strings.HasPrefix(t.Attempt, "device "): // no device node can be created, not even one without risk
		t.Want = "EPERM"
	case strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/fs/cgroup/"): // files of root of the host
		t.Want += "|EACCES"
	}
}
