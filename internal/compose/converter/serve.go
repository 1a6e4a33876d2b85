package converter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/compose"
)

// Serve is the process of [compose.Convert]: it limits itself, converts the request on in, and writes the result to out. The version is
// that of the program.
func Serve(ctx context.Context, version string, in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	var of struct{ Version string } // the other fields may differ in another version
	if err := json.Unmarshal(text, &of); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if of.Version != version {
		return fmt.Errorf("%w: %s and %s", compose.ErrVersion, of.Version, version)
	}
	var q compose.Request
	if err := json.Unmarshal(text, &q); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	if len(q.Files) == 0 || len(q.Names) != len(q.Files) {
		return errors.New("read the request: no files")
	}
	if err := limit(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, compose.MaxDuration) // also if the parent was killed
	defer cancel()
	done := make(chan *compose.Result, 1)
	go func() { done <- Convert(ctx, &q) }() // reading a pipe blocks, and cannot be canceled
	select {
	case r := <-done:
		return json.NewEncoder(out).Encode(r)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// limit limits this process, see [compose.Convert].
func limit() error {
	for _, l := range []struct {
		resource int
		limit    uint64
	}{
		{unix.RLIMIT_CPU, compose.MaxCPUSeconds},
		{unix.RLIMIT_DATA, compose.MaxDataBytes},
		{unix.RLIMIT_NOFILE, compose.MaxOpenFiles},
		{unix.RLIMIT_CORE, 0},
	} {
		var current unix.Rlimit
		if err := unix.Getrlimit(l.resource, &current); err != nil {
			return fmt.Errorf("read the limits of the converter: %w", err)
		}
		limit := min(l.limit, current.Max) // which only root can raise
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit the converter: %w", err)
		}
	}
	return nil
}
