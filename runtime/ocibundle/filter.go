package ocibundle

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/podstead/podstead/internal/atomicfile"
)

// Files named filter keep the seccomp filters that crun has compiled, so that each is compiled once and not for every container.
//
// crun compiles the profile in a specification with libseccomp and keeps the result with the container. It is copied from there, and passes
// it to crun with the next specification that has the same profile, in [filterAnnotation]. No other code compiles filters, so that a kept
// one is the same as a new one, byte by byte. The specification keeps its profile, so that a container without a kept filter has one, too.
//
// They own the directory of the filters, which must be accessible to root only. Other OCI runtimes ignore the annotation, and leave no
// filter to copy.

// filterAnnotation of a specification is a compiled filter for crun, in base64. It replaces the profile.
const filterAnnotation = "run.oci.seccomp_bpf_data"

const (
	// instructionBytes is the size of an instruction, maxInstructions the kernel's limit for a filter (BPF_MAXINSNS).
	instructionBytes, maxInstructions = 8, 4096
	// maxAge bounds how long a filter is used after a change that [identity] does not notice.
	maxAge = 24 * time.Hour
	// maxFilters limits the directory. The oldest filter is removed.
	maxFilters = 64
)

// filterStore contains the filters in a directory. Several processes can use it at the same time.
type filterStore struct{ Dir string }

// UseFilter puts the kept seccomp filter of a directory for a bundle into its specification, see [filterStore.Use].
func UseFilter(dir, bundle, program string) (keep func(compiled string) error, err error) {
	return filterStore{Dir: dir}.Use(bundle, program)
}

// Use puts the kept filter for a bundle into its specification. If there is none, keep is not nil: it keeps the one of the container, from
// the file in which crun has compiled it. After an error, the specification is complete and has no filter of this package.
func (s filterStore) Use(bundle, program string) (keep func(compiled string) error, err error) {
	path := filepath.Join(bundle, "config.json")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // the OCI runtime reports what is missing
	}
	if err != nil {
		return nil, err
	}
	spec, err := parseSpecification(text)
	if err != nil || spec.profile == nil {
		return nil, err
	}
	id, err := identity(program)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(slices.Concat(id, spec.profile))
	file := filepath.Join(s.Dir, hex.EncodeToString(sum[:]))
	kept, err := load(file)
	if err != nil {
		return func(compiled string) error { return s.keep(file, compiled) }, nil // missing, old or damaged
	}
	if text, err = spec.with(base64.StdEncoding.EncodeToString(kept)); err != nil {
		return nil, err
	}
	return nil, rewrite(path, text)
}

// specification is a specification, of which only the annotations are changed.
type specification struct {
	fields      map[string]json.RawMessage
	annotations map[string]string
	profile     json.RawMessage // nil: none
}

func parseSpecification(text []byte) (specification, error) {
	var s specification
	var linux struct {
		Seccomp json.RawMessage `json:"seccomp"`
	}
	err := json.Unmarshal(text, &s.fields)
	if err == nil && s.fields["linux"] != nil {
		err = json.Unmarshal(s.fields["linux"], &linux)
	}
	if err == nil && s.fields["annotations"] != nil {
		err = json.Unmarshal(s.fields["annotations"], &s.annotations)
	}
	if err != nil {
		return s, fmt.Errorf("read specification: %w", err)
	}
	if string(linux.Seccomp) != "null" {
		s.profile = linux.Seccomp
	}
	return s, nil
}

// with returns the text of a specification with the annotation.
func (s specification) with(value string) (text []byte, err error) {
	if s.annotations == nil {
		s.annotations = map[string]string{}
	}
	s.annotations[filterAnnotation] = value
	if s.fields["annotations"], err = json.Marshal(s.annotations); err != nil {
		return nil, err
	}
	return json.Marshal(s.fields)
}

// load returns a kept filter that is whole and not too old.
func load(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if age := time.Since(info.ModTime()); age > maxAge || age < 0 {
		return nil, errors.New("too old")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if len(text) < sha256.Size {
		return nil, errors.New("truncated")
	}
	program := text[sha256.Size:]
	if sum := sha256.Sum256(program); string(sum[:]) != string(text[:sha256.Size]) {
		return nil, errors.New("checksum does not match")
	}
	return program, check(program)
}

// check returns an error if a file cannot be a filter.
func check(program []byte) error {
	if n := len(program); n == 0 || n%instructionBytes != 0 || n > maxInstructions*instructionBytes {
		return fmt.Errorf("not a filter: %d bytes", n)
	}
	return nil
}

// keep copies a compiled filter. It succeeds without one, which is so with other OCI runtimes than crun.
func (s filterStore) keep(file, compiled string) error {
	program, err := os.ReadFile(compiled)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := check(program); err != nil {
		return fmt.Errorf("%s: %w", compiled, err)
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := s.makeRoom(); err != nil {
		return err
	}
	sum := sha256.Sum256(program)
	return atomicfile.WriteVolatile(file, append(sum[:], program...), 0o600)
}

// makeRoom removes the oldest filters.
func (s filterStore) makeRoom() error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil || len(entries) < maxFilters {
		return err
	}
	kept := map[string]time.Time{} // modification times by path
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // another process may have removed it
			kept[filepath.Join(s.Dir, entry.Name())] = info.ModTime()
		}
	}
	for len(kept) >= maxFilters {
		oldest := ""
		for path, modified := range kept {
			if oldest == "" || modified.Before(kept[oldest]) {
				oldest = path
			}
		}
		if err := os.Remove(oldest); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		delete(kept, oldest)
	}
	return nil
}

// rewrite replaces a specification. Its mode stays.
func rewrite(path string, text []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return atomicfile.WriteVolatile(path, text, info.Mode().Perm())
}
