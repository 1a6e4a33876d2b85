// Package hostile runs a hostile container against the real programs: root inside, the default configuration, another pod beside it.
// Neither the host nor the other pod may be affected, the daemon must respond, and nothing may be left behind.
//
// It owns the table of what a container can do (rows.go), and the section of docs/security.md that is generated from it. The attempts
// are implemented in test/images/intruder. The tests need root and run in a network namespace of their own. Files that a container could
// overwrite if the isolation failed are private copies, including the OCI runtime.
package hostile
