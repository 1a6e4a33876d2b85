// Package hostile plays a hostile container against the real program: with root inside, in the default configuration, and with a
// neighbour beside it. What must hold: neither the machine nor the neighbour notices, the daemon answers, and nothing is left.
//
// It owns the table of what a container can do (rows.go), and the part of docs/security.md that is made of it. The attempts
// themselves are those of test/images/intruder. Its tests need root, and run in a network namespace of their own. What they let a
// container write to if it could is theirs too, down to a copy of the OCI runtime.
package hostile
