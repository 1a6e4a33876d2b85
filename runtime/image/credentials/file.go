package credentials

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/spec"
)

// maxFile is the maximum size of the credentials file.
const maxFile = 1 << 20

// ErrNotLoggedIn is the error of [File.Logout] if there are no credentials.
var ErrNotLoggedIn = errors.New("not logged in")

// ErrFile is wrapped by the errors of reading and writing the credentials file, and of its credential helpers.
var ErrFile = errors.New("credentials file")

// File is the credentials file of the host, in the format of Docker's config.json. It is read for every pull. It may not exist. Its methods
// are safe for concurrent use.
type File struct {
	// Path of the file; empty: there is none, and nothing can be saved.
	Path string
	// HelperTimeout bounds a call of a credential helper. The default is [HelperTimeout].
	HelperTimeout time.Duration

	mu sync.Mutex // held during a change
}

func (f *File) helperTimeout() time.Duration { return cmp.Or(f.HelperTimeout, HelperTimeout) }

// Logins returns the credentials for a repository, such as registry.example/team/shop, in the order in which they are tried: of the
// credential helper of its registry or, if there is none, of the credential store; then the entries of the file, as [Keyring.Logins]
// returns them.
func (f *File) Logins(ctx context.Context, repository string) ([]Login, error) {
	d, err := f.document()
	if err != nil {
		return nil, err
	}
	var list []Login
	host, _, _ := strings.Cut(repository, "/")
	if h := d.helper(host); h != "" {
		l, ok, err := h.get(ctx, serverOf(host), f.helperTimeout())
		if err != nil {
			return nil, err
		}
		if ok {
			list = append(list, l)
		}
	}
	var k Keyring
	if err := k.add(d.Auths); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrFile, f.Path, err)
	}
	return append(list, k.Logins(repository)...), nil
}

// Login saves credentials for a registry, in its credential helper or in the file.
func (f *File) Login(ctx context.Context, registry string, l Login) error {
	return f.change(registry, func(d *document, auths map[string]json.RawMessage) error {
		if h := d.helper(registry); h != "" {
			return h.store(ctx, serverOf(registry), l, f.helperTimeout())
		}
		deleteEntries(auths, registry)
		text, err := json.Marshal(map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(l.Username + ":" + l.Password))})
		auths[serverOf(registry)] = text
		return err
	})
}

// Logout deletes the credentials for a registry from its credential helper and from the file.
func (f *File) Logout(ctx context.Context, registry string) error {
	return f.change(registry, func(d *document, auths map[string]json.RawMessage) error {
		found := deleteEntries(auths, registry)
		if h := d.helper(registry); h != "" {
			_, ok, err := h.get(ctx, serverOf(registry), f.helperTimeout())
			if ok && err == nil {
				found, err = true, h.erase(ctx, serverOf(registry), f.helperTimeout())
			}
			if err != nil {
				return err
			}
		}
		if !found {
			return ErrNotLoggedIn
		}
		return nil
	})
}

// deleteEntries deletes the entries of a registry without a path, in all forms of its name, and reports whether there were any.
func deleteEntries(auths map[string]json.RawMessage, registry string) (found bool) {
	for key := range auths {
		pattern, err := patternOf(key)
		if err == nil && (pattern == registry || registry == hub && (pattern == hubIndex || pattern == hubHost)) {
			found = true
			delete(auths, key)
		}
	}
	return found
}

// change changes the entries of the file. It keeps what it does not know.
func (f *File) change(registry string, edit func(d *document, auths map[string]json.RawMessage) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, err := f.read()
	if err != nil {
		return err
	}
	var d document
	file, auths := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if err = decode(text, &d); err == nil {
		err = decode(text, &file)
	}
	if raw, ok := file["auths"]; ok && err == nil {
		err = decode(raw, &auths)
	}
	if err != nil {
		return fmt.Errorf("%w %s: %w", ErrFile, f.Path, err)
	}
	if auths == nil { // null
		auths = map[string]json.RawMessage{}
	}
	before := len(auths)
	if err := edit(&d, auths); err != nil {
		return err
	}
	if d.helper(registry) != "" && len(auths) == before {
		return nil
	}
	if file["auths"], err = json.Marshal(auths); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(file, "", "  "); err != nil {
		return err
	}
	return f.write(append(text, '\n'))
}

func (f *File) write(text []byte) error {
	path := f.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %w: %w", ErrFile, err)
	}
	if err := atomicfile.Write(path, text, 0o600); err != nil {
		return fmt.Errorf("write %w: %w", ErrFile, err)
	}
	return nil
}

func (f *File) document() (*document, error) {
	d := &document{}
	if f.Path == "" {
		return d, nil
	}
	text, err := f.read()
	if err != nil {
		return nil, err
	}
	if err := decode(text, d); err != nil {
		return nil, fmt.Errorf("%w %s: %w", ErrFile, f.Path, err)
	}
	return d, nil
}

// read returns the text of the file; {} if it does not exist or is empty.
func (f *File) read() ([]byte, error) {
	text, info, err := spec.ReadFile(f.Path, maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []byte("{}"), nil
	case info != nil && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%w %s is accessible by other users than its owner (mode %04o): chmod 600", ErrFile, f.Path,
			info.Mode().Perm())
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	if len(strings.TrimSpace(string(text))) == 0 {
		text = []byte("{}")
	}
	return text, nil
}

// helper returns the credential helper for a registry; empty: there is none.
func (d *document) helper(registry string) helper {
	names := []string{registry}
	if registry == hub {
		names = append(names, hubIndex, hubServer, hubHost)
	}
	for _, name := range names {
		if h, ok := d.CredHelpers[name]; ok {
			return helper(h)
		}
	}
	return helper(d.CredsStore)
}

// serverOf returns the name of a registry in Docker's files.
func serverOf(registry string) string {
	if registry == hub {
		return hubServer
	}
	return registry
}

// Registry returns the name of a registry, HOST[:PORT], as a person writes it: with a scheme, or one of the names of the Docker Hub.
func Registry(text string) (string, error) {
	pattern, err := patternOf(text)
	if err != nil || strings.ContainsAny(pattern, "/*?\\ ") {
		return "", errors.New("a registry must be HOST or HOST:PORT")
	}
	if pattern == hubIndex || pattern == hubHost {
		return hub, nil
	}
	return strings.ToLower(pattern), nil
}
