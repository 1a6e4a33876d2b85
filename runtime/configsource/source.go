// Package configsource reads the config maps and secrets of pods. A cluster stores them in the API server, Podstead in files.
//
// A config map or a secret comes from the first of these sources that has it: the inline table of the pod file; the directory
// <Dir>/configmaps/<name> or <Dir>/secrets/<name> with one file for each key; for a secret with a credential, the systemd credential.
// Files of secrets must not be accessible by other users, except those with nothing but certificates, which are public.
// Directories and credentials are read on every call. There is no cache but that of decrypted credentials, see [Decrypted].
//
// Reads and decryptions have a timeout, see [WithTimeout] and [Decrypted]. Errors contain names of files and keys, but never a value.
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

// maxBytes is the maximum size of a config map or a secret, as in Kubernetes.
const maxBytes = 1 << 20

// Source is the location of config maps and secrets. Its methods are safe for concurrent use.
type Source struct {
	// Dir contains the directories configmaps/ and secrets/; empty: none.
	Dir string
	// Credentials is the directory of systemd credentials, $CREDENTIALS_DIRECTORY; empty: none.
	Credentials string
	// Decrypted decrypts credentials; nil: each call starts a program.
	Decrypted *Decrypted
}

// NotFoundError reports that a config map or a secret does not exist. It matches [fs.ErrNotExist].
type NotFoundError struct {
	Kind string // "configmap" or "secret"
	Name string
}

// Error returns the kubelet's message.
func (e *NotFoundError) Error() string { return fmt.Sprintf("%s %q not found", e.Kind, e.Name) }

// Is matches [fs.ErrNotExist].
func (*NotFoundError) Is(target error) bool { return target == fs.ErrNotExist }

// ConfigMap returns the values of a config map by key. If it does not exist, the error is a [*NotFoundError]. The caller must not modify
// the result.
func (s Source) ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error) {
	for i := range pod.ConfigMaps {
		if c := &pod.ConfigMaps[i]; c.Name == name {
			return bytesOf(c.Data), nil
		}
	}
	return WithTimeout("configmap", name, func() (map[string][]byte, error) { return s.dir("configmap", name, 0o777) })
}

// Secret returns the values of a secret by key. If it does not exist, the error is a [*NotFoundError]. The caller must not modify the
// result.
func (s Source) Secret(pod *spec.Pod, name string) (map[string][]byte, error) {
	i := slices.IndexFunc(pod.Secrets, func(s spec.Secret) bool { return s.Name == name })
	switch {
	case i < 0:
		return WithTimeout("secret", name, func() (map[string][]byte, error) { return s.dir("secret", name, 0o700) })
	case pod.Secrets[i].CredentialFile != "":
		return s.Decrypted.secret(&pod.Secrets[i])
	case pod.Secrets[i].Credential != "":
		return WithTimeout("secret", name, func() (map[string][]byte, error) { return s.credential(name, pod.Secrets[i].Credential) })
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

// maxReplacements is how often a directory may be replaced while it is read.
const maxReplacements = 100

// dir reads a directory with one file for each key. Files with a permission outside of allowed are an error, see
// [read]. The directory may be a symbolic link, or have its files in a directory that ..data links to, as the volumes of Kubernetes. If
// such a link is changed meanwhile, the directory is read again. The values of two states are never mixed.
func (s Source) dir(kind, name string, allowed fs.FileMode) (map[string][]byte, error) {
	if s.Dir == "" || len(validation.IsDNS1123Subdomain(name)) > 0 { // a path outside of the directory
		return nil, &NotFoundError{Kind: kind, Name: name}
	}
	dir := filepath.Join(s.Dir, kind+"s", name)
	for range maxReplacements {
		real := resolve(dir)
		values, err := readDir(kind, name, real, allowed)
		if resolve(dir) == real {
			return values, err
		}
	}
	return nil, fmt.Errorf("%s %q: %s is replaced continuously", kind, name, dir)
}

// DataLink is the name of a symbolic link to the directory with the current values, as the kubelet writes it. Without it, the values are in
// the directory of the config map or secret itself.
const DataLink = "..data"

// IsKey reports whether a file with this name is a key. Others are ignored.
func IsKey(name string) bool {
	return len(validation.IsConfigMapKey(name)) == 0 && !strings.HasPrefix(name, "..")
}

// resolve returns the directory that contains the files of a directory now.
func resolve(dir string) string {
	for _, path := range []string{filepath.Join(dir, DataLink), dir} {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
	}
	return dir
}

// readDir reads a directory once. Entries that are not keys are ignored: directories, and the temporary files of editors and of atomic
// replacements.
func readDir(kind, name, dir string, allowed fs.FileMode) (map[string][]byte, error) {
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
		if !IsKey(key) {
			continue
		}
		value, err := read(filepath.Join(dir, key), allowed, left)
		switch {
		case errors.Is(err, errIsDir), errors.Is(err, fs.ErrNotExist): // or removed meanwhile
			continue
		case err != nil:
			return nil, fmt.Errorf("%s %q: %w", kind, name, err)
		}
		values[key] = value
		left -= len(value)
	}
	return values, nil
}

// credential reads a systemd credential as a secret with one key, the name of the credential.
func (s Source) credential(name, credential string) (map[string][]byte, error) {
	if s.Credentials == "" {
		return nil, fmt.Errorf("secret %q: credential %s: %w", name, credential, ErrNoCredentials)
	}
	value, err := read(filepath.Join(s.Credentials, filepath.Base(credential)), 0o777, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("secret %q: credential %s: %w", name, credential, err)
	}
	return map[string][]byte{credential: value}, nil
}

// ErrNoCredentials reports that the process has no systemd credentials. It matches [fs.ErrNotExist], so that an optional secret is ignored.
var ErrNoCredentials = fmt.Errorf("the daemon has no systemd credentials: %w", fs.ErrNotExist)

var errIsDir = errors.New("is a directory")

// read reads a file of at most limit bytes. A file with a permission outside of allowed is an error, unless others can only read it
// and its content is public.
func read(path string, allowed fs.FileMode, limit int) ([]byte, error) {
	info, err := os.Stat(path) // opening a FIFO would block
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s %w", path, errIsDir)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have been replaced by a FIFO
	if err != nil {
		return nil, err
	}
	defer f.Close()
	value, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	switch {
	case err != nil:
		return nil, err
	case len(value) > limit:
		return nil, fmt.Errorf("%s exceeds the maximum of %d bytes for all keys", path, maxBytes)
	case info.Mode().Perm()&^(allowed|0o055) != 0, info.Mode().Perm()&^allowed != 0 && !isPublic(value):
		return nil, fmt.Errorf("%s is accessible by other users than its owner (mode %04o): chmod 600", path, info.Mode().Perm())
	}
	return value, nil
}
