package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/podstead/podstead/internal/atomicfile"
)

// StoppedError reports that the daemon was stopped on request. It matches [ErrUnavailable]. A client that was connected must not start a
// new daemon.
type StoppedError struct {
	Pods int // that the daemon has left behind
}

// Error returns the message.
func (e *StoppedError) Error() string { return "the daemon was stopped" }

// Is reports whether the target is [ErrUnavailable].
func (e *StoppedError) Is(target error) bool { return target == ErrUnavailable }

// stopRecord is the content of the file beside the socket of a daemon that was stopped on request. A file reaches every client, whether it
// is connected at that moment or not.
type stopRecord struct {
	Pods int `json:"pods"`
}

func stopRecordPath(socket string) string { return socket + ".stopped" }

// RecordStop reports to clients that the daemon stops on request and leaves pods behind. The daemon calls it before its server closes.
func RecordStop(socket string, pods int) error {
	text, err := json.Marshal(stopRecord{Pods: pods})
	if err == nil {
		err = atomicfile.WriteVolatile(stopRecordPath(socket), text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("record stop of the daemon: %w", err)
	}
	return nil
}

// RemoveStopRecord removes the record of an earlier daemon.
func RemoveStopRecord(socket string) error {
	if err := os.Remove(stopRecordPath(socket)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ReadStopRecord returns a [*StoppedError] if the daemon that ran last was stopped on request and no other one has started, and nil
// otherwise.
func ReadStopRecord(socket string) error {
	var r stopRecord
	text, err := os.ReadFile(stopRecordPath(socket))
	if err != nil || json.Unmarshal(text, &r) != nil {
		return nil
	}
	return &StoppedError{Pods: r.Pods}
}
