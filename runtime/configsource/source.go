// Package configsource finds the config maps and secrets of pods, which a cluster keeps in its API server and a machine in files.
//
// What a name stands for comes from the first of: the inline table of the pod file; a folder with one file a key,
// <Dir>/configmaps/<name> or <Dir>/secrets/<name>; of a secret that names one, a systemd credential. Folders and
// credentials are read anew each time: what changes is seen by whoever asks next.
//
// The package reads, and keeps nothing. A file system that does not answer is given up after [Patience]. Errors name files and
// keys, and never tell a value.
package configsource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/spec"
)

// maxBytes is what a config map or a secret may hold in all, as in Kubernetes.
const maxBytes = 1 << 20

// Source is where config maps and secrets of this machine are. Its methods are safe for concurrent use.
type Source struct {
	// Dir holds the folders configmaps and secrets; /etc/podstead by default. Empty: there is none.
	Dir string
	// Credentials is the folder of systemd's credentials, $CREDENTIALS_DIRECTORY; empty: there is none.
	Credentials string
}

// NotFoundError says that there is no config map or secret of a name. It is [fs.ErrNotExist].
type NotFoundError struct {
	Kind string // "configmap" or "secret"
	Name string
}

// Error is the kubelet's.
func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %q not found", e.Kind, e.Name) }

// Is makes it [fs.ErrNotExist].
func (*NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// ConfigMap returns the values of a config map by key. One that is not there is a [*NotFoundError]. The caller must not
// change what it gets.
func (s Source) ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error) {
	for i := range pod.ConfigMaps {
		if c := &pod.ConfigMaps[i]; c.Name == name {
			return bytesOf(c.Data), nil
		}
	}
	return InTime("configmap", name, func() (map[string][]byte, error) { return s.folder("configmap", name, 0o777) })
}

// Secret returns the values of a secret by key. One that is not there is a [*NotFoundError]. The caller must not change
// what it gets.
func (s Source) Secret(pod *spec.Pod, name string) (map[string][]byte, error) {
	i := slices.IndexFunc(pod.Secrets, func(s spec.Secret) bool { return s.Name == name })
	switch {
	case i < 0:
		return InTime("secret", name, func() (map[string][]byte, error) { return s.folder("secret", name, 0o700) })
	case pod.Secrets[i].Credential != "":
		return InTime("secret", name, func() (map[string][]byte, error) { return s.credential(name, pod.Secrets[i].Credential) })
	case pod.Secrets[i].Lost():
		return nil, fmt.Errorf("secret %q: its values were lost with the state of the pod: create the pod again", name)
	}
	return bytesOf(pod.Secrets[i].Data), nil
}

func bytesOf[V ~string](data map[string]V) map[string][]byte {
	values := make(map[string][]byte, len(data))
	for key, value := range data {
		values[key] = []byte(value)
	}
	return values
}

// replacements is how often a folder may be replaced while it is read, before that is an error.
const replacements = 100

// folder reads a folder of one file a key, none of which may have a permission outside of allowed. It may be a link, or have its
// files in a folder to which ..data is a link, as the volumes of a cluster do: where such a link has come to lead elsewhere
// meanwhile, it is read again. So values of two states are never mixed.
func (s Source) folder(kind, name string, allowed fs.FileMode) (map[string][]byte, error) {
	if s.Dir == "" || len(validation.IsDNS1123Subdomain(name)) > 0 { // it could lead out of the folder
		return nil, &NotFoundError{Kind: kind, Name: name}
	}
	dir := filepath.Join(s.Dir, kind+"s", name)
	for range replacements {
		real := resolve(dir)
		values, err := readFolder(kind, name, real, allowed)
		if resolve(dir) == real {
			return values, err
		}
	}
	return nil, fmt.Errorf("%s %q: %s is replaced again and again", kind, name, dir)
}

// resolve is the folder that a folder of values leads to now.
func resolve(dir string) string {
	for _, path := range []string{filepath.Join(dir, "..data"), dir} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	return dir
}

// readFolder reads a folder once. What cannot be a key is no file of it: folders, and names such as those that editors and atomic
// replacements leave beside a file.
func readFolder(kind, name, dir string, allowed fs.FileMode) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &NotFoundError{Kind: kind, Name: name}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", kind, name, err)
	}
	values, left := map[string][]byte{}, maxBytes
	for _, entry := range entries {
		key := entry.Name()
		if len(validation.IsConfigMapKey(key)) > 0 || strings.HasPrefix(key, "..") {
			continue
		}
		value, err := read(filepath.Join(dir, key), allowed, left)
		switch {
		case errors.Is(err, errFolder), errors.Is(err, fs.ErrNotExist): // taken away since
			continue
		case err != nil:
			return nil, fmt.Errorf("%s %q: %w", kind, name, err)
		}
		values[key] = value
		left -= len(value)
	}
	return values, nil
}

// credential reads a secret of one key, its own name, that systemd has given this process.
func (s Source) credential(name, credential string) (map[string][]byte, error) {
	if s.Credentials == "" {
		return nil, fmt.Errorf("secret %q: credential %s: %w", name, credential, errNoCredentials)
	}
	value, err := read(filepath.Join(s.Credentials, filepath.Base(credential)), 0o777, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("secret %q: credential %s: %w", name, credential, err)
	}
	return map[string][]byte{credential: value}, nil
}

// errNoCredentials is [fs.ErrNotExist], so that an optional secret is left out.
var errNoCredentials = fmt.Errorf("the daemon was given no credentials by systemd: %w", fs.ErrNotExist)

var errFolder = errors.New("is a folder")

// read reads a file of at most limit bytes that has no permission outside of allowed.
func read(path string, allowed fs.FileMode, limit int) ([]byte, error) {
	info, err := os.Stat(path) // an open FIFO would wait for its writer
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s %w", path, errFolder)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", path)
	case info.Mode().Perm()&^allowed != 0:
		return nil, fmt.Errorf("%s can be read by others than its owner (mode %04o): chmod 600", path, info.Mode().Perm())
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be a FIFO by now
	if err != nil {
		return nil, err
	}
	defer f.Close()
	value, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(value) > limit {
		err = fmt.Errorf("%s makes it longer than %d bytes", path, maxBytes)
	}
	return value, err
}
