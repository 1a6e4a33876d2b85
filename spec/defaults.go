package spec

// The kubelet's restart backoff.
var kubeletBackoff = Backoff{InitialSeconds: 10, MaxSeconds: 300, Factor: 2, ResetAfterSeconds: 600}

// IsSidecar tells an init container that keeps running beside the pod's own
// containers (KEP-753). It is meaningful for init containers only.
func (c *Container) IsSidecar() bool { return c.RestartPolicy == RestartAlways }

// BackoffOf resolves the restart backoff of a container of this pod: a number
// is the container's, else the pod's, else the kubelet's. InitialSeconds never
// exceeds MaxSeconds.
func (p *Pod) BackoffOf(c *Container) Backoff {
	b := kubeletBackoff
	for _, over := range []*Backoff{p.RestartBackoff, c.RestartBackoff} {
		if over == nil {
			continue
		}
		if over.InitialSeconds != 0 {
			b.InitialSeconds = over.InitialSeconds
		}
		if over.MaxSeconds != 0 {
			b.MaxSeconds = over.MaxSeconds
		}
		if over.Factor != 0 {
			b.Factor = over.Factor
		}
		if over.ResetAfterSeconds != 0 {
			b.ResetAfterSeconds = over.ResetAfterSeconds
		}
	}
	b.InitialSeconds = min(b.InitialSeconds, b.MaxSeconds)
	return b
}
