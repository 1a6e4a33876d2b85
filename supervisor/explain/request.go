package explain

// requestedClause is a cause that a client requested, as a clause.
func requestedClause(c *Cause, subject string) string {
	switch c.Kind { //nolint:exhaustive // see default
	case StartRequested:
		return "the pod was started again" + requestedBy(c.By)
	case DefinitionChanged:
		return owned("definition", subject) + " changed" + because(c.Message)
	case ContainerRemoved:
		return subject + " was removed from the definition of the pod"
	default:
		return "a restart was requested" + by(c.By)
	}
}
