package filter

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// format is changed when the meaning of the files in a directory changes.
const format = "1"

// libraries are where distributions install libseccomp. One elsewhere is not noticed when it is replaced; see maxAge.
var libraries = []string{
	"/lib/libseccomp.so.*", "/lib/*/libseccomp.so.*", "/lib64/libseccomp.so.*", "/usr/lib/libseccomp.so.*", "/usr/lib/*/libseccomp.so.*",
	"/usr/lib64/libseccomp.so.*", "/usr/local/lib/libseccomp.so.*", "/usr/local/lib/*/libseccomp.so.*",
}

// identity returns what a filter depends on beside the profile: the OCI runtime, libseccomp, which knows names of system calls, and the kernel,
// whose features libseccomp detects.
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
	fmt.Fprintf(sum, "%s\x00%s\x00%s\x00%s\x00", format, unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:]), unix.ByteSliceToString(u.Machine[:]))
	files := []string{path}
	for _, pattern := range libraries {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	for _, file := range files {
		var st unix.Stat_t
		if err := unix.Stat(file, &st); err != nil {
			return nil, &os.PathError{Op: "stat", Path: file, Err: err}
		}
		fmt.Fprintf(sum, "%s\x00%d %d %d %v %v\x00", file, st.Dev, st.Ino, st.Size, st.Mtim, st.Ctim)
	}
	return sum.Sum(nil), nil
}
