// Package monitor is the process that is the parent of all containers of a host, and its client. The monitor runs the OCI runtime, writes
// the logs and serves clients that attach. It is started by a keeper, which starts it again when it dies and keeps for it what the death of
// a process would take away: descriptors, and exit codes of its children. When the keeper dies the monitor becomes the keeper.
//
// Each can be killed at any instruction: no container ends, restarts, blocks or loses a line. All state is in files on tmpfs, each of which
// is written before what it stands for is done.
//
// One goroutine owns the state of the monitor. It waits in epoll for output, exits and requests. Other goroutines exist only while a
// request runs the OCI runtime or writes to a disk, and for clients that attach. The package has no notion of pods.
package monitor
