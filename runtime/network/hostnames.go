package network

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// hostsFile has names of the host, and of hosts that its administrator has named.
const hostsFile = "/etc/hosts"

// HostNames returns the names without a dot that this host has: its own, and those in its hosts file. Pods do not take them from other
// pods. Names that cannot be read are missing from the result.
func HostNames() ([]string, error) { return new(hostNames).read(hostsFile) }

// hostNames caches the names in a hosts file, which can have many lines.
type hostNames struct {
	mu       sync.Mutex
	modified time.Time
	size     int64
	names    []string
	problem  string // the newest error that was reported
}

// isNew reports whether an error of read differs from that of the last call.
func (h *hostNames) isNew(err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := h.problem
	h.problem = ""
	if err != nil {
		h.problem = err.Error()
	}
	return err != nil && h.problem != last
}

func (h *hostNames) read(path string) ([]string, error) {
	own, err := os.Hostname()
	short, _, _ := strings.Cut(own, ".")
	names := slices.DeleteFunc([]string{short}, func(name string) bool { return name == "" })
	listed, listError := h.listed(path)
	if errors.Is(listError, fs.ErrNotExist) {
		listError = nil
	}
	return append(names, listed...), errors.Join(err, listError)
}

// listed returns the names in the file.
func (h *hostNames) listed(path string) ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.ModTime().Equal(h.modified) && info.Size() == h.size {
		return h.names, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	h.modified, h.size, h.names = info.ModTime(), info.Size(), namesIn(text)
	return h.names, nil
}

// namesIn returns the names without a dot in the text of a hosts file.
func namesIn(text []byte) []string {
	var names []string
	for line := range bytes.Lines(text) {
		line, _, _ := strings.Cut(string(line), "#")
		for i, name := range strings.Fields(line) {
			if i > 0 && !strings.Contains(name, ".") { // the first field is the address
				names = append(names, name)
			}
		}
	}
	return names
}
