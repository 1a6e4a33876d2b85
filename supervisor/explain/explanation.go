package explain

import "github.com/podstead/podstead/api"

// Notable reports whether a container is worth showing to a person: it is not as intended, or it was restarted or stopped.
func Notable(c *api.ExplainedContainer) bool {
	return len(c.Runs) > 0 || !settled(c)
}

// settled reports whether a container is as intended: it is ready, or has completed.
func settled(c *api.ExplainedContainer) bool {
	return c.State == api.ContainerCompleted || c.State == api.ContainerRunning && (c.Ready || c.Role == api.RoleEphemeral)
}
