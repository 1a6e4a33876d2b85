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
	return crunSince(ctx, program, 1, 4) // it has had the option rro since 1.4, and the command features since 1.8.6
}

// listsRecursiveReadOnly reports whether the output of the command features has the mount option rro.
func listsRecursiveReadOnly(text []byte) bool {
	var features struct {
		MountOptions []string `json:"mountOptions"`
	}
	return json.Unmarshal(text, &features) == nil && slices.Contains(features.MountOptions, "rro")
}

// lacksRecursiveBinds reports whether a program is a crun that takes rbind for bind in a user namespace, as it did before 1.9.
func lacksRecursiveBinds(ctx context.Context, program string) bool {
	return crunSince(ctx, program, 0, 0) && !crunSince(ctx, program, 1, 9)
}

// crunSince reports whether a program is a crun of this version or a newer one.
func crunSince(ctx context.Context, program string, major, minor int) bool {
	ctx, cancel := context.WithTimeout(ctx, featuresTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, program, "--version").Output()
	return err == nil && isCrunSince(string(text), major, minor)
}

func isCrunSince(output string, major, minor int) bool {
	var x, y int
	n, _ := fmt.Sscanf(output, "crun version %d.%d", &x, &y)
	return n == 2 && (x > major || x == major && y >= minor)
}
