//go:build e2e

package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNamedFiles: commands and the daemon open only regular files that a pod file, or its path, names. Nothing else blocks them, is read
// without end, or has effects.
func TestNamedFiles(t *testing.T) {
	f := newFixture(t, options{})
	fifo, zero := filepath.Join(f.Dir, "fifo"), filepath.Join(f.Dir, "zero.toml")
	f.Check(unix.Mkfifo(fifo, 0o600))
	f.Check(os.Symlink("/dev/zero", zero))
	for _, command := range []string{
		"validate " + zero, "run " + zero, "validate " + fifo, "validate /dev/zero", "validate /proc/kmsg", "validate " + f.Dir,
	} {
		if out, err := f.Podstead(f.Ctx(), strings.Fields(command)...); err == nil ||
			!strings.Contains(err.Error()+out, "not a regular file") {
			f.Errorf("podstead %s: %v\n%s\nwant an error", command, err, out)
		}
	}
	const container = "\n[[containers]]\nname = \"c\"\nimage = \"localhost/none:1\"\nimagePullPolicy = \"Never\"\n"
	for i, path := range []string{fifo, "/dev/zero", "/proc/kmsg", "/dev/kmsg", "/sys/kernel/notes"} {
		name := fmt.Sprintf("archive%d", i)
		_, err := f.Create(f.Ctx(), name, fmt.Sprintf("name = %q\nimageArchives = [%q]\n", name, path)+container)
		if err != nil {
			continue // rejected
		}
		f.Await(func() error {
			if events := f.MustRun("events", name); !strings.Contains(events, "not a regular file") {
				return fmt.Errorf("image archive %s:\n%s", path, events)
			}
			return nil
		})
		f.MustRun("delete", name)
	}
	for _, path := range []string{fifo, "/dev/zero", "/proc/kmsg", "/proc/self/environ"} {
		if _, err := f.Create(f.Ctx(), "env",
			fmt.Sprintf("name = \"env\"\n[[secrets]]\nname = \"s\"\nenvFile = %q\n", path)+container); err == nil ||
			!strings.Contains(err.Error(), "not a regular file") {
			f.Errorf("env file %s: %v", path, err)
		}
	}
	f.atMost(150 << 20)
}

// TestReservedNames: a pod cannot have a name that the hosts files of other pods define for the host.
func TestReservedNames(t *testing.T) {
	f := newFixture(t, options{})
	for _, name := range []string{
		"localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback", "ip6-allnodes", "ip6-allrouters", "x.localhost",
	} {
		if _, err := f.Create(f.Ctx(), name, f.PodText(name, Play("c", "stay"))); err == nil ||
			!strings.Contains(err.Error(), "is reserved for the host") {
			f.Errorf("pod %s: %v, want it rejected", name, err)
		}
	}
	if _, err := f.Create(f.Ctx(), "pod", f.PodText("pod", "hostname = \"localhost\"\n"+Play("c", "stay"))); err == nil ||
		!strings.Contains(err.Error(), "reserved") {
		f.Errorf("hostname localhost: %v, want it rejected", err)
	}
}
