// Package supportbundle collects what a bug report needs in one archive: versions, configuration, status, events, explanations, logs and
// the results of doctor. It starts no daemon and changes nothing on the host.
//
// The archive has no values of secrets: each text is redacted by the daemon, which knows the secrets of its pods, and with the values that
// are in the directories of this host. What cannot be redacted is left out. A part that fails is a note in the archive, and does not affect
// the others. Every part is limited in size and time.
package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"time"

	"github.com/podstead/podstead/api/client"
	"github.com/podstead/podstead/internal/config"
	"github.com/podstead/podstead/internal/guard"
	"github.com/podstead/podstead/internal/plain"
)

const (
	// totalTimeout bounds the collection of all parts, partTimeout that of one.
	totalTimeout = 3 * time.Minute
	partTimeout  = 20 * time.Second
	// cleanup is how long a part may take after its timeout. A part that hangs in a file system is abandoned then.
	cleanup = time.Second
	// maxFile and maxTotal bound the content before compression, in bytes.
	maxFile  = 4 << 20
	maxTotal = 64 << 20
)

// Options select what a bundle has. Config, Client, Versions and Doctor are required.
type Options struct {
	Config *config.Config
	Client *client.Client
	// Versions returns the versions of the program and of its parts, and Doctor the results of the checks. They are encoded as JSON.
	Versions func(context.Context) any
	Doctor   func(context.Context) any
	// NoLogs leaves out the logs of containers. Tail is the number of lines of each run.
	NoLogs bool
	Tail   int
	// HostRoot is the root directory of the host; empty: the host is not described, and the journal is not read.
	HostRoot string
	Now      time.Time
}

// Manifest describes a bundle. It is the file manifest.json in it.
type Manifest struct {
	Created time.Time `json:"created"`
	Files   []File    `json:"files"`
	// Notes are what is missing, and why.
	Notes []string `json:"notes,omitempty"`
}

// File is a file in a bundle.
type File struct {
	Name string `json:"name"`
	Size int    `json:"size"`
}

// collector collects the parts.
type collector struct {
	Options
	redactor *redactor
	running  bool // the daemon responds
	stopped  bool // there is no daemon
	dir      string
	archive  *tar.Writer
	size     int
	manifest Manifest
}

// Collect returns a bundle as a compressed tar archive. The error is that of ctx: everything else is a note in the manifest.
func Collect(ctx context.Context, o Options) ([]byte, Manifest, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	c := &collector{Options: o, dir: "podstead-support-" + o.Now.UTC().Format("20060102T150405Z"), archive: tar.NewWriter(compressed)}
	c.manifest = Manifest{Created: o.Now.UTC(), Files: []File{}}
	limited, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	c.part(limited, "secrets", c.findSecrets)
	for _, p := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"versions", c.versions},
		{"host", c.host},
		{"configuration", func(ctx context.Context) error { return c.addJSON(ctx, "config.json", c.Config) }},
		{"doctor", c.doctor},
		{"files", c.files},
		{"log of the daemon", c.daemonLog},
	} {
		c.part(limited, p.name, p.do)
	}
	switch {
	case c.running:
		c.daemonParts(limited)
	case c.stopped:
		c.fileParts(limited)
	}
	if ctx.Err() != nil {
		return nil, c.manifest, ctx.Err()
	}
	text, err := json.MarshalIndent(c.manifest, "", "    ")
	err = errors.Join(err, c.write("manifest.json", append(text, '\n')), c.archive.Close(), compressed.Close())
	return out.Bytes(), c.manifest, err
}

// part runs a part, and notes its error.
func (c *collector) part(ctx context.Context, name string, do func(context.Context) error) {
	limited, cancel := guard.WithTimeout(ctx, partTimeout)
	defer cancel()
	if err := limited.Err(); err != nil {
		c.note("%s: not collected, the collection took more than %v", name, totalTimeout)
		return
	}
	if err := do(limited); err != nil {
		c.note("%s: %v", name, err)
	}
}

// within calls a function that reads files or calls other programs. If it hangs, it is abandoned.
func within[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	return guard.Call(ctx, cleanup, slog.New(slog.DiscardHandler), do)
}

// note adds a note. Its values of secrets are replaced as far as they are known here.
func (c *collector) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.redactor != nil {
		text = c.redactor.local.Text(text)
	}
	c.manifest.Notes = append(c.manifest.Notes, text)
}

// add adds a file, unless the bundle has its maximum size. The end of a large file is cut off.
func (c *collector) add(name string, text []byte) error {
	if c.size+min(len(text), maxFile) > maxTotal {
		return fmt.Errorf("%s is left out: the maximum size of %d bytes is reached", name, maxTotal)
	}
	if len(text) > maxFile {
		c.note("%s: only the first %d of %d bytes are in the archive", name, maxFile, len(text))
		text = text[:maxFile]
	}
	c.size += len(text)
	c.manifest.Files = append(c.manifest.Files, File{name, len(text)})
	return c.write(name, text)
}

func (c *collector) write(name string, text []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(c.dir, name), Mode: 0o600, Size: int64(len(text)), ModTime: c.Now}
	if err := c.archive.WriteHeader(h); err != nil {
		return err
	}
	_, err := c.archive.Write(text)
	return err
}

// addText redacts the lines of a text, and adds it.
func (c *collector) addText(ctx context.Context, name, text string) error {
	redacted, err := c.redactor.lines(ctx, text)
	if err != nil {
		return err
	}
	return c.add(name, []byte(redacted))
}

// addJSON redacts the strings of a value, and adds it as JSON.
func (c *collector) addJSON(ctx context.Context, name string, v any) error {
	text, err := c.redactedJSON(ctx, v)
	if err != nil {
		return err
	}
	return c.add(name, append(plain.JSON(text), '\n'))
}

// addYAML redacts the strings of a value, and adds it as YAML.
func (c *collector) addYAML(ctx context.Context, name string, v any) error {
	text, err := c.redactedJSON(ctx, v)
	if err == nil {
		text, err = plain.YAML(text)
	}
	if err != nil {
		return err
	}
	return c.add(name, text)
}

func (c *collector) redactedJSON(ctx context.Context, v any) ([]byte, error) {
	redacted, err := c.redactor.value(ctx, v)
	if err != nil {
		return nil, err
	}
	return json.MarshalIndent(redacted, "", "    ")
}
