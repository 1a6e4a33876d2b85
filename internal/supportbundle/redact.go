package supportbundle

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/plain"
)

const (
	// maxBatch bounds the texts of a request for redaction, in bytes, and maxTexts their number.
	maxBatch = 1 << 20
	maxTexts = 20_000
	// maxSecretFile bounds what is read of a file with secrets.
	maxSecretFile = 16 << 20
	// maxSecretFiles bounds how many of them are read.
	maxSecretFiles = 10_000
)

// redactor replaces values of secrets: those that the daemon knows, and those in files of this host.
type redactor struct {
	// daemon replaces the values of the pods of the daemon; nil: it is not running, or does not do it for this user.
	daemon func(ctx context.Context, texts []string) (api.Redacted, error)
	local  *plain.Redactor
	// complete reports that all secrets are known, except those of pods in unreadable.
	complete   bool
	unreadable map[string]bool
}

// findSecrets prepares the redaction. It is the first part: without it nothing can be redacted.
func (c *collector) findSecrets(ctx context.Context) error {
	c.redactor = &redactor{local: plain.NewRedactor(nil), unreadable: map[string]bool{}}
	values, localErr := within(ctx, func(context.Context) ([]string, error) { return localSecrets(c.Config.ConfigDir, c.Config.StateDir) })
	c.redactor.local = plain.NewRedactor(values)
	_, err := c.Client.Version(ctx)
	switch {
	case errors.Is(err, api.ErrUnavailable):
		c.stopped = true
		c.note("the daemon is not running: there is no status, and there are no explanations; events and logs are those in files")
		c.redactor.complete = localErr == nil
		return localErr
	case err != nil:
		return err
	}
	c.running = true
	r, err := c.Client.Redact(ctx, nil)
	if err != nil {
		return fmt.Errorf("logs are left out, because values of secrets in them cannot be redacted: %w", err)
	}
	c.redactor.daemon, c.redactor.complete = c.Client.Redact, true
	for _, name := range r.Unreadable {
		c.redactor.unreadable[name] = true
		c.note("pod %s: its logs and messages are withheld, because its secrets cannot be read", name)
	}
	return nil
}

// texts replaces the values in texts.
func (r *redactor) texts(ctx context.Context, texts []string) ([]string, error) {
	redacted := make([]string, 0, len(texts))
	for len(texts) > 0 {
		n, size := 0, 0
		for n < len(texts) && n < maxTexts && (n == 0 || size+len(texts[n]) <= maxBatch) {
			size += len(texts[n])
			n++
		}
		batch := texts[:n]
		if r.daemon != nil {
			response, err := r.daemon(ctx, batch)
			if err != nil {
				return nil, fmt.Errorf("redact: %w", err)
			}
			if len(response.Texts) != n {
				return nil, fmt.Errorf("redact: the daemon returned %d of %d texts", len(response.Texts), n)
			}
			batch = response.Texts
		}
		for _, text := range batch {
			redacted = append(redacted, r.local.Text(text))
		}
		texts = texts[n:]
	}
	return redacted, nil
}

// lines replaces the values in the lines of a text.
func (r *redactor) lines(ctx context.Context, text string) (string, error) {
	redacted, err := r.texts(ctx, strings.Split(text, "\n"))
	return strings.Join(redacted, "\n"), err
}

// value returns a value as generic JSON, with the values of secrets in its strings replaced. Names of fields are not changed.
func (r *redactor) value(ctx context.Context, v any) (any, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	var generic any
	if err := decoder.Decode(&generic); err != nil {
		return nil, err
	}
	var found []string
	visitStrings(generic, func(s string) string { found = append(found, s); return s })
	redacted, err := r.texts(ctx, found)
	if err != nil {
		return nil, err
	}
	next := 0
	return visitStrings(generic, func(string) string { next++; return redacted[next-1] }), nil
}

// visitStrings replaces all strings of a generic JSON value by the results of a function, always in the same order.
func visitStrings(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = visitStrings(v[i], f)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			v[key] = visitStrings(v[key], f)
		}
	}
	return v
}

// localSecrets returns the values of the secrets in the configuration directory and of the credentials of the service, and the inline
// secrets in state files, with those of earlier generations. An error means that there may be more.
func localSecrets(configDir, stateDir string) (values []string, err error) {
	add := func(path string, text []byte) { values = append(values, string(text)) }
	fromState := func(_ string, text []byte) { values = append(values, valuesIn(text)...) }
	var errs []error
	for _, source := range []struct {
		pattern string
		add     func(path string, text []byte)
	}{
		{filepath.Join(configDir, "secrets", "*", "*"), add},
		{filepath.Join(configDir, "secrets", "*", "..data", "*"), add},
		{"/run/credentials/podstead.service/*", add},
		{filepath.Join(stateDir, "pods", "*.json*"), fromState},
		{filepath.Join(stateDir, "generations", "*.json*"), fromState},
	} {
		dir := source.pattern[:strings.Index(source.pattern, "/*")]
		if _, err := os.ReadDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		files, err := filepath.Glob(source.pattern)
		if err != nil || len(files) > maxSecretFiles {
			errs = append(errs, err, fmt.Errorf("%s: %d files", source.pattern, len(files)))
			continue
		}
		for _, file := range files {
			text, err := readFile(file, maxSecretFile)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			source.add(file, text)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return values, fmt.Errorf("read secrets: %w", err)
	}
	return values, nil
}

// valuesIn returns the values in the members "secrets" of a state file: objects with an object of values for each secret, as text or, in
// generations, in base64.
func valuesIn(text []byte) (values []string) {
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, element := range v {
				visit(element)
			}
		case map[string]any:
			for name, member := range v {
				secrets, ok := member.(map[string]any)
				if name != "secrets" || !ok {
					visit(member)
					continue
				}
				visitStrings(secrets, func(s string) string {
					values = append(values, s)
					if decoded, err := base64.StdEncoding.DecodeString(s); err == nil {
						values = append(values, string(decoded))
					}
					return s
				})
			}
		}
	}
	var v any
	if json.Unmarshal(text, &v) == nil {
		visit(v)
	}
	return values
}

// readFile reads at most limit bytes of a regular file. A directory has no bytes.
func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO does not block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
