// Package hooks runs what a container asks to be run after its start and before its stop: a command, an HTTP request, or
// a pause, as the kubelet does (Kubernetes: Lifecycle).
//
// It owns the handlers. When a hook is run, how long it may take, and what its failure means is decided elsewhere: a
// hook ends when its context does, and leaves nothing behind then.
package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/podstead/podstead/internal/httpget"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

const (
	// userAgent is the kubelet's, of the release whose contract is kept.
	userAgent = "kube-lifecycle/" + spec.KubernetesVersion
	// maxOutput is how much of an answer is read, and of a command's output kept, in bytes.
	maxOutput = 10 << 10
)

// Execer runs commands in containers.
type Execer interface {
	// Exec runs a command in a run of a container that is running, and returns as soon as the command's first process
	// has ended, with what it has written, cut to max bytes. The command and all that it has started are killed when the
	// timeout (0: none) is over, or when ctx ends. An error says that the command was not run to its end.
	Exec(ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int) (code int, output []byte, err error)
}

// Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	exec Execer
	http *httpget.Client
}

// New returns a runner that runs commands by exec, and makes connections by dial (nil: the machine's own network).
func New(exec Execer, dial httpget.Dial) *Runner { return &Runner{exec: exec, http: httpget.New(dial)} }

// Run runs a hook of a run of a container to its end. The address is that of the pod, which may have none (""). There is
// no time limit but that of ctx. A command has failed if its status is not zero, a request only if it was not answered:
// the status of the answer does not count. The warning, if it is not empty, is for people, like an error.
func (r *Runner) Run(
	ctx context.Context, uid, address string, c *spec.Container, ref lifecycle.Ref, h *spec.LifecycleHandler,
) (warning string, err error) {
	switch {
	case h.Exec != nil:
		return "", r.command(ctx, uid, ref, h.Exec)
	case h.HTTPGet != nil:
		return r.httpGet(ctx, address, c, h.HTTPGet)
	case h.Sleep != nil:
		return "", sleep(ctx, h.Sleep.Seconds.Duration())
	}
	return "", errors.New("run hook: it has no handler")
}

func (r *Runner) command(ctx context.Context, uid string, ref lifecycle.Ref, e *spec.ExecAction) error {
	code, output, err := r.exec.Exec(ctx, uid, ref, e.Command, 0, maxOutput)
	if err != nil {
		return fmt.Errorf("run hook's command: %w", err)
	}
	if code != 0 {
		return fmt.Errorf("run hook's command: it ended with status %d: %q", code, output)
	}
	return nil
}

// httpGet sends a request. One by HTTPS that is answered in plain HTTP is sent again that way, without what only an
// encrypted connection may carry.
func (r *Runner) httpGet(ctx context.Context, address string, c *spec.Container, h *spec.HTTPGetAction) (warning string, err error) {
	host := cmp.Or(h.Host, address)
	if host == "" {
		return "", errors.New("send hook's request: the pod has no address")
	}
	port, err := c.PortNumber(h.Port)
	if err != nil {
		return "", fmt.Errorf("send hook's request: %w", err)
	}
	headers := make([]httpget.Header, len(h.HTTPHeaders))
	for i, header := range h.HTTPHeaders {
		headers[i] = httpget.Header(header)
	}
	req, err := httpget.Request{
		Scheme: h.Scheme, Host: host, Port: port, Path: "/" + strings.TrimPrefix(h.Path, "/"), Headers: headers, UserAgent: userAgent,
	}.HTTP(ctx)
	if err != nil {
		return "", fmt.Errorf("send hook's request: %w", err)
	}
	err = r.send(req)
	if errors.Is(err, http.ErrSchemeMismatch) {
		plain := req.Clone(ctx)
		plain.URL.Scheme = "http"
		plain.Header.Del("Authorization")
		if again := r.send(plain); again == nil {
			return "request to HTTPS lifecycle hook " + req.URL.Host + " got HTTP response, retry with HTTP succeeded", nil
		}
	}
	if err != nil {
		return "", fmt.Errorf("send hook's request: %w", err)
	}
	return "", nil
}

// send sends a request and reads some of the answer, so that a server which logs broken connections has none to log.
func (r *Runner) send(req *http.Request) error {
	_, err := r.http.Do(req, 0, maxOutput)
	return err // the answer has come, and that is all that counts
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sleep for %v: %w", d, context.Cause(ctx))
	}
}
