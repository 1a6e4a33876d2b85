package runtime

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/containerd/v2/contrib/apparmor"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/oci"
)

// appArmorTime bounds the compiling of a profile, which takes less than a second where the machine is not slow.
const appArmorTime = 30 * time.Second

// appArmor is where a kernel's AppArmor profiles are seen and loaded.
type appArmor struct {
	loaded string // the file that lists what is loaded
	parser string // the program that compiles and loads a profile
	text   func(name string) (string, error)
}

var kernelAppArmor = appArmor{
	loaded: "/sys/kernel/security/apparmor/profiles", parser: "apparmor_parser", text: apparmor.DumpDefaultProfile,
}

// ensure returns when the kernel has a profile, "" being none. The default one it loads, which is containerd's; any other the
// machine must have loaded.
func (a appArmor) ensure(ctx context.Context, profile string) error {
	if profile == "" {
		return nil
	}
	loaded, err := a.has(profile)
	switch {
	case err != nil:
		return fmt.Errorf("look for AppArmor profile %s: %w", profile, err)
	case loaded:
		return nil
	case profile != oci.DefaultAppArmor:
		return fmt.Errorf("AppArmor profile %s is not loaded", profile)
	}
	text, err := a.text(profile)
	if err != nil {
		return fmt.Errorf("make AppArmor profile %s: %w", profile, err)
	}
	ctx, cancel := context.WithTimeout(ctx, appArmorTime)
	defer cancel()
	load := exec.CommandContext(ctx, a.parser, "-Kr")      //nolint:gosec // the program is fixed
	load.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what it starts ends with it
	load.Cancel = func() error { return unix.Kill(-load.Process.Pid, unix.SIGKILL) }
	load.Stdin = strings.NewReader(text)
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("load AppArmor profile %s: %w: %s", profile, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// has looks for a profile in the list, of which a line is a name and, in parentheses, a mode.
func (a appArmor) has(profile string) (bool, error) {
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
