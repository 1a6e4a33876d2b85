package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/runtime/oci"
	"github.com/podstead/podstead/runtime/volume"
	"github.com/podstead/podstead/spec"
)

// This file keeps the values of secrets out of what the container engine stores, and out of error messages.

// redacted replaces the value of a secret.
const redacted = "[hidden]"

// secretSnapshot returns each config map and secret as it was when it was first read, so that the start of a container sees one state of
// them. It remembers the values of the secrets, and those of files in volumes, which may be secrets. It is not safe for concurrent use.
type secretSnapshot struct {
	source     volume.Values
	files      readFile
	keys       map[envFile]map[string]bool // that the container takes from files
	kept       map[string]map[string][]byte
	envFiles   map[envFile]*oci.EnvFile
	fileBytes  int                        // of all files
	ofFiles    map[spec.FileKeyRef]string // values
	valueBytes int                        // of all values of files
	secrets    []string
}

// envFile is a file in a volume.
type envFile struct{ volume, path string }

// maxFileBytes is the size of all files together that are read for a start: the daemon does that work, and not the container.
const maxFileBytes = 16 * volume.MaxFileBytes

// readFile reads a file in a volume of a pod, see [volume.Set.ReadFile].
type readFile func(volume, path string) ([]byte, error)

// newSecretSnapshot returns a snapshot that reads from source, and from files for the variables of a container.
func newSecretSnapshot(source volume.Values, files readFile, c *spec.Container) *secretSnapshot {
	keys := map[envFile]map[string]bool{}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil && from.FileKeyRef != nil {
			at := envFile{from.FileKeyRef.VolumeName, from.FileKeyRef.Path}
			if keys[at] == nil {
				keys[at] = map[string]bool{}
			}
			keys[at][from.FileKeyRef.Key] = true
		}
	}
	return &secretSnapshot{
		source: source, files: files, keys: keys, kept: map[string]map[string][]byte{},
		envFiles: map[envFile]*oci.EnvFile{}, ofFiles: map[spec.FileKeyRef]string{},
	}
}

// filesOf returns what reads files in volumes of a pod.
func (s *Service) filesOf(ctx context.Context, uid string, pod *spec.Pod) readFile {
	return func(volume, path string) ([]byte, error) {
		return s.config.Volumes.ReadFile(ctx, uid, pod, volume, path)
	}
}

// ConfigMap implements [oci.Values].
func (s *secretSnapshot) ConfigMap(pod *spec.Pod, name string) (map[string][]byte, error) {
	return s.get("c/"+name, func() (map[string][]byte, error) { return s.source.ConfigMap(pod, name) })
}

// Secret implements [oci.Values].
func (s *secretSnapshot) Secret(pod *spec.Pod, name string) (map[string][]byte, error) {
	return s.get("s/"+name, func() (map[string][]byte, error) {
		values, err := s.source.Secret(pod, name)
		for _, value := range values {
			s.secrets = append(s.secrets, string(value))
		}
		return values, err
	})
}

// FileValue implements [oci.Values].
func (s *secretSnapshot) FileValue(ref *spec.FileKeyRef) (string, error) {
	if value, known := s.ofFiles[*ref]; known {
		return value, nil
	}
	file, err := s.envFile(envFile{ref.VolumeName, ref.Path})
	if err != nil {
		return "", err
	}
	value, err := file.Value(ref.Key)
	if s.valueBytes += len(value); s.valueBytes > spec.MaxProcessBytes {
		return "", fmt.Errorf("values of files have more than %d bytes in total", spec.MaxProcessBytes)
	}
	if err == nil {
		s.ofFiles[*ref] = value
	}
	if value != "" {
		s.secrets = append(s.secrets, value)
	}
	return value, err
}

// envFile returns a file, which is read once.
func (s *secretSnapshot) envFile(at envFile) (*oci.EnvFile, error) {
	if f := s.envFiles[at]; f != nil {
		return f, nil
	}
	tooLarge := fmt.Errorf("files of variables have more than %d bytes in total", maxFileBytes)
	if s.fileBytes > maxFileBytes {
		return nil, tooLarge
	}
	text, err := s.files(at.volume, at.path)
	if err != nil {
		return nil, err
	}
	if s.fileBytes += len(text); s.fileBytes > maxFileBytes {
		return nil, tooLarge
	}
	s.envFiles[at] = oci.NewEnvFile(text, s.keys[at])
	return s.envFiles[at], nil
}

func (s *secretSnapshot) get(key string, read func() (map[string][]byte, error)) (map[string][]byte, error) {
	if values, ok := s.kept[key]; ok {
		return values, nil
	}
	values, err := read()
	if err != nil {
		return nil, err
	}
	s.kept[key] = values
	return values, nil
}

// HasSecrets reports whether a secret with a value was read.
func (s *secretSnapshot) HasSecrets() bool { return len(s.secrets) > 0 }

// Masked returns the same values with those of secrets replaced by [redacted].
func (s *secretSnapshot) Masked() oci.Values { return masked{s} }

type masked struct{ *secretSnapshot }

func (m masked) Secret(pod *spec.Pod, name string) (map[string][]byte, error) {
	values, err := m.secretSnapshot.Secret(pod, name)
	hidden := make(map[string][]byte, len(values))
	for key := range values {
		hidden[key] = []byte(redacted)
	}
	return hidden, err
}

func (m masked) FileValue(ref *spec.FileKeyRef) (string, error) {
	value, err := m.secretSnapshot.FileValue(ref)
	if value != "" {
		value = redacted
	}
	return value, err
}

// minSubstring is the length of the shortest value that is replaced anywhere in an error. A shorter value would match by chance. It is
// replaced only in quotes, which is how the error for a missing program names it.
const minSubstring = 4

// Redact removes the values of the secrets from an error. The error for a missing program, for example, contains its name, which may be
// the value of a secret. A nil error stays nil.
func (s *secretSnapshot) Redact(err error) error {
	if err == nil || len(s.secrets) == 0 {
		return err
	}
	text := err.Error()
	longest := order.Sorted(slices.Values(s.secrets), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range longest {
		if secret == "" {
			continue
		}
		quoted := strconv.Quote(secret)
		text = strings.ReplaceAll(text, quoted, strconv.Quote(redacted))
		if len(secret) >= minSubstring {
			text = strings.ReplaceAll(text, secret, redacted)
			text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], redacted)
		}
	}
	if text == err.Error() {
		return err
	}
	return redactedError{text, err}
}

// redactError removes the values of the secrets in a container's variables from an error. If a secret cannot be read now, the text of the
// error is replaced. A nil error stays nil.
func redactError(source volume.Values, files readFile, pod *spec.Pod, c *spec.Container, err error) error {
	values := newSecretSnapshot(source, files, c)
	unreadable := false
	check := func(err error) {
		unreadable = unreadable || err != nil && !errors.Is(err, fs.ErrNotExist) // what is missing cannot be in the error
	}
	read := func(name string) {
		_, err := values.Secret(pod, name)
		check(err)
	}
	for i := range c.EnvFrom {
		if ref := c.EnvFrom[i].SecretRef; ref != nil {
			read(ref.Name)
		}
	}
	for i := range c.Env {
		switch from := c.Env[i].ValueFrom; {
		case from == nil, unreadable:
		case from.SecretKeyRef != nil:
			read(from.SecretKeyRef.Name)
		case from.FileKeyRef != nil:
			_, err := values.FileValue(from.FileKeyRef)
			check(err)
		}
	}
	if unreadable && err != nil {
		return redactedError{"the error is hidden: it may contain a secret that cannot be read now", err}
	}
	return values.Redact(err)
}

// redactedError is an error without the values of secrets. It matches the same targets as the original error.
type redactedError struct {
	text string
	err  error
}

func (e redactedError) Error() string { return e.text }

// Is compares the original error, without returning it.
func (e redactedError) Is(target error) bool { return errors.Is(e.err, target) }
