// Package tui is the screen of podstead tui: the list of pods, details, logs and timelines in a terminal. It is a client of the daemon like
// a command, and has its data from package live. A person confirms what changes a pod.
//
// Names, events and log lines come from containers: [screen] escapes all characters that control a terminal, and no other code writes to
// it.
package tui
