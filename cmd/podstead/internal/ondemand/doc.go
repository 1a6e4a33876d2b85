// Package ondemand starts the daemon if it is not running. The daemon runs in its own session and outlives the command that started
// it. If several commands start a daemon at the same time, one daemon gets the lock of the state directory. The others exit, and their
// commands connect to the first.
package ondemand
