package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// DefaultDetachKeys are the detach keys of Docker and Podman.
const DefaultDetachKeys = "ctrl-p,ctrl-q"

// ErrDetached is the cause of the end of a context when the user has typed the detach keys.
var ErrDetached = errors.New("detached")

// ParseKeys reads detach keys as Docker does: characters and ctrl-KEY, comma-separated, where KEY is a letter or one of @[\]^_. The result
// of the empty text is empty.
func ParseKeys(text string) ([]byte, error) {
	var keys []byte
	if text == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		key, control := strings.CutPrefix(name, "ctrl-")
		if len(key) != 1 || key[0] > 0x7e || key[0] < ' ' {
			return nil, fmt.Errorf("detach key %q: must be a character or ctrl- and a character", name)
		}
		c := key[0]
		if control {
			c = strings.ToUpper(key)[0]
			if c < '@' || c > '_' {
				return nil, fmt.Errorf("detach key %q: must be ctrl- and a letter or one of @[\\]^_", name)
			}
			c -= '@'
		}
		keys = append(keys, c)
	}
	return keys, nil
}

// detacher is an input that calls detach, and then ends with [ErrDetached], when the keys before the detach keys were taken. Keys that may
// be the start of them are held back until the next one shows that they are not, as in Docker.
type detacher struct {
	in     io.Reader
	keys   []byte
	detach func()
	held   []byte // the start of the keys
	ready  []byte // read before held
	err    error  // after both
}

// Read implements io.Reader.
func (d *detacher) Read(p []byte) (int, error) {
	buffer := make([]byte, len(p))
	for len(d.ready) == 0 && d.err == nil && len(p) > 0 {
		n, err := d.in.Read(buffer)
		d.err = err
		d.filter(buffer[:n])
		if err != nil { // the rest of the keys does not come
			d.ready, d.held = append(d.ready, d.held...), nil
		}
	}
	if n := copy(p, d.ready); n > 0 {
		d.ready = d.ready[n:]
		return n, nil
	}
	if d.err == ErrDetached { //nolint:errorlint // not from the input
		d.detach()
	}
	return 0, d.err
}

// filter moves typed keys to ready, until the detach keys are complete.
func (d *detacher) filter(typed []byte) {
	for _, key := range typed {
		d.held = append(d.held, key)
		for !bytes.HasPrefix(d.keys, d.held) {
			d.ready, d.held = append(d.ready, d.held[0]), d.held[1:]
		}
		if len(d.held) == len(d.keys) {
			d.held, d.err = nil, ErrDetached
			return
		}
	}
}
