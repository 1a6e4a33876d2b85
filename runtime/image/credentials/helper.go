package credentials

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// HelperTimeout bounds a call of a credential helper.
const HelperTimeout = 30 * time.Second

// helperPrefix starts the names of credential helpers.
const helperPrefix = "docker-credential-"

// maxHelperOutput bounds the output of a credential helper.
const maxHelperOutput = 1 << 20

// helper is the name of a credential helper without the prefix. Its protocol is that of docker-credential-helpers: a command as argument,
// and the values on standard input and output, so that no process has a credential as argument.
type helper string

// helperLogin is the value of the commands get and store.
type helperLogin struct {
	ServerURL string
	Username  string
	Secret    string
}

// identityUser is the user name of a helper's identity token.
const identityUser = "<token>"

// get returns the credentials for a server; false: the helper has none.
func (h helper) get(ctx context.Context, server string, timeout time.Duration) (Login, bool, error) {
	out, err := h.run(ctx, "get", []byte(server), timeout)
	if err != nil {
		if bytes.Contains(out, []byte("credentials not found")) {
			return Login{}, false, nil
		}
		return Login{}, false, err
	}
	var l helperLogin
	if err := decode(out, &l); err != nil {
		return Login{}, false, fmt.Errorf("credential helper %s: %w", h.program(), err)
	}
	switch {
	case l.Secret == "":
		return Login{}, false, nil
	case l.Username == identityUser:
		return Login{IdentityToken: l.Secret}, true, nil
	}
	return Login{Username: l.Username, Password: l.Secret}, true, nil
}

// store saves credentials.
func (h helper) store(ctx context.Context, server string, l Login, timeout time.Duration) error {
	text, err := json.Marshal(helperLogin{server, l.Username, l.Password})
	if err == nil {
		_, err = h.run(ctx, "store", text, timeout)
	}
	return err
}

// erase deletes credentials.
func (h helper) erase(ctx context.Context, server string, timeout time.Duration) error {
	_, err := h.run(ctx, "erase", []byte(server), timeout)
	return err
}

func (h helper) program() string { return helperPrefix + string(h) }

// run runs the helper in a process group of its own, which is killed after the timeout.
func (h helper) run(ctx context.Context, command string, input []byte, timeout time.Duration) ([]byte, error) {
	if h == "" || strings.ContainsAny(string(h), "/\x00") {
		return nil, fmt.Errorf("credential helper %q: invalid name", string(h))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := limitedBuffer{left: maxHelperOutput, exceeded: cancel}
	cmd := exec.CommandContext(ctx, h.program(), command)
	cmd.Stdin, cmd.Stdout = bytes.NewReader(input), &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("credential helper %s %s: no answer within %v", h.program(), command, timeout)
	case errors.Is(err, exec.ErrNotFound):
		err = fmt.Errorf("credential helper %s: program not found in $PATH", h.program())
	default:
		err = fmt.Errorf("credential helper %s %s: %w", h.program(), command, err) // no output: it can have credentials
	}
	return out.text.Bytes(), err
}

// limitedBuffer is a buffer that calls exceeded, and drops the rest, at its limit. It does not embed the buffer, whose ReadFrom has no
// limit and is preferred by io.Copy.
type limitedBuffer struct {
	text     bytes.Buffer
	left     int
	exceeded func()
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		b.exceeded()
		return len(p), nil
	}
	return b.text.Write(p)
}
