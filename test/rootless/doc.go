// Package rootless tests pods of ordinary users, whom it adds to the host and removes again: what a user runs, what survives, and that
// other users and the host are not reached.
package rootless
