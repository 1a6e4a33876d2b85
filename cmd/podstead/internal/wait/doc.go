// Package wait waits until pods are in a state: the outcome of what a command has requested (ready, stopped, deleted, rolled out), or a
// condition with the semantics of kubectl wait, which knows of no request. It watches the pods, also over restarts of the daemon, and
// requests nothing itself.
package wait
