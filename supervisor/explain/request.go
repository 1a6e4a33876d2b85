package explain

import "github.com/podstead/podstead/api"

// requestedClause is a cause that a client requested, as a clause.
func requestedClause(c *api.Cause, subject string) string {
	switch c.Kind { //nolint:exhaustive // see default
	case api.CauseStartRequested:
		return "the pod was started again" + requestedBy(c.By)
	case api.CauseDefinitionChanged:
		return owned("definition", subject) + " changed" + because(c.Message)
	case api.CauseContainerRemoved:
		return subject + " was removed from the definition of the pod"
	default:
		return "a restart was requested" + by(c.By)
	}
}
