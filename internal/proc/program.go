package proc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
)

// Executes reports whether a process executes a program, or a copy of it. The files are compared, since builds for development have no
// version.
func Executes(pid int, program string) (bool, error) {
	return sameContent("/proc/"+strconv.Itoa(pid)+"/exe", program)
}

// sameContent reports whether two files have the same content.
func sameContent(one, other string) (bool, error) {
	var files [2]*os.File
	var infos [2]os.FileInfo
	for i, path := range []string{one, other} {
		f, err := os.Open(path)
		if err != nil {
			return false, err
		}
		defer f.Close()
		if infos[i], err = f.Stat(); err != nil {
			return false, err
		}
		files[i] = f
	}
	if os.SameFile(infos[0], infos[1]) {
		return true, nil
	}
	if infos[0].Size() != infos[1].Size() {
		return false, nil
	}
	var parts [2][64 << 10]byte
	for {
		var n [2]int
		for i, f := range files {
			var err error
			if n[i], err = io.ReadFull(f, parts[i][:]); err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if !bytes.Equal(parts[0][:n[0]], parts[1][:n[1]]) {
			return false, nil
		}
		if n[0] == 0 {
			return true, nil
		}
	}
}
