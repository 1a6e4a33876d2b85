package exit

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

	"github.com/podstead/podstead/internal/crilog"
	"github.com/podstead/podstead/internal/guard"
)

// This file creates and reads the termination messages of containers: the file that a container sees at its
// terminationMessagePath, or the end of its log.
//
// The limits are the kubelet's (kuberuntime: getTerminationMessage). The limit for all containers of a pod is applied to the pod's status.
// A container can write anything to its file, therefore no more of it is read than is returned. A process that survives the container can
// hold the file, therefore reading has a deadline, see [guard.OpenFile].

const (
	// maxMessage is how many bytes are read from the end of a file.
	maxMessage = 4096
	// maxLogLines and maxLogBytes are how much is read from the end of a log.
	maxLogLines = 80
	maxLogBytes = 2048
)

// CreateMessage creates the empty file of a container, which any user of the container can write to. An existing file is kept, and is not
// opened.
func CreateMessage(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create termination message file: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o666) // its directory is private
	if errors.Is(err, fs.ErrExist) {
		var info fs.FileInfo
		if info, err = os.Lstat(path); err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", path)
		}
	} else if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Chmod(path, 0o666) // regardless of the umask
	}
	if err != nil {
		return fmt.Errorf("create termination message file: %w", err)
	}
	return nil
}

// messageReader reads the messages of containers. The zero value is ready for use, by several goroutines.
type messageReader struct{ users guard.FileUsers }

// Read returns the message in a file: its last 4096 bytes. A file that does not exist is an empty message. The text of an error is shown in
// place of the message. A file that another process holds is an error, at the latest after a few seconds.
func (r *messageReader) Read(ctx context.Context, path string) (string, error) {
	text, err := guard.UseFile(ctx, &r.users, path, func() (string, error) { return read(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("error on reading termination log %s: %w", path, err)
	}
	return text, nil
}

func read(path string) (string, error) {
	f, err := guard.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return "", err
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
	return clip(string(text)), err
}

// messageFromLog returns the end of a container's log: at most 80 lines and 2048 bytes.
func messageFromLog(ctx context.Context, path string) (string, error) {
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

// clip replaces invalid UTF-8, and truncates the text to the length of a message.
func clip(text string) string {
	limit := maxMessage
	text = strings.ToValidUTF8(text, "\uFFFD")
	for limit < len(text) && limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:min(len(text), limit)]
}
