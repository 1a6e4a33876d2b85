// Package follow prints what pods write and report while they run: podstead logs, podstead run, podstead run --stdin, which attaches to a
// container from its start, and podstead up --watch, whose pods change meanwhile. It continues with the next line and the next event after
// restarts of containers and of the daemon. Only a run changes pods: it creates them, stops them on request, and deletes them when they
// have terminated.
package follow
