package client

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/podstead/podstead/api"
)

// StopDaemon requests the stop of the daemon; containers keep running. It does not wait until the daemon has exited.
func (c *Client) StopDaemon(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/daemon/leave", nil, nil, nil)
}

// ShutDownDaemon requests the stop of the daemon like [Client.StopDaemon], but all pods stop first, as at a shutdown of the host. When the
// daemon has exited, [Client.Stopped] returns how many pods have not stopped.
func (c *Client) ShutDownDaemon(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/v1/daemon/leave", query("shutdown", "true"), nil, nil)
}

// Metrics writes the metrics of the daemon to w, in the text format of Prometheus.
func (c *Client) Metrics(ctx context.Context, w io.Writer) error {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := c.do(limited, http.MethodGet, "/v1/metrics", nil, nil)
	if err != nil {
		return c.unavailable(ctx, err)
	}
	defer r.Body.Close()
	_, err = io.Copy(w, r.Body)
	return c.unavailable(ctx, err)
}

// Redact replaces the values of the secrets of all pods in texts. It is for root: others could find out values by trial. The size of the
// texts is limited, see [Client.Create].
func (c *Client) Redact(ctx context.Context, texts []string) (r api.Redacted, err error) {
	return r, c.call(ctx, http.MethodPost, "/v1/redact", nil, api.RedactRequest{Texts: texts}, &r)
}

// DiskUsage measures what Podstead has on the disk. That takes a while if there are many files.
func (c *Client) DiskUsage(ctx context.Context) (u api.DiskUsage, err error) {
	return u, c.callWithin(ctx, removalTimeout, http.MethodGet, "/v1/system/df", nil, nil, &u)
}

// PruneSystem removes what nothing uses. With an error it returns what was removed nevertheless.
func (c *Client) PruneSystem(ctx context.Context, q api.SystemPrune) (pruned api.SystemPruned, err error) {
	v := query(
		"all", strconv.FormatBool(q.All), "volumes", strconv.FormatBool(q.Volumes), "dryRun", strconv.FormatBool(q.DryRun),
		"olderThan", q.OlderThan.String(),
	)
	err = c.callWithin(ctx, removalTimeout, http.MethodPost, "/v1/system/prune", v, nil, &pruned)
	if err == nil && pruned.Error != nil {
		err = pruned.Error
	}
	return pruned, err
}
