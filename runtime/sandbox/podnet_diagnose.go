package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/podstead/podstead/runtime/network"
)

// DiagnoseNetwork checks the network of a runtime for faults, whether the runtime is running or not. It changes nothing.
func DiagnoseNetwork(ctx context.Context, o NetworkOptions) (findings []network.Finding, err error) {
	dir, err := os.MkdirTemp("", "podstead-doctor-") // the directories of the runtime may not exist yet
	if err != nil {
		return nil, fmt.Errorf("diagnose network: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	options := o.network()
	for name, file := range map[string]*string{"state.json": &options.StateFile, "leases.json": &options.LeaseFile} {
		text, err := os.ReadFile(*file)
		*file = filepath.Join(dir, name)
		if err == nil {
			err = os.WriteFile(*file, text, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("diagnose network: %w", err)
		}
	}
	n, err := network.New(ctx, options)
	if err != nil {
		return nil, err
	}
	findings, err = n.Diagnose(ctx)
	return findings, errors.Join(err, n.Close())
}
