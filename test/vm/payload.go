package vm

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
)

// sector is what the size of a disk is a multiple of.
const sector = 512

// WritePayload writes what is in a folder as a tar that can be a disk, which the machine sees as /dev/vdb.
func WritePayload(path, dir string) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = fmt.Errorf("write payload: %w", err)
		}
	}()
	w := tar.NewWriter(f)
	if err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Truncate((info.Size() + sector - 1) / sector * sector)
}
