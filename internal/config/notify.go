package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/spec"
)

const (
	// DefaultNotifyTimeout is the default of [Notifier.Timeout].
	DefaultNotifyTimeout = 10 * time.Second
	// maxNotifyTimeout is the maximum of [Notifier.Timeout]: events wait behind the one that is sent.
	maxNotifyTimeout = 10 * time.Minute
)

// Notifier is an element of notify: what is sent where. It can be set in the file only.
type Notifier struct {
	Name        string   `json:"name"`
	Command     []string `json:"command,omitempty"`     // a program and its arguments
	URL         string   `json:"url,omitempty"`         // http or https
	URLFile     string   `json:"urlFile,omitempty"`     // a file with the URL, if it is secret
	HeadersFile string   `json:"headersFile,omitempty"` // a file with lines NAME: VALUE
	CAFile      string   `json:"caFile,omitempty"`      // certificates in PEM format that are trusted instead of those of the host
	Timeout     Duration `json:"timeout,omitempty"`     // empty: DefaultNotifyTimeout
	Reasons     []string `json:"reasons,omitempty"`     // empty: all
	Types       []string `json:"types,omitempty"`       // an [event.Level]; empty: all if Reasons is set, otherwise Warning
	Pods        []string `json:"pods,omitempty"`        // names, or patterns of [filepath.Match]; empty: all
	Selector    string   `json:"selector,omitempty"`    // of labels of pods; empty: all
}

// MarshalJSON leaves out what may be secret: arguments, and all of a URL but its host.
func (n Notifier) MarshalJSON() ([]byte, error) {
	type plain Notifier
	if len(n.Command) > 1 {
		n.Command = []string{n.Command[0], redacted}
	}
	if n.URL != "" {
		n.URL = n.Target()
	}
	return json.Marshal(plain(n))
}

const redacted = "[redacted]"

// Target names the receiver without what may be secret: the program, the host of the URL, or the file with the URL.
func (n *Notifier) Target() string {
	switch {
	case len(n.Command) > 0:
		return n.Command[0]
	case n.URLFile != "":
		return n.URLFile
	}
	u, err := url.Parse(n.URL)
	if err != nil {
		return redacted
	}
	return u.Scheme + "://" + u.Host
}

// Limit returns the timeout of one attempt.
func (n *Notifier) Limit() time.Duration {
	if n.Timeout == "" {
		return DefaultNotifyTimeout
	}
	return n.Timeout.Duration()
}

const notifyHint = `write a notifier as [[notify]] with name = "ops" and command = ["/usr/local/bin/alert"] or url = ` +
	`"https://alerts.example.com/podstead"`

// checkNotify checks the notifiers of a file, but not the files that they name.
func (c *Config) checkNotify(file *spec.Decoded) {
	seen := map[string]bool{}
	for i := range c.Notify {
		n := &c.Notify[i]
		bad := func(field any, err error) {
			switch {
			case err == nil:
			case file.Has(field):
				file.Bad(field, err.Error(), "")
			default:
				file.Bad(n, err.Error(), notifyHint)
			}
		}
		bad(&n.Name, n.checkName(seen))
		bad(&n.Command, n.checkReceiver())
		bad(&n.Timeout, n.checkTimeout())
		bad(&n.Reasons, checkReasons(n.Reasons))
		bad(&n.Types, each(oneOf(string(api.EventNormal), string(api.EventWarning)))(n.Types))
		bad(&n.Pods, each(checkPattern)(n.Pods))
		_, err := labels.Parse(n.Selector)
		bad(&n.Selector, err)
		for _, path := range []*string{&n.URLFile, &n.HeadersFile, &n.CAFile} {
			if *path != "" {
				bad(path, absolutePath(*path))
			}
		}
	}
}

func (n *Notifier) checkName(seen map[string]bool) error {
	switch {
	case n.Name == "":
		return errors.New("name: Required value")
	case len(validation.IsDNS1123Label(n.Name)) > 0:
		return fmt.Errorf("%q: must consist of lower case letters, digits and '-', at most 63", n.Name)
	case seen[n.Name]:
		return fmt.Errorf("%q: another notifier has this name", n.Name)
	}
	seen[n.Name] = true
	return nil
}

func (n *Notifier) checkReceiver() error {
	receivers := 0
	for _, set := range []bool{len(n.Command) > 0, n.URL != "", n.URLFile != ""} {
		if set {
			receivers++
		}
	}
	switch {
	case receivers != 1:
		return errors.New("command, url, urlFile: set exactly one of them")
	case len(n.Command) > 0 && (n.HeadersFile != "" || n.CAFile != ""):
		return errors.New("headersFile and caFile: require url or urlFile")
	case len(n.Command) > 0:
		return absolutePath(n.Command[0])
	case n.URL != "":
		return CheckURL(n.URL)
	}
	return nil
}

// CheckURL checks the URL of a notifier. The error does not have the URL, which may be secret.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("url: must be a URL with the scheme http or https")
	case u.User != nil:
		return errors.New("url: must not have a password, write it to headersFile as Authorization")
	}
	return nil
}

func (n *Notifier) checkTimeout() error {
	if n.Timeout == "" {
		return nil
	}
	if d, err := time.ParseDuration(string(n.Timeout)); err != nil || d <= 0 || d > maxNotifyTimeout {
		return fmt.Errorf(`%q: must be a duration greater than 0 and at most %s, such as "10s"`, string(n.Timeout), maxNotifyTimeout)
	}
	return nil
}

// checkReasons rejects reasons that no event has.
func checkReasons(reasons []string) error {
	for _, reason := range reasons {
		if !slices.ContainsFunc(api.EventEntries(), func(e api.EventEntry) bool { return e.Reason == reason }) {
			return fmt.Errorf("%q: no event has this reason, see docs/reference/events.md", reason)
		}
	}
	return nil
}

func checkPattern(pattern string) error {
	if _, err := filepath.Match(pattern, ""); err != nil || pattern == "" {
		return fmt.Errorf("%q: must be the name of a pod or a pattern, such as web-*", pattern)
	}
	return nil
}
