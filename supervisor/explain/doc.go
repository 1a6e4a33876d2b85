// Package explain says why: why a container was restarted, why a pod failed or waits, and what comes next. It makes plain
// sentences of a pod's facts and of the events that are kept of it, so that they hold over restarts of the supervisor and
// of the machine. It is pure: the same arguments make the same story. It decides nothing, and what it does not know it
// leaves out.
package explain
