package container

import (
	"context"
	"fmt"
	"strings"

	"github.com/containerd/containerd/v2/client"

	"github.com/podstead/podstead/spec"
)

// Errors of the engine and of the OCI runtime do not name what in an image they are about. The functions of this file add the image and the
// field of its configuration.

// maxStopSignal is the maximum length of the stop signal of an image, which is stored as a label. No signal has a name that long.
const maxStopSignal = 64

// checkStopSignal rejects a stop signal that cannot be stored. One that does not exist is reported when it is sent.
func checkStopSignal(image, signal string) error {
	if len(signal) > maxStopSignal {
		return fmt.Errorf("image %q: stop signal %q... is too long (%d bytes)", image, signal[:maxStopSignal], len(signal))
	}
	return nil
}

// stopSignalError names the source of a stop signal that cannot be sent.
func stopSignalError(c *spec.Container, err error) error {
	switch {
	case c == nil:
		return err
	case c.Lifecycle != nil && c.Lifecycle.StopSignal != "":
		return fmt.Errorf("lifecycle.stopSignal: %w", err)
	}
	return fmt.Errorf("stop signal of image %q: %w", c.Image, err)
}

// startError names the working directory if an error of the OCI runtime is about it.
func startError(ctx context.Context, created client.Container, c *spec.Container, err error) error {
	s, specErr := created.Spec(ctx)
	if specErr != nil || s.Process == nil || c == nil {
		return err
	}
	return workingDirError(c, s.Process.Cwd, err)
}

func workingDirError(c *spec.Container, dir string, err error) error {
	text := err.Error()
	about := strings.Contains(text, "working directory") || strings.Contains(text, "cwd") || dir != "/" && strings.Contains(text, dir+":")
	switch {
	case !about:
		return err
	case c.WorkingDir != "":
		return fmt.Errorf("workingDir %q: %w", dir, err)
	}
	return fmt.Errorf("working directory %q of image %q: %w", dir, c.Image, err)
}
