// Package termination keeps the termination messages of containers: the file that a container is shown at its
// terminationMessagePath, and what is told of it, or of the end of its log, once it has ended.
//
// Limits are the kubelet's (getTerminationMessage of its kuberuntime); that of a whole pod is the status' own. A container may make
// anything of its file; no more of it is read than is told.
package termination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/crilog"
)

const (
	// maxMessage is what is read of a file, from its end.
	maxMessage = 4096
	// maxLogLines and maxLogBytes are what is read of a log, from its end.
	maxLogLines = 80
	maxLogBytes = 2048
)

// Create makes the empty file of a run, which any user of the container may write to, or leaves the one that is there.
func Create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create termination message file: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY|unix.O_NOFOLLOW, 0o666) //nolint:gosec // its folder is private
	if err != nil {
		return fmt.Errorf("create termination message file: %w", err)
	}
	defer f.Close()
	return f.Chmod(0o666) // whatever the umask is
}

// Read returns the message in a file: its last 4096 bytes. A file that is not there, or that cannot be read, is an empty
// message, or an error to be told in its place.
func Read(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("error on reading termination log %s: %w", path, err)
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = f.Seek(max(0, size-maxMessage), io.SeekStart)
	}
	var text []byte
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(f, maxMessage))
	}
	if err != nil {
		return "", fmt.Errorf("error on reading termination log %s: %w", path, err)
	}
	return clip(string(text)), nil
}

// FromLog returns the end of a container's log: of the last 80 lines the last 2048 bytes.
func FromLog(ctx context.Context, path string) (string, error) {
	var text []byte
	for entry, err := range crilog.Read(ctx, path, crilog.ReadOptions{Tail: maxLogLines}) {
		if err != nil {
			return "", fmt.Errorf("error on reading log %s: %w", path, err)
		}
		text = append(text, entry.Text...)
		if !entry.Partial {
			text = append(text, '\n')
		}
		text = slices.Delete(text, 0, max(0, len(text)-maxLogBytes))
	}
	return clip(string(text)), nil
}

// clip replaces what is no text, and cuts the rest to the length of a message.
func clip(text string) string {
	limit := maxMessage
	text = strings.ToValidUTF8(text, "\uFFFD")
	for limit < len(text) && limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:min(len(text), limit)]
}
