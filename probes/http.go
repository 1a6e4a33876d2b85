package probes

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/podstead/podstead/spec"
	"github.com/podstead/podstead/supervisor/lifecycle"
)

// httpGet sends a request. A status from 200 to 399 is a success, and a redirect that was not followed a success with a warning.
// The failure message never contains the body, which may be confidential (kubernetes#99425).
func (p *Prober) httpGet(ctx context.Context, t Target, h *spec.HTTPGetAction, timeout time.Duration) lifecycle.ProbeResult {
	host, port, err := t.endpoint(h.Host, h.Port)
	if err != nil {
		return errored(err)
	}
	req, err := Request{
		Scheme: h.Scheme, Host: host, Port: port, Path: h.Path, Headers: h.HTTPHeaders, UserAgent: userAgent,
	}.HTTP(ctx)
	if err != nil {
		return errored(err)
	}
	response, err := p.http.Do(req, timeout, MaxOutput)
	if err != nil {
		return failed(err.Error())
	}
	switch {
	case response.BodyErr != nil:
		return errored(fmt.Errorf("read response: %w", response.BodyErr))
	case response.Status < http.StatusOK || response.Status >= http.StatusBadRequest:
		return failed(fmt.Sprintf("HTTP probe failed with statuscode: %d", response.Status))
	case response.Status >= http.StatusMultipleChoices:
		return warned("Probe terminated redirects, Response body: " + string(response.Body))
	}
	return succeeded()
}
