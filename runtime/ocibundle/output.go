package ocibundle

import (
	"fmt"
	"net/url"
	"strconv"

	"github.com/podstead/podstead/internal/crilog"
)

// An [Output] describes where the output of a container goes, and where its standard input comes from, in the URI that the engine passes
// to the monitor, or to the shim of the pod. Both keep running when the daemon is upgraded: they ignore what they do not know.

// outputScheme marks an output that is written to a log file.
const outputScheme = "podstead-log"

// Stdin is what the monitor does with the standard input of a container.
type Stdin string

// The kinds of standard input.
const (
	NoStdin   Stdin = ""     // the process reads EOF
	OpenStdin Stdin = "open" // stays open over clients
	OnceStdin Stdin = "once" // is closed at EOF of the input of the first client, unless it is a terminal
)

// Output is where the output of a container goes, and where its standard input comes from. It stands for all streams.
type Output struct {
	// Log is the absolute path of the log, in the format of package crilog.
	Log     string
	Options crilog.Options
	Stdin   Stdin
	// Journal has the fields of the container if its log is copied to journald.
	Journal *crilog.JournalFields
}

// URI returns the standard output of the container for the monitor.
func (o Output) URI() *url.URL {
	u := &url.URL{Scheme: outputScheme, Path: o.Log}
	q := url.Values{}
	// An earlier version ignores what it does not know.
	for name, value := range map[string]int64{
		"max": o.Options.MaxBytes, "keep": int64(o.Options.Keep), "lines": o.Options.Rate.Lines, "bytes": o.Options.Rate.Bytes,
	} {
		if value > 0 {
			q.Set(name, strconv.FormatInt(value, 10))
		}
	}
	if o.Options.Compress {
		q.Set("compress", "gzip")
	}
	if o.Stdin != NoStdin {
		q.Set("stdin", string(o.Stdin))
	}
	if c := o.Journal; c != nil {
		q.Set("driver", "journald")
		for name, value := range journalFields(c) {
			q.Set(name, *value)
		}
	}
	u.RawQuery = q.Encode()
	return u
}

// journalFields returns the fields of a container by their names in the URI.
func journalFields(c *crilog.JournalFields) map[string]*string {
	return map[string]*string{
		"id": &c.ID, "image": &c.Image, "pod": &c.Pod, "uid": &c.UID, "container": &c.Container, "restarts": &c.Restarts,
	}
}

// ParseOutput is the reverse of [Output.URI]. It returns false for an output with another scheme.
func ParseOutput(s string) (o Output, ok bool, err error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != outputScheme {
		return o, false, nil // containerd validates other schemes
	}
	q := u.Query()
	var keep int64
	limits := &o.Options
	for name, value := range map[string]*int64{
		"max": &limits.MaxBytes, "keep": &keep, "lines": &limits.Rate.Lines, "bytes": &limits.Rate.Bytes,
	} {
		if v := q.Get(name); v != "" {
			if *value, err = strconv.ParseInt(v, 10, 64); err != nil {
				return o, true, fmt.Errorf("log %s: %w", name, err)
			}
		}
	}
	limits.Keep, limits.Compress = int(keep), q.Get("compress") == "gzip"
	if o.Stdin = Stdin(q.Get("stdin")); o.Stdin != NoStdin && o.Stdin != OpenStdin && o.Stdin != OnceStdin {
		return o, true, fmt.Errorf("unknown standard input %q", o.Stdin)
	}
	if q.Get("driver") == "journald" {
		o.Journal = &crilog.JournalFields{}
		for name, value := range journalFields(o.Journal) {
			*value = q.Get(name)
		}
	}
	o.Log = u.Path
	return o, true, nil
}
