package container

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/oci"
)

// This file provides the AppArmor and seccomp profiles of containers: it loads the default AppArmor profile into the kernel, and
// reads seccomp profiles of type Localhost.

// parserTimeout is for compiling a profile, which takes less than a second unless the host is slow.
const parserTimeout = 30 * time.Second

// AppArmor is the kernel's interface for AppArmor profiles.
type AppArmor struct {
	loaded string // the file that lists the loaded profiles
	parser string // the program that compiles and loads a profile
	text   func(name string) string
}

// KernelAppArmor is the interface of this host's kernel.
func KernelAppArmor() AppArmor {
	return AppArmor{
		loaded: "/sys/kernel/security/apparmor/profiles", parser: "apparmor_parser",
		text: func(name string) string { return thisHost().defaultProfile(name) },
	}
}

// Ensure returns when a profile is loaded. It loads the default profile, which is containerd's. Any other profile must have been loaded on
// the host. An empty name means no profile.
func (a AppArmor) Ensure(ctx context.Context, profile string) error {
	if profile == "" {
		return nil
	}
	loaded, err := a.has(profile)
	switch {
	case err != nil:
		return fmt.Errorf("find AppArmor profile %s: %w", profile, err)
	case loaded:
		return nil
	case profile != oci.DefaultAppArmor:
		return fmt.Errorf("AppArmor profile %s is not loaded", profile)
	}
	ctx, cancel := context.WithTimeout(ctx, parserTimeout)
	defer cancel()
	load := exec.CommandContext(ctx, a.parser, "-Kr")      // the program is fixed
	load.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its child processes are killed with it
	load.Cancel = func() error { return unix.Kill(-load.Process.Pid, unix.SIGKILL) }
	load.Stdin = strings.NewReader(a.text(profile))
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("load AppArmor profile %s: %w: %s", profile, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// has reports whether a profile is in the list. A line of the list is a name, followed by a mode in parentheses.
func (a AppArmor) has(profile string) (bool, error) {
	f, err := os.Open(a.loaded)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), profile+" (") {
			return true, nil
		}
	}
	return false, lines.Err()
}
