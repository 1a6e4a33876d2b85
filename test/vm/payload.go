package vm

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
)

// sector is the unit of a disk's size.
const sector = 512

// WritePayload writes a directory as a tar archive that can be attached as a disk. The virtual machine sees it as /dev/vdb.
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
