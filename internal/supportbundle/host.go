package supportbundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/lazyregexp"
)

const (
	// maxDaemonLog is how much of the end of the log of the daemon is in a bundle, in bytes, and journalLines how many lines of the
	// journal.
	maxDaemonLog = 2 << 20
	journalLines = "5000"
	// maxListed and listDepth bound the list of files.
	maxListed = 20_000
	listDepth = 4
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// versions adds the versions of the program and of its parts.
func (c *collector) versions(ctx context.Context) error {
	v, err := within(ctx, func(ctx context.Context) (any, error) { return c.Versions(ctx), nil })
	if err != nil {
		return err
	}
	return c.addJSON(ctx, "versions.json", v)
}

// doctor adds the results of the checks.
func (c *collector) doctor(ctx context.Context) error {
	v, err := within(ctx, func(ctx context.Context) (any, error) { return c.Doctor(ctx), nil })
	if err != nil {
		return err
	}
	return c.addJSON(ctx, "doctor.json", v)
}

// host adds the kernel, the distribution, memory and load.
func (c *collector) host(ctx context.Context) error {
	if c.HostRoot == "" {
		return nil
	}
	text, err := within(ctx, func(context.Context) (string, error) {
		var b strings.Builder
		var errs []error
		for _, name := range []string{"proc/version", "etc/os-release", "proc/uptime", "proc/loadavg", "proc/meminfo", "proc/self/cgroup"} {
			text, err := os.ReadFile(filepath.Join(c.HostRoot, name))
			errs = append(errs, err)
			fmt.Fprintf(&b, "# /%s\n%s\n", name, text)
		}
		return b.String(), errors.Join(errs...)
	})
	return errors.Join(err, c.addText(ctx, "host.txt", text))
}

// files adds a list of the files of Podstead with their sizes, but not of their content or of the files in volumes.
func (c *collector) files(ctx context.Context) error {
	list, err := within(ctx, func(ctx context.Context) (string, error) {
		var b strings.Builder
		var errs []error
		for _, dir := range []string{c.Config.ConfigDir, c.Config.Pods.Dir, c.Config.StateDir, c.Config.RunDir, c.Config.LogDir} {
			errs = append(errs, listFiles(ctx, &b, dir))
		}
		return b.String(), errors.Join(errs...)
	})
	return errors.Join(err, c.addText(ctx, "files.txt", list))
}

// listFiles writes a line for each file below a directory. Directories that cannot be read are skipped.
func listFiles(ctx context.Context, w io.Writer, root string) error {
	listed, skipped := 0, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			skipped++
			return nil
		}
		if listed++; listed > maxListed {
			return fs.SkipAll
		}
		info, err := entry.Info()
		if err != nil { // removed meanwhile
			return nil
		}
		fmt.Fprintf(w, "%s %12d %s %s\n", info.Mode(), info.Size(), info.ModTime().UTC().Format(time.RFC3339), path)
		relative, err := filepath.Rel(root, path)
		if entry.IsDir() && (err != nil || strings.Count(relative, "/")+1 >= listDepth || entry.Name() == "volumes") {
			return fs.SkipDir
		}
		return nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("list %s: %w", root, err)
	case listed > maxListed:
		return fmt.Errorf("list %s: only the first %d files", root, maxListed)
	case listed > 0 && skipped > 0:
		return fmt.Errorf("list %s: %d directories cannot be read", root, skipped)
	}
	return nil
}

// daemonLog adds the end of the log of the daemon: the file of a daemon that was started on demand, and the journal of the service.
func (c *collector) daemonLog(ctx context.Context) error {
	if !c.redactor.complete {
		return errors.New("left out, because values of secrets in it cannot be redacted")
	}
	text, err := within(ctx, func(context.Context) (string, error) {
		text, err := tailOf(filepath.Join(c.Config.StateDir, "daemon.log"), maxDaemonLog)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		crash, crashErr := tailOf(filepath.Join(c.Config.RunDir, "crash"), maxDaemonLog)
		if crashErr == nil && crash != "" {
			text += "# output of a crash\n" + crash
		}
		return text, err
	})
	if text != "" {
		err = errors.Join(err, c.addText(ctx, "daemon.log", withoutEvents(text)))
	}
	if c.HostRoot == "" {
		return err
	}
	journal, journalErr := within(ctx, func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, "journalctl", "--unit=podstead.service", "--no-pager", "--output=short-iso",
			"--lines="+journalLines).Output()
		return string(out[max(0, len(out)-maxDaemonLog):]), err
	})
	if errors.Is(journalErr, exec.ErrNotFound) { // a host without systemd
		return err
	}
	return errors.Join(err, journalErr, c.addText(ctx, "journal.log", withoutEvents(journal)))
}

// eventLine matches the message in a line of the log that is an event.
var eventLine = lazyregexp.New(`msg=(?:"(?:\\.|[^"\\])*"|\S+) (pod=.* seq=\d+ cause=\d+)`)

// withoutEvents removes the messages of events from a log. The events are in the bundle without values of secrets; those of deleted pods
// cannot be redacted in the log, since their values are not known any more.
func withoutEvents(text string) string {
	return eventLine.ReplaceAllString(text, "msg=(event) $1")
}

// tailOf returns the last lines of a file, of at most limit bytes.
func tailOf(path string, limit int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return "", err
	}
	start := max(0, info.Size()-limit)
	text, err := io.ReadAll(io.NewSectionReader(f, start, limit))
	if start > 0 { // of the first line only the end may be here: a value of a secret in it would not be found
		if at := strings.IndexByte(string(text), '\n'); at >= 0 {
			text = text[at+1:]
		}
	}
	return string(text), err
}
