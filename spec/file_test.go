package spec

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// special returns paths of files that must not be read, below a directory.
func special(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	fifo, socket, link, chain := filepath.Join(dir,
		"fifo"), filepath.Join(dir, "socket"), filepath.Join(dir, "zero.toml"), filepath.Join(dir, "chain.toml")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for from, to := range map[string]string{link: "/dev/zero", chain: link} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	return []string{
		dir, fifo, socket, link, chain, "/dev/zero", "/dev/null", "/dev/tty", "/dev/urandom", "/proc/kmsg", "/proc/self/mem",
		"/proc/self/environ",
		"/sys/kernel/mm/transparent_hugepage/enabled", "/proc/self/fd/0",
	}
}

// TestSpecialFiles checks that no file that a user names is read or blocks if it is not a regular file.
func TestSpecialFiles(t *testing.T) {
	stdin, write, err := os.Pipe() // for /proc/self/fd/0 in effect: an open pipe
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	defer write.Close()
	for _, path := range special(t) {
		if _, err := os.Lstat(path); os.IsNotExist(err) {
			continue
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if f, err := OpenFile(path); err == nil {
				t.Errorf("%s was opened: %v", path, f.Close())
			}
			if text, _, err := ReadFile(path, 1<<20); err == nil {
				t.Errorf("%s was read: %q", path, text)
			}
			if _, _, err := ParseFile(path); err == nil {
				t.Errorf("%s was parsed", path)
			}
			file := []byte("imageArchives = [\"" + path + "\"]\n" + podTail)
			if pod, problems := (Options{Archives: true}).Accept("web.toml", file); pod != nil ||
				!strings.HasPrefix(problems[0].Path, "imageArchives") {
				t.Errorf("image archive %s was accepted: %v", path, problems)
			}
			file = []byte("[[secrets]]\nname = \"s\"\nenvFile = \"" + path + "\"\n" + podTail)
			if pod, problems := Accept("web.toml", file); pod != nil || !strings.Contains(problems[0].Path, "envFile") {
				t.Errorf("env file %s was accepted: %v", path, problems)
			}
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("%s blocks", path)
		}
	}
	large := filepath.Join(t.TempDir(), "large.toml")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadFile(large, 100); err == nil || !strings.Contains(err.Error(), "larger than 100 bytes") {
		t.Errorf("a file of 1 TiB: %v", err)
	}
}

// TestReservedNames checks that no pod gets a name that every hosts file defines.
func TestReservedNames(t *testing.T) {
	for _, name := range []string{
		"localhost", "localhost.localdomain", "localhost4", "localhost6.localdomain6", "x.localhost", "ip6-localhost", "ip6-loopback",
		"ip6-localnet",
		"ip6-mcastprefix", "ip6-allnodes", "ip6-allrouters", "ip6-allhosts", "broadcasthost",
	} {
		checkRules(t, []rule{{"name = \"" + name + "\"\n" + podTail, "name", "reserved"}})
		if !strings.Contains(name, ".") {
			checkRules(t, []rule{{pod("hostname = \"" + name + "\"\n"), "hostname", "reserved"}})
		}
	}
	for _, name := range []string{"localhosts", "my-localhost", "localhost.example", "ip6"} {
		if _, problems := Parse("x.toml", []byte("name = \""+name+"\"\n"+podTail)); len(problems.Errors()) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	if _, problems := Parse("localhost.toml", []byte(podTail)); len(problems.Errors()) == 0 {
		t.Error("a pod was named localhost by its file")
	}
}
