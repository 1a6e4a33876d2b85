// Package hooks runs the lifecycle hooks of containers, postStart and preStop, as the kubelet does: command, HTTP request, sleep. It runs
// commands and sends requests in the way of package probes. A hook takes at most until its context is cancelled. It leaves no connection,
// goroutine or process.
package hooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/podstead/podstead/probes"
	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// userAgent is that of the supported kubelet release.
const userAgent = "kube-lifecycle/" + spec.KubernetesVersion

// Runner runs hooks. The caller decides when a hook runs, how long it may take, and what a failure means. It is safe for concurrent use.
type Runner struct {
	exec probes.Execer
	http *probes.Client
}

// New returns a runner that runs commands with exec and connects with dial. If dial is nil, it uses the host network.
func New(exec probes.Execer, dial probes.Dial) *Runner {
	return &Runner{exec: exec, http: probes.NewClient(dial)}
}

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
	code, output, err := r.exec.Exec(ctx, uid, ref, e.Command, 0, probes.MaxOutput)
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
	req, err := probes.Request{
		Scheme: h.Scheme, Host: host, Port: port, Path: "/" + strings.TrimPrefix(h.Path, "/"), Headers: h.HTTPHeaders,
		UserAgent: userAgent,
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
	_, err := r.http.Do(req, 0, probes.MaxOutput)
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
