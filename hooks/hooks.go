// Package hooks runs the lifecycle hooks of containers, postStart and preStop (command, HTTP request, sleep), as the kubelet
// does.
//
// It owns the handlers. The caller decides when a hook runs, how long it may take, and what a failure means. A hook returns when
// its context is cancelled and leaves no connection, goroutine or process.
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
	// userAgent is that of the supported kubelet release.
	userAgent = "kube-lifecycle/" + spec.KubernetesVersion
	// maxOutput is the maximum size of a response that is read and of output that is kept, in bytes.
	maxOutput = 10 << 10
)

// Execer runs commands in containers.
type Execer interface {
	// Exec runs a command in a running container and returns when the command's first process has exited, with its output,
	// truncated to max bytes. The command and its children are killed when the timeout (0 for none) has expired or ctx is
	// cancelled. An error means that the command was not run to completion.
	Exec(ctx context.Context, uid string, ref lifecycle.Ref, command []string, timeout time.Duration, max int) (code int, output []byte, err error)
}

// Runner runs hooks. It is safe for concurrent use.
type Runner struct {
	exec Execer
	http *httpget.Client
}

// New returns a runner that runs commands with exec and connects with dial. If dial is nil, it uses the host network.
func New(exec Execer, dial httpget.Dial) *Runner { return &Runner{exec: exec, http: httpget.New(dial)} }

// Run runs a hook of a container to completion. The address is that of the pod, empty if it has none. Only ctx limits the time. A
// command fails if its exit code is not zero. A request fails only without a response: the status is ignored. The warning, if not
// empty, is for people, as an error is.
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
	return "", errors.New("run hook: no handler specified")
}

func (r *Runner) command(ctx context.Context, uid string, ref lifecycle.Ref, e *spec.ExecAction) error {
	code, output, err := r.exec.Exec(ctx, uid, ref, e.Command, 0, maxOutput)
	if err != nil {
		return fmt.Errorf("run hook command: %w", err)
	}
	text := strings.TrimSpace(string(output))
	switch {
	case code != 0 && text == "":
		return fmt.Errorf("run hook command: exit code %d", code)
	case code != 0:
		return fmt.Errorf("run hook command: exit code %d: %q", code, text)
	}
	return nil
}

// httpGet sends a request. If the response to an HTTPS request is plain HTTP, the request is repeated by HTTP without its
// credentials.
func (r *Runner) httpGet(ctx context.Context, address string, c *spec.Container, h *spec.HTTPGetAction) (warning string, err error) {
	host := cmp.Or(h.Host, address)
	if host == "" {
		return "", errors.New("send hook request: pod has no IP address")
	}
	port, err := c.PortNumber(h.Port)
	if err != nil {
		return "", fmt.Errorf("send hook request: %w", err)
	}
	headers := make([]httpget.Header, len(h.HTTPHeaders))
	for i, header := range h.HTTPHeaders {
		headers[i] = httpget.Header(header)
	}
	req, err := httpget.Request{
		Scheme: h.Scheme, Host: host, Port: port, Path: "/" + strings.TrimPrefix(h.Path, "/"), Headers: headers, UserAgent: userAgent,
	}.HTTP(ctx)
	if err != nil {
		return "", fmt.Errorf("send hook request: %w", err)
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
		return "", fmt.Errorf("send hook request: %w", err)
	}
	return "", nil
}

// send sends a request and reads part of the response, so that servers which log broken connections have none to log.
func (r *Runner) send(req *http.Request) error {
	_, err := r.http.Do(req, 0, maxOutput)
	return err // any response is a success
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
