package api

// MaxSessions is the maximum number of commands that clients run in containers at the same time. Each holds up to 1 MiB of memory. A
// further request fails with [ReasonTooManySessions].
const MaxSessions = 64
