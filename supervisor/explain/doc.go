// Package explain computes why a pod is in its state: the root cause, the evidence for it, and what happens next.
//
// [ForPod] derives an [api.Explanation] from a pod's facts, its status and its stored events, so an explanation survives
// restarts of the daemon and of the host. [ForDeletedPod] uses the events alone. The caller adds the log lines of failed
// runs with [AddLog], removes the values of secrets with [Redact], and calls [Render] last. Clients render again, in their time zone. All
// English text is in text.go, with its phrases in words.go; nothing in this package or its callers branches on it.
//
// The package is pure and safe for concurrent use: the same arguments give the same explanation.
package explain
