package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/spec"
)

// resolveBelow is how a path below a volume is resolved: links count, those that lead out are an error (EXDEV), and so is
// every other way out, also for a container that changes the tree at the same time.
const resolveBelow = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS

// resolveTries is how often a path is resolved again after the kernel saw a change that may have led out (EAGAIN).
const resolveTries = 32

// subPathOf is the relative path that a mount names, "" for the whole volume.
func subPathOf(m *spec.VolumeMount, vars map[string]string) (string, error) {
	sub := m.SubPath
	if m.SubPathExpr != "" {
		var err error
		if sub, err = expand(m.SubPathExpr, vars); err != nil {
			return "", err
		}
	}
	if sub == "" {
		return "", nil
	}
	if path.IsAbs(sub) {
		return "", fmt.Errorf("error SubPath `%s` must not be an absolute path", sub)
	}
	if slices.Contains(strings.Split(sub, "/"), "..") {
		return "", fmt.Errorf("unable to provision SubPath `%s`: must not contain '..'", sub)
	}
	return path.Clean(sub), nil
}

// reference finds what [oci.Expand] takes for an escaped dollar or a reference.
var reference = regexp.MustCompile(`\$\$|\$\(([^)]*)\)`)

// expand replaces $(NAME), which must be set and not empty.
func expand(expression string, vars map[string]string) (string, error) {
	var missing []string
	for _, match := range reference.FindAllStringSubmatch(expression, -1) {
		if match[0] != "$$" && vars[match[1]] == "" {
			missing = append(missing, match[1])
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return "", fmt.Errorf("missing value for %s", strings.Join(slices.Compact(missing), ", "))
	}
	return oci.Expand(expression, vars), nil
}

// openBelow opens what a relative path names below a folder, for mounting it (O_PATH).
func openBelow(root int, sub string) (int, error) {
	var fd int
	err := error(unix.EAGAIN)
	for range resolveTries {
		fd, err = unix.Openat2(root, sub, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolveBelow})
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if errors.Is(err, unix.EXDEV) {
		return -1, fmt.Errorf("subpath %q not within volume path", sub)
	}
	if err != nil {
		return -1, fmt.Errorf("open subpath %q: %w", sub, err)
	}
	return fd, nil
}

// openOrMake opens what a relative path names below a folder. Where there is nothing it makes folders with the mode of the
// volume's own.
func openOrMake(root int, sub string) (int, error) {
	fd, err := openBelow(root, sub)
	if !errors.Is(err, fs.ErrNotExist) {
		return fd, err
	}
	var volume unix.Stat_t
	if err := unix.Fstat(root, &volume); err != nil {
		return -1, err
	}
	parts := strings.Split(sub, "/")
	for n := range slices.Backward(parts) {
		fd, err = openBelow(root, path.Join(".", path.Join(parts[:n]...)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return -1, err
		}
		return makeBelow(fd, parts[n:], volume.Mode&^unix.S_IFMT)
	}
	return -1, err
}

// makeBelow makes folders in each other, opens the innermost, and closes the one that it begins with. What another has put
// in the way meanwhile is an error, unless it is a folder.
func makeBelow(fd int, names []string, mode uint32) (int, error) {
	for _, name := range names {
		next, err := makeFolder(fd, name, mode)
		unix.Close(fd)
		if err != nil {
			return -1, fmt.Errorf("make folder %q: %w", name, err)
		}
		fd = next
	}
	return fd, nil
}

func makeFolder(parent int, name string, mode uint32) (int, error) {
	made := unix.Mkdirat(parent, name, mode&0o777)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return -1, made
	}
	fd, err := unix.Openat2(parent, name, &unix.OpenHow{Flags: openEntry | unix.O_DIRECTORY, Resolve: resolveEntry})
	if err != nil || made != nil {
		return fd, err
	}
	if err := unix.Chmod(fdPath(fd), mode); err != nil { // whatever the umask is
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// bind mounts what a descriptor stands for at a path that it makes, a file or a folder. Mounts below it are seen there with MS_REC
// only.
func bind(fd int, target string, recursive uintptr) error {
	if err := makeTarget(fd, target); err != nil {
		return err
	}
	if err := unix.Mount(fdPath(fd), target, "", unix.MS_BIND|recursive, ""); err != nil {
		return fmt.Errorf("bind mount: %w", err)
	}
	return nil
}

// makeTarget makes a path on which what a descriptor stands for can be mounted.
func makeTarget(fd int, target string) error {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.Mkdir(target, 0o700)
	}
	return os.WriteFile(target, nil, 0o600)
}
