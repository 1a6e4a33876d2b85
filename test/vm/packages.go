package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	suite       = "bookworm"
	kernelMeta  = "linux-image-cloud-amd64"
	recipe      = "1" // changed when an image is built differently from the same packages
	modulesPath = "usr/lib/modules"
)

// guestPackages are what the virtual machine has beside Debian's essential packages.
var guestPackages = []string{
	"apparmor", "crun", "dbus", "iproute2", "kmod", "libpam-systemd", "libtss2-esys-3.0.2-0", "libtss2-rc0", "mount", "nftables", "passt",
	"passwd", "procps", "rpm", "runc", "systemd", "systemd-sysv", "udev", "uidmap",
}

// output runs a program on the host and returns its output. The error has the end of its standard error. The program is killed when this
// process exits.
func output(ctx context.Context, name string, args ...string) (string, error) {
	runtime.LockOSThread() // the parent death signal is sent when this thread exits
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // for children that keep the output open
	out, err := cmd.Output()
	if err != nil {
		message := strings.TrimSpace(stderr.String())
		return "", fmt.Errorf("run %s: %w: %s", name, err, message[max(0, len(message)-1000):])
	}
	return string(out), nil
}

// kernelPackage returns the name of Debian's current kernel package.
func kernelPackage(ctx context.Context) (string, error) {
	out, err := output(ctx, "apt-cache", "depends", "--important", kernelMeta)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok && strings.HasPrefix(name, "linux-image-") {
			return name, nil
		}
	}
	return "", fmt.Errorf("find kernel: %s depends on none", kernelMeta)
}

// imageKey names an image after the versions of its packages.
func imageKey(ctx context.Context, kernel string) (string, error) {
	out, err := output(ctx, "apt-cache", append([]string{"policy", kernel}, guestPackages...)...)
	if err != nil {
		return "", err
	}
	versions, err := candidates(out)
	if err != nil {
		return "", err
	}
	if len(versions) != len(guestPackages)+1 {
		return "", fmt.Errorf("find packages: apt has only %v: run apt-get update", versions)
	}
	sum := sha256.Sum256([]byte(recipe + "\n" + strings.Join(versions, "\n")))
	return hex.EncodeToString(sum[:6]), nil
}

// candidates parses the output of apt-cache policy into a sorted list of "name version".
func candidates(policy string) ([]string, error) {
	var versions []string
	name := ""
	for line := range strings.Lines(policy) {
		text := strings.TrimSpace(line)
		if version, ok := strings.CutPrefix(text, "Candidate: "); ok {
			if version == "(none)" {
				return nil, fmt.Errorf("find packages: apt has no %s", name)
			}
			versions = append(versions, name+" "+version)
		} else if !strings.HasPrefix(line, " ") {
			name = strings.TrimSuffix(text, ":")
		}
	}
	slices.Sort(versions)
	return versions, nil
}
