package ocibundle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// filterFormat is changed when the meaning of the files in a directory changes.
const filterFormat = "2"

// libraries are the directories in which distributions install libseccomp, or in one of whose directories. One elsewhere is not noticed
// when it is replaced; see maxAge.
var libraries = []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"}

// library is the name of libseccomp by which the OCI runtime loads it. It is a link to the file with the whole version.
const library = "libseccomp.so.2"

// identity returns what a filter depends on beside the profile: the OCI runtime, libseccomp, which knows names of system calls, and the
// kernel, whose features libseccomp detects.
func identity(program string) ([]byte, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, err
	}
	fmt.Fprintf(sum, "%s\x00%s\x00%s\x00%s\x00", filterFormat, unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:]),
		unix.ByteSliceToString(u.Machine[:]))
	if err := addFile(sum, path); err != nil {
		return nil, err
	}
	for _, dir := range libraries {
		if err := addLibraries(sum, dir); err != nil {
			return nil, err
		}
	}
	return sum.Sum(nil), nil
}

// addLibraries adds libseccomp in a directory, which may not exist, and in the directories in it.
func addLibraries(sum hash.Hash, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	candidates := []string{filepath.Join(dir, library)}
	for _, e := range entries {
		if e.IsDir() {
			candidates = append(candidates, filepath.Join(dir, e.Name(), library))
		}
	}
	for _, file := range candidates {
		if err := addFile(sum, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// addFile adds what changes when a file is replaced.
func addFile(sum hash.Hash, file string) error {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return &os.PathError{Op: "stat", Path: file, Err: err}
	}
	fmt.Fprintf(sum, "%s\x00%d %d %d %v %v\x00", file, st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	return nil
}
