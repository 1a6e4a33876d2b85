package ociruntime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// featuresTimeout bounds a run of the OCI runtime that only prints something.
const featuresTimeout = 10 * time.Second

// recursiveReadOnly reports whether the kernel (5.12) and the OCI runtime support recursive read-only mounts (KEP-3857).
func recursiveReadOnly(ctx context.Context, program string) bool {
	if err := unix.MountSetattr(-1, "", 0, &unix.MountAttr{}); errors.Is(err, unix.ENOSYS) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, featuresTimeout)
	defer cancel()
	if text, err := exec.CommandContext(ctx, program, "features").Output(); err == nil {
		return listsRecursiveReadOnly(text)
	}
	text, err := exec.CommandContext(ctx, program, "--version").Output()
	return err == nil && crunHasRecursiveReadOnly(string(text))
}

// listsRecursiveReadOnly reports whether the output of the command features has the mount option rro.
func listsRecursiveReadOnly(text []byte) bool {
	var features struct {
		MountOptions []string `json:"mountOptions"`
	}
	return json.Unmarshal(text, &features) == nil && slices.Contains(features.MountOptions, "rro")
}

// crunHasRecursiveReadOnly reports whether a version of crun has the mount option rro. crun has had it since 1.4, and the command features
// since 1.8.6.
func crunHasRecursiveReadOnly(output string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(output, "crun version %d.%d", &major, &minor)
	return n == 2 && (major > 1 || major == 1 && minor >= 4)
}
